"""What the tensors of all old programs have in common: checks, gates and highway layers.

Our gates are ordered input, forget, output, candidate. A highway layer of ours is one matrix, what
changes above what carries on; an open gate carries on.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from polyseme.errors import ModelError
from polyseme.legacy.contents import Floats

Shapes = dict[str, tuple[int, ...]]

# Where in the others' order each of our gates is.
TENSORFLOW_GATES = (0, 2, 3, 1)  # theirs: input, candidate, forget, output
TORCH_GATES = (0, 1, 3, 2)  # theirs: input, forget, candidate, output


def check_tensors(found: Mapping[str, Floats], expected: Shapes, path: Path) -> None:
    """Refuse anything but these tensors, before anything is made of them."""
    for fault in _faults(found, expected):
        raise ModelError(f"{path}: {fault}. Are these the options of these weights?")
    for name in expected:
        # Not isfinite over all of it, which would take a quarter of the memory again.
        if not np.isfinite([found[name].min(), found[name].max()]).all():
            raise ModelError(f"{path}: {name} holds numbers that are not finite. Copy it again.")


def _faults(found: Mapping[str, Floats], expected: Shapes) -> Iterator[str]:
    for name, shape in expected.items():
        if name not in found:
            yield f"{name} is missing, expected with shape {shape}"
        elif found[name].shape != shape:
            yield f"{name} has shape {found[name].shape}, expected {shape}"
    for name in sorted(found.keys() - expected.keys()):
        yield f"{name} with shape {found[name].shape} is a tensor that no such model has"


def to_our_gates(blocks: Floats, order: Sequence[int]) -> Floats:
    """The four blocks of the last axis in our order."""
    return np.concatenate([np.split(blocks, 4, axis=-1)[n] for n in order], axis=-1)


def from_our_gates(blocks: Floats, order: Sequence[int]) -> Floats:
    """What `to_our_gates` did, undone."""
    return to_our_gates(blocks, [order.index(n) for n in range(4)])
