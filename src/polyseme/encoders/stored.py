"""A stranger's file of weights: what it says it holds, before anything is built or taken from it.

    in   a safetensors file, and settings that may have been written to harm
    out  its weights in float32, or a ModelError

Settings are a few bytes and can ask for any size; weights cannot lie about theirs, since the file
would have to be as long. So the settings are held against the file first, by arithmetic alone.
"""

import json
import struct
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from polyseme.encoders.characters import CharactersConfig
from polyseme.encoders.encoder import EncoderConfig
from polyseme.encoders.inputs import CharacterInputConfig, FusedInputConfig
from polyseme.encoders.lstm import LstmConfig
from polyseme.encoders.transformer import TransformerConfig
from polyseme.errors import ModelError
from polyseme.files import scratch_for

_LONGEST_HEADER = 1 << 22  # a model of 256 layers, the most there may be, has a tenth
_DTYPES = {"F32", "F16", "BF16"}
_FEWEST_BYTES = 2  # of a weight


def check_room(path: Path, config: EncoderConfig) -> None:
    """Refuse settings that need more weights than the file can hold, without building anything."""
    header = _read_header(path)
    types = {told.get("dtype") if isinstance(told, dict) else None for told in header.values()}
    if not types <= _DTYPES:
        raise ModelError(f"{path} holds no weights: {sorted(map(str, types - _DTYPES))[:3]}.")
    numbers, parts = least_weights(config)
    if numbers * _FEWEST_BYTES > path.stat().st_size or parts > len(header):
        raise _misfit(
            path,
            f"those need {numbers:,} numbers or more in {parts:,} tensors, and {path.name} has "
            f"{path.stat().st_size:,} bytes in {len(header):,}",
        )


def write_weights(path: Path, network: nn.Module, dtype: torch.dtype | None = None) -> None:
    """Write a network's weights, all finite; the file appears whole or not at all."""
    weights = {
        name: weight.detach().to("cpu", dtype).contiguous()
        for name, weight in network.state_dict().items()
    }
    if (name := _first_not_finite(weights)) is not None:
        raise ModelError(
            f"{path} is not written: {name} has values that are not finite numbers as "
            f"{weights[name].dtype}. Training has left the numbers there are: begin anew with a "
            "lower learning rate; or, if weights were to be stored in half the bits, in float32."
        )
    with scratch_for(path) as scratch:
        scratch.write_bytes(save(weights))  # its own way of writing leaves a file only we can read


def read_weights(path: Path, network: nn.Module) -> dict[str, Tensor]:
    """The weights in float32, if they are those of this network, and finite numbers."""
    try:
        weights = load_file(path)
    except SafetensorError as error:
        raise ModelError(f"{path} holds no weights: {error}.") from error
    wanted = {name: tuple(weight.shape) for name, weight in network.state_dict().items()}
    found = {name: tuple(weight.shape) for name, weight in weights.items()}
    if wanted != found:
        differing = sorted(set(wanted.items()) ^ set(found.items()))[:4]
        raise _misfit(path, f"{differing} differ")
    if (name := _first_not_finite(weights)) is not None:
        raise ModelError(
            f"{path} holds no weights that can be used: {name} has values that are not "
            "finite numbers. Take the whole folder anew from where it came."
        )
    return {name: weight.float() for name, weight in weights.items()}


def _first_not_finite(weights: dict[str, Tensor]) -> str | None:
    """The name of a tensor with NaN or infinity in it."""
    return next((name for name, weight in weights.items() if not weight.isfinite().all()), None)


def _misfit(path: Path, how: str) -> ModelError:
    return ModelError(
        f"The weights in {path.parent} do not fit its settings: {how}. "
        "Take the whole folder anew from where it came."
    )


def least_weights(config: EncoderConfig) -> tuple[int, int]:
    """The fewest numbers, and the fewest tensors, that an encoder of these settings has."""
    context, stacks = config.context, 1 if config.direction == "forward" else 2
    numbers = parts = 0
    match context:
        case LstmConfig():
            width = context.width // 2 if config.direction == "together" else context.width
            cells = context.cells or width
            numbers = context.layers * stacks * (context.width + width) * 4 * cells
            parts = context.layers * 3
        case TransformerConfig():
            stacks = 2 if config.direction == "apart" else 1
            block = 4 * context.width**2 + 2 * context.width * context.inner
            numbers = context.layers * stacks * block
            if context.positions == "learned":
                numbers += stacks * context.longest * context.width
            parts = context.layers * stacks * 12
    match config.input:
        case CharacterInputConfig():
            more = _of_characters(config.input)
        case FusedInputConfig():
            more = _of_characters(config.input.characters)
        case _:
            more = (0, 0)
    return numbers + config.table_width + more[0], parts + more[1]


def _of_characters(config: CharactersConfig) -> tuple[int, int]:
    features = config.features
    numbers = sum(one.number * one.width * config.character_width for one in config.filters)
    numbers += config.highways * 2 * features**2
    numbers += features * config.width if config.projected else 0
    return numbers, 2 * (len(config.filters) + config.highways)


def _read_header(path: Path) -> dict[str, Any]:
    """The names, types and shapes at the start of a safetensors file, kept short."""
    with path.open("rb") as stream:
        length = struct.unpack("<Q", stream.read(8).ljust(8, b"\xff"))[0]
        if length > min(_LONGEST_HEADER, path.stat().st_size):
            raise ModelError(f"{path} holds no weights: its header has {length:,} bytes.")
        try:
            header = json.loads(stream.read(length))
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{path} holds no weights: {error}.") from error
    if not isinstance(header, dict):
        raise ModelError(f"{path} holds no weights: its header is no table.")
    header.pop("__metadata__", None)
    return header
