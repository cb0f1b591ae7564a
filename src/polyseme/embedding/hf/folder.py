"""A model folder of Hugging Face: what is believed of it, and what decides its vectors.

    in   FOLDER of the name `hf:FOLDER`, as `hf download` or `save_pretrained` leaves it
    out  its files, checked; a fingerprint of them

Weights are read from safetensors only: `pytorch_model.bin` is pickle, and pickle can run code.
Such a folder has no manifest, so nothing tells whether it is as its authors left it.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from shlex import quote
from typing import Any

from polyseme.embedding.settings import Pooling
from polyseme.errors import ModelError
from polyseme.limits import FILE_BYTES, WEIGHTS_BYTES, LimitError, check_size, read_json
from polyseme.storage.files import canonical_json, sha256_of
from polyseme.storage.folders import HF_PREFIX

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
MAX_LAYERS = 1_000
"""Of a network, as config.json tells: it is built layer by layer before weights are read."""

_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")
# Files that a tokenizer may be made from. All that are there count, whichever are read.
_TOKENIZER = ("*.json", "*.txt", "*.model")
_VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
_ADAPTER = "adapter_config.json"
# Settings that make transformers read other weights than ours, or code from elsewhere.
_REFUSED = ("transformers_weights", "quantization_config", "fusion_config", "distributed_config")
_ATTENTION = ("attn_implementation", "_attn_implementation", "_attn_implementation_internal")
_KNOWN_ATTENTION = (None, "eager", "sdpa")


def hf_name(name: str | PathLike[str]) -> str | None:
    """What stands behind `hf:` in the name of a model; None if it is one of ours."""
    text = fspath(name)
    return text.removeprefix(HF_PREFIX) if text.startswith(HF_PREFIX) else None


@dataclass(frozen=True)
class HfFolder:
    """A folder with all that an encoder needs."""

    path: Path
    weights: tuple[Path, ...]
    """Files of tensors: one, or the parts that the index names."""

    @classmethod
    def open(cls, path: Path) -> "HfFolder":
        """The folder, if it holds weights that can be read without running code."""
        name = quote(str(path))
        if not path.is_dir():
            raise ModelError(
                f"There is no folder {name}; a Hugging Face encoder was expected there. Fetch "
                f"one with: hf download OWNER/MODEL --local-dir {name}"
            )
        if not (path / CONFIG).is_file():
            raise ModelError(f"{name} has no {CONFIG}: it does not hold a Hugging Face encoder.")
        _check_config(path)
        if not any(file for pattern in _VOCABULARIES for file in path.glob(pattern)):
            # transformers would make a tokenizer that knows no word.
            raise ModelError(f"{name} has no tokenizer.json, nor another file of a tokenizer.")
        weights = _weights(path)
        for file in weights:
            _check_file(file, WEIGHTS_BYTES)
        folder = cls(path, weights)
        for file in folder.small_files:
            _check_file(file, FILE_BYTES)
        return folder

    @property
    def small_files(self) -> list[Path]:
        """Settings and the tokenizer."""
        found = {file for pattern in _TOKENIZER for file in self.path.glob(pattern)}
        return sorted(file for file in found if file.is_file())

    @property
    def files(self) -> list[Path]:
        """All that decides its vectors."""
        return [*self.weights, *self.small_files]

    def fingerprint(self, pooling: Pooling) -> str:
        """Hash of weights, settings, tokenizer and pooling: other vectors need another one.

        Versions of libraries are not in it but in the environment, as for our models: they change
        last bits, and a task that was trained with a model still fits it.
        """
        hashes = {file.name: sha256_of(file) for file in self.files}
        told = canonical_json({"files": hashes, "pooling": pooling})
        return hashlib.sha256(told.encode()).hexdigest()


def _weights(path: Path) -> tuple[Path, ...]:
    if (path / WEIGHTS).is_file():
        return (path / WEIGHTS,)
    if (path / INDEX).is_file():
        return _parts(path)
    name = quote(str(path))
    if any((path / file).exists() for file in _PICKLED):
        raise ModelError(
            f"{name} has its weights in {_PICKLED[0]}, a pickle: reading it can run code, so "
            "it is refused. Use the model's safetensors, or convert it on a machine that you can "
            "afford to lose: "
            "transformers.AutoModel.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER)"
        )
    raise ModelError(f"{name} has no {WEIGHTS}: there are no weights that can be read.")


def _parts(path: Path) -> tuple[Path, ...]:
    """The files that the index names; each lies in the folder itself."""
    index = _read(path / INDEX)
    names = index.get("weight_map")
    if not isinstance(names, dict) or not names:
        raise ModelError(f"{path / INDEX} names no files of weights. Copy the folder again.")
    parts = []
    for name in sorted(set(map(str, names.values()))):
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise ModelError(
                f"{path / INDEX} names {name!r:.80}; plain names of safetensors were expected."
            )
        parts.append(path / name)
    return tuple(parts)


def _check_file(file: Path, limit: int) -> None:
    if not file.is_file():
        raise ModelError(f"{file} is missing. Copy the whole folder again from where it came.")
    try:
        check_size(file.name, file.stat().st_size, limit)
    except LimitError as error:
        raise ModelError(f"{file} is not read: {error}.") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        found = read_json(path)
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}.") from error
    if not isinstance(found, dict):
        raise ModelError(f"{path} holds no settings.")
    return found


def _check_config(path: Path) -> None:
    """Refuse settings that ask for more than weights and a tokenizer."""
    if (path / _ADAPTER).exists():
        raise ModelError(
            f"{quote(str(path))} holds an adapter ({_ADAPTER}). Merge it into its model and save "
            "that: peft's merge_and_unload, then save_pretrained."
        )
    for key, value in _settings(_read(path / CONFIG)):
        if key in _REFUSED and value is not None:
            raise ModelError(f"{path / CONFIG} sets {key}, which is not supported here.")
        if key in _ATTENTION and value not in _KNOWN_ATTENTION:
            raise ModelError(
                f"{path / CONFIG} sets {key} = {value!r:.80}; only eager and sdpa, which come with "
                "PyTorch, are used. Remove this setting."
            )
        if "layer" in key and isinstance(value, int) and value > MAX_LAYERS:
            raise ModelError(f"{path / CONFIG} sets {key} = {value:,}; at most {MAX_LAYERS:,}.")


def _settings(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every setting, those of parts too."""
    for key, value in config.items():
        yield key, value
        if isinstance(value, dict):
            yield from _settings(value)
