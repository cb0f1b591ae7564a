"""The weights of a network in a safetensors file, which may come with settings of anyone's making.

    in   the file, and a function that builds the network its settings ask for
    out  that network with the file's weights in float32, or a ModelError

Settings are a few bytes and can ask for any size; weights cannot lie about theirs, since the file
would have to be as long. So the network is built without memory (on torch's meta device), its
shapes are held against the file's, and the weights become its own.
"""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import nn
from torch.overrides import TorchFunctionMode

from polyseme.errors import ModelError, PolysemeError
from polyseme.limits import WEIGHTS_BYTES, LimitError, check_size
from polyseme.storage.files import scratch_for

LONGEST_HEADER = 1 << 22
"""Bytes of the names and shapes in a file of weights. 256 layers, the most there may be, have a
tenth."""
LARGEST_WEIGHT = 1e8
"""Training gives weights below 1,000; sums of larger ones than this overflow."""
_DTYPES = ("F32", "F16", "BF16")
_Shapes = dict[str, tuple[int, ...]]
_Network = TypeVar("_Network", bound=nn.Module)


def write_weights(path: Path, network: nn.Module, dtype: torch.dtype | None = None) -> None:
    """Write a network's weights, all finite; the file appears whole or not at all."""
    weights = {
        name: weight.detach().to("cpu", dtype).contiguous()
        for name, weight in network.state_dict().items()
    }
    bad = next((name for name, weight in weights.items() if not weight.isfinite().all()), None)
    if bad is not None:
        raise ModelError(
            f"{path} is not written: {bad} has values that are not finite numbers as "
            f"{weights[bad].dtype}. Training has diverged: start again with a lower learning "
            "rate; or, if weights were to be stored in half the bits, use float32."
        )
    with scratch_for(path) as scratch:
        scratch.write_bytes(save(weights))  # its own way of writing leaves a file only we can read


def load_network(path: Path, build: Callable[[], _Network]) -> _Network:
    """The network that `build` makes, with the weights of this file if they are its own."""
    found = read_shapes(path)
    try:
        with torch.device("meta"), _Unfilled():
            network = build()
    except PolysemeError:
        raise
    except (RuntimeError, ValueError, TypeError, OverflowError) as error:  # sizes beyond numbers
        raise _misfit(path, f"they cannot be built: {str(error)[:200]}") from error
    wanted = {name: tuple(weight.shape) for name, weight in network.state_dict().items()}
    if wanted != found:
        differing = sorted(set(wanted.items()) ^ set(found.items()))[:4]
        raise _misfit(path, f"{str(differing)[:400]} differ")
    weights = load_file(path)
    for name, weight in weights.items():
        if weight.numel() and not weight.abs().amax() <= LARGEST_WEIGHT:  # not: NaN is neither
            raise ModelError(
                f"{path} holds no weights that can be used: {name} has values that are not "
                f"finite numbers up to {LARGEST_WEIGHT:g}. Copy the whole folder again from where "
                "it came."
            )
    network.load_state_dict({name: each.float() for name, each in weights.items()}, assign=True)
    assert not any(each.is_meta for each in network.buffers()), "a buffer that no file fills"
    return network


def read_shapes(path: Path) -> _Shapes:
    """The names and shapes in a safetensors file, if it is as long as they say."""
    try:
        check_size(path.name, path.stat().st_size, WEIGHTS_BYTES)
        with path.open("rb") as stream:
            length = struct.unpack("<Q", stream.read(8))[0]
        check_size("its header", length, LONGEST_HEADER)
        with safe_open(path, "pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - no dict
            for name, each in slices.items():
                if each.get_dtype() not in _DTYPES:
                    raise LimitError(f"{name[:80]} is of type {each.get_dtype()}")
            return {name: tuple(each.get_shape()) for name, each in slices.items()}
    except (SafetensorError, struct.error, LimitError, MemoryError) as error:
        raise ModelError(f"{path} holds no weights: {str(error)[:200]}.") from error


class _Unfilled(TorchFunctionMode):
    """Leaves new tensors as they are: on the meta device, the first `normal_` takes a second."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name.endswith("_") and not name.startswith("_"):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def _misfit(path: Path, how: str) -> ModelError:
    return ModelError(
        f"The weights in {path.parent} do not fit its settings: {how}. "
        "Copy the whole folder again from where it came."
    )
