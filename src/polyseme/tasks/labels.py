"""The labels of a task and their numbers; spans written in the network's own scheme.

in   examples as their file has them: IOB1, BIO, BMES or plain labels
out  numbers for a network, and labels of a network's numbers
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyseme.batches.alphabet import Integers
from polyseme.errors import InputError
from polyseme.tasks.examples import Example, Tagged
from polyseme.tasks.networks import NetworkConfig
from polyseme.tasks.networks.tagging import TaggingConfig
from polyseme.tasks.spans import convert


@dataclass(frozen=True)
class Labels:
    """Every label that can be predicted, in the order of their numbers."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, examples: Iterable[Example], network: NetworkConfig) -> "Labels":
        """Those of the training data."""
        found = {label for example in examples for label in due(example, network)}
        if len(found) < 2:
            raise InputError(
                f"There is nothing to tell apart: all training examples have {sorted(found)}."
            )
        return cls(tuple(sorted(found)))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each."""
        return {name: number for number, name in enumerate(self.names)}

    def encode(self, labels: Sequence[str]) -> Integers:
        """Labels by number."""
        return np.array([self.numbers[label] for label in labels], np.int64)

    def decode(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Labels by name."""
        return tuple(self.names[number] for number in numbers)


def due(example: Example, network: NetworkConfig) -> tuple[str, ...]:
    """The right labels of an example, as the network would write them."""
    if not isinstance(example, Tagged):
        return (example.label,)
    if isinstance(network, TaggingConfig) and network.scheme != "none":
        return tuple(convert(example.labels, network.scheme))
    return example.labels
