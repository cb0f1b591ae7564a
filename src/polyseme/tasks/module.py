"""Feed and network as one module: everything of a task that is trained and saved."""

import torch
from torch import Tensor, nn

from polyseme.tasks.batch import TaskBatch
from polyseme.tasks.labels import Labels
from polyseme.tasks.networks import NetworkConfig, build_network
from polyseme.transfer.feed import Feed


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
        best = self.network.best(self.network.scores(fed, batch.marked), fed.mask)
        if best.ndim == 1:
            return [[number] for number in best.tolist()]
        lengths = batch.given.lengths.tolist()
        return [row[:length] for row, length in zip(best.tolist(), lengths, strict=True)]
