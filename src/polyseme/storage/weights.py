"""An untrusted file of weights: what it says it holds, before anything is built or taken from it.

    in   a safetensors file, and settings that may have been written to harm
    out  its weights in float32, or a ModelError

Settings are a few bytes and can ask for any size; weights cannot lie about theirs, since the file
would have to be as long. So the network is first built without memory (on torch's meta device),
and its shapes are held against those that the file begins with.
"""

import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from polyseme.errors import ModelError, PolysemeError
from polyseme.limits import WEIGHTS_BYTES, LimitError, check_size, parse_json
from polyseme.storage.files import scratch_for

LONGEST_HEADER = 1 << 22
"""Bytes of the names and shapes in a file of weights. 256 layers, the most there may be, have a
tenth."""
LARGEST_WEIGHT = 1e8
"""Training gives weights below 1,000; sums of larger ones than this overflow."""
_DTYPES = {"F32": 4, "F16": 2, "BF16": 2}
_Shapes = dict[str, tuple[int, ...]]


def check_shapes(path: Path, build: Callable[[], nn.Module]) -> None:
    """Refuse a network that has not the very tensors of the file; takes no memory for weights."""
    found = read_shapes(path)
    try:
        # Most tensors become weights; a few are made on the way.
        with torch.device("meta"), _Outline(most=2 * len(found) + 64):
            wanted = _shapes_of(build())
    except _TooManyError as error:
        raise _misfit(path, f"those need more tensors than the {len(found):,} it has") from error
    except PolysemeError:
        raise
    except (RuntimeError, ValueError, TypeError, OverflowError) as error:  # sizes beyond numbers
        raise _misfit(path, f"they cannot be built: {str(error)[:200]}") from error
    _compare(path, wanted, found)


def read_shapes(path: Path) -> _Shapes:
    """The names and shapes in a safetensors file, if it is as long as they say."""
    header = _read_header(path)
    shapes, numbers = {}, 0
    for name, described in header.items():
        try:
            shape = tuple(int(size) for size in described["shape"])
            size = _DTYPES[described["dtype"]] * math.prod(shape)
            is_sound = min(shape, default=0) >= 0 and len(shape) <= 8
            is_sound = (
                is_sound and described["data_offsets"][1] - described["data_offsets"][0] == size
            )
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ModelError(f"{path} holds no weights: {name[:80]} is {error}.") from error
        if not is_sound:
            raise ModelError(f"{path} holds no weights: {name[:80]} is of an impossible size.")
        shapes[name] = shape
        numbers += size
    with path.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
    if 8 + length + numbers != path.stat().st_size:
        raise ModelError(
            f"{path} holds no weights: it has {path.stat().st_size:,} bytes, and its header says "
            f"{8 + length + numbers:,}."
        )
    return shapes


class _TooManyError(Exception):
    """More tensors are built than there are weights."""


class _Outline(TorchFunctionMode):
    """Makes tensors and leaves them unfilled; counts them.

    Filling meta tensors does nothing, but takes a second of imports the first time.
    """

    _FILLS = frozenset(
        ("normal_", "uniform_", "fill_", "zero_", "zeros_", "ones_", "constant_", "copy_")
    ) | {"trunc_normal_", "kaiming_uniform_", "xavier_uniform_", "mul"}
    _MAKES = frozenset(["empty", "zeros", "ones", "full", "randn", "rand"])

    def __init__(self, *, most: int) -> None:
        super().__init__()
        self._left = most

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in self._FILLS:
            return args[0] if args else kwargs["tensor"]
        if name in self._MAKES:
            self._left -= 1
            if self._left < 0:
                raise _TooManyError
            func = torch.empty if name.startswith("rand") else func
        return func(*args, **kwargs)


def write_weights(path: Path, network: nn.Module, dtype: torch.dtype | None = None) -> None:
    """Write a network's weights, all finite; the file appears whole or not at all."""
    weights = {
        name: weight.detach().to("cpu", dtype).contiguous()
        for name, weight in network.state_dict().items()
    }
    if (name := _first_not_finite(weights)) is not None:
        raise ModelError(
            f"{path} is not written: {name} has values that are not finite numbers as "
            f"{weights[name].dtype}. Training has diverged: start again with a lower learning "
            "rate; or, if weights were to be stored in half the bits, use float32."
        )
    with scratch_for(path) as scratch:
        scratch.write_bytes(save(weights))  # its own way of writing leaves a file only we can read


def read_weights(path: Path, network: nn.Module) -> dict[str, Tensor]:
    """The weights in float32, if they are those of this network, and finite numbers."""
    try:
        weights = load_file(path)
    except SafetensorError as error:
        raise ModelError(f"{path} holds no weights: {error}.") from error
    _compare(path, _shapes_of(network), {name: tuple(w.shape) for name, w in weights.items()})
    for name, weight in weights.items():
        if weight.numel() and not weight.abs().amax() <= LARGEST_WEIGHT:  # not: NaN is neither
            raise ModelError(
                f"{path} holds no weights that can be used: {name} has values that are not "
                f"finite numbers up to {LARGEST_WEIGHT:g}. Copy the whole folder again from where "
                "it came."
            )
    return {name: weight.float() for name, weight in weights.items()}


def _first_not_finite(weights: dict[str, Tensor]) -> str | None:
    """The name of a tensor with NaN or infinity in it."""
    return next((name for name, weight in weights.items() if not weight.isfinite().all()), None)


def _shapes_of(network: nn.Module) -> _Shapes:
    return {name: tuple(weight.shape) for name, weight in network.state_dict().items()}


def _compare(path: Path, wanted: _Shapes, found: _Shapes) -> None:
    if wanted != found:
        differing = sorted(set(wanted.items()) ^ set(found.items()))[:4]
        raise _misfit(path, f"{str(differing)[:400]} differ")


def _misfit(path: Path, how: str) -> ModelError:
    return ModelError(
        f"The weights in {path.parent} do not fit its settings: {how}. "
        "Copy the whole folder again from where it came."
    )


def _read_header(path: Path) -> dict[str, Any]:
    """The names, types and shapes at the start of a safetensors file, kept short."""
    size = path.stat().st_size
    try:
        check_size(path.name, size, WEIGHTS_BYTES)
        with path.open("rb") as stream:
            length = struct.unpack("<Q", stream.read(8).ljust(8, b"\xff"))[0]
            if length > min(LONGEST_HEADER, size):
                raise LimitError(f"its header has {length:,} bytes")
            header = parse_json(stream.read(length).decode("utf-8"))
    except ValueError as error:
        raise ModelError(f"{path} holds no weights: {error}.") from error
    if not isinstance(header, dict):
        raise ModelError(f"{path} holds no weights: its header is not a table.")
    header.pop("__metadata__", None)
    return header
