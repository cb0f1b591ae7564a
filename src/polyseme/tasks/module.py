"""Feed and network as one module: everything of a task that is trained and saved."""

import torch
from torch import Tensor, nn

from polyseme.errors import ModelError
from polyseme.tasks.batch import TaskBatch
from polyseme.tasks.labels import Labels
from polyseme.tasks.networks import NetworkConfig, build_network
from polyseme.transfer.feed import Feed

LARGEST_SCORE = 1e8
"""A network in training gives scores below 100; beyond this, float32 tells no two labels apart."""


class TaskModule(nn.Module):
    """Words in, losses or labels out."""

    def __init__(self, feed: Feed, network: NetworkConfig, labels: Labels) -> None:
        super().__init__()
        self.feed = feed
        self.network = build_network(network, feed.widths, labels.names)

    def forward(self, batch: TaskBatch) -> dict[str, Tensor]:
        """What training lowers, summed over the examples."""
        assert batch.answers is not None
        fed = self.feed(batch.given, step=batch.step)
        scores = self.network.scores(fed, batch.marked)
        losses = self.network.losses(scores, batch.answers, fed.mask)  # (B,)
        return {"loss": losses.sum() + self.feed.penalty() * len(batch)}

    @torch.no_grad()
    def answer(self, batch: TaskBatch) -> list[list[int]]:
        """The labels of each example, by number; a single one where there is one."""
        fed = self.feed(batch.given)
        scores = self.network.scores(fed, batch.marked)
        _check_finite(scores, fed.mask)
        best = self.network.best(scores, fed.mask)
        if best.ndim == 1:
            return [[number] for number in best.tolist()]
        lengths = batch.given.lengths.tolist()
        return [row[:length] for row, length in zip(best.tolist(), lengths, strict=True)]


def _check_finite(scores: Tensor, mask: Tensor) -> None:
    """The best of scores that are no numbers would be a label like any other."""
    real = scores[mask] if scores.ndim == 3 else scores
    if not real.isfinite().all() or real.abs().amax() > LARGEST_SCORE:
        raise ModelError(
            "The task's scores are not finite numbers, or larger than any that training gives "
            f"({LARGEST_SCORE:g}): no label can be told from them. Its weights are damaged; take "
            "the whole folder anew from where it came, or train again."
        )
