"""What a torch pickle can speak of, as descriptions: names, storages, tensors.

Nothing here is the thing itself: a `Name` is two words on a list, a `Tensor` tells where numbers
lie. What is not on the list cannot be described, and what cannot be described is refused.
"""

from dataclasses import dataclass
from typing import Any

from polyseme.legacy.contents import MAX_RANK, SIZES, ArraySpec, RefusedError

_STORAGES = {"FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2"}
_TENSORS = {"_rebuild_tensor": (4, 4), "_rebuild_tensor_v2": (6, 7)}
"""How many arguments each takes. The first was torch's until 0.3, the second is since."""
_LARGEST = 1 << 48


@dataclass(frozen=True)
class Name:
    """A name from the list of those known; never what the name would mean to Python."""

    module: str
    name: str


KNOWN = {
    Name("collections", "OrderedDict"),
    *(Name("torch", name) for name in _STORAGES),
    *(Name("torch._utils", name) for name in _TENSORS),
}


class Mapping(dict[str | int, Any]):
    """A dict, or what a file calls an OrderedDict."""


@dataclass(frozen=True)
class Storage:
    """A run of numbers in the container, by its key."""

    dtype: str
    key: str
    numbers: int

    @property
    def num_bytes(self) -> int:
        """Its length in the file."""
        return self.numbers * SIZES[self.dtype]


@dataclass(frozen=True)
class Tensor:
    """A view of a storage."""

    storage: Storage
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def spec(self, name: str, storage_offset: int) -> ArraySpec:
        """Where it lies in a file in which its storage lies at `storage_offset`."""
        dtype = self.storage.dtype
        before = self.start * SIZES[dtype]
        spec = ArraySpec(name, self.shape, self.strides, dtype, storage_offset + before)
        if before + spec.num_bytes > self.storage.num_bytes:
            raise RefusedError(f"{name!r} is larger than its storage")
        return spec


def describe_call(name: Name, arguments: tuple[Any, ...]) -> Mapping | Tensor:
    """What calling a known name would have made."""
    if name.name == "OrderedDict" and not arguments:
        return Mapping()
    if name.name not in _TENSORS:
        raise RefusedError(f"its pickle calls {name.module}.{name.name}")
    fewest, most = _TENSORS[name.name]
    if not fewest <= len(arguments) <= most:
        raise RefusedError(f"its pickle has a tensor of {len(arguments)} parts")
    storage, start, shape, strides = arguments[:4]
    are_tuples = type(shape) is tuple and type(strides) is tuple and len(shape) == len(strides)
    if type(storage) is not Storage or not are_tuples or len(shape) > MAX_RANK:
        raise RefusedError("its pickle has a tensor without a storage or a shape")
    if not all(_is_size(number) for number in (start, *shape, *strides)) or 0 in shape:
        raise RefusedError("its pickle has a tensor of an impossible shape")
    return Tensor(storage, start, shape, strides)


def describe_storage(told: Any) -> Storage:
    """What a persistent id points to: a whole storage, wherever it was when it was saved."""
    # Old containers have a sixth part: a view of another storage. Weights have none.
    if type(told) is not tuple or len(told) not in (5, 6) or told[5:] not in ((), (None,)):
        raise RefusedError("its pickle points to something that is not a whole storage")
    word, kind, key, device, numbers = told[:5]
    is_storage = type(kind) is Name and kind.name in _STORAGES and word == "storage"
    if not (is_storage and type(key) is str and type(device) is str and _is_size(numbers)):
        raise RefusedError("its pickle points to something that is not a storage of floats")
    return Storage(_STORAGES[kind.name], key, numbers)


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < _LARGEST
