"""What the training loop knows of the thing it trains: a module, batches, losses. No language.

A batch can be split among processes and into micro-batches; its predictions are counted over
the whole batch, so a loss is the same mean however many processes share the work.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from torch import Tensor, nn

from polyseme.training.optimizer import ParamGroup

Position = Mapping[str, int]
"""Where a stream of batches stands, as plain numbers; `{}` is the beginning."""


class TrainBatch(Protocol):
    """What is worked on in one step, by all processes together."""

    @property
    def counts(self) -> Mapping[str, int]:
        """How many predictions each part of the loss has."""

    @property
    def num_words(self) -> int:
        """Words read, for the log."""

    def shard(self, rank: int, world_size: int) -> "TrainBatch":
        """Shard `rank` (from 0) of `world_size`. All shards together are the whole batch."""

    def to(self, device: str) -> "TrainBatch":
        """The same on another device."""


class TrainModule(Protocol):
    """What a run improves."""

    @property
    def module(self) -> nn.Module:
        """Everything that is trained and saved. Called with a batch, it gives each part's loss,
        summed over the batch's predictions."""

    def batches(self, position: Position) -> Iterator[tuple[Any, Position]]:
        """Batches from a position on, without end, each with the position after it.

        Depends on seed and data alone: not on the number of processes, nor on restarts.
        """

    def param_groups(self) -> Mapping[str, ParamGroup]:
        """How parameters are trained that differ from the rest, by their names in the module."""

    def evaluate(self) -> dict[str, float]:
        """Measures on held-out data. The first is watched for early stopping: lower is better."""

    def fingerprint(self) -> dict[str, Any]:
        """What must be the same for a run to be continued: settings and data, as JSON."""

    def environment(self, *, device: str, precision: str) -> Mapping[str, Any]:
        """What changes the last bits of a result without being a setting, as JSON: a run goes on
        when it has changed, and tells."""


Losses = dict[str, Tensor]
"""What `module(batch)` returns: for each part its loss summed over the predictions, a scalar."""
