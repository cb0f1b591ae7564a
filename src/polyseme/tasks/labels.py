"""The labels of a task and their numbers; spans written in the network's own scheme.

in   examples as their file has them: IOB1, BIO, BMES or plain labels
out  numbers for a network, and labels of a network's numbers
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyseme.batches.alphabet import Integers
from polyseme.errors import InputError
from polyseme.tasks.examples import Example, Tagged
from polyseme.tasks.networks import NetworkConfig
from polyseme.tasks.networks.tagging import TaggingConfig
from polyseme.tasks.spans import convert

MAX_LABELS = 65_536
"""Labels of texts."""
MAX_TAGS = 4_096
"""Labels of words: every pair of them has a number of its own."""


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
        _check_number(found, network)
        return cls(tuple(sorted(found)))

    @classmethod
    def from_json(cls, names: Sequence[str], network: NetworkConfig) -> "Labels":
        """Those that a task's folder tells."""
        if not all(isinstance(name, str) for name in names):
            raise ValueError("a label is no text")
        _check_number(names, network)
        return cls(tuple(names))

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


def _check_number(labels: Collection[str], network: NetworkConfig) -> None:
    most = MAX_TAGS if isinstance(network, TaggingConfig) else MAX_LABELS
    if not 2 <= len(labels) <= most:
        raise InputError(
            f"There are {len(labels):,} labels; a network of kind {network.kind!r} tells 2 to "
            f"{most:,} apart. Is the column that was named the one of the labels?"
        )


def due(example: Example, network: NetworkConfig) -> tuple[str, ...]:
    """The right labels of an example, as the network would write them."""
    if not isinstance(example, Tagged):
        return (example.label,)
    if isinstance(network, TaggingConfig) and network.scheme != "none":
        return tuple(convert(example.labels, network.scheme))
    return example.labels
