"""Every layer of a data set's sentences, worked out once and kept on disk.

    <folder>/<key>/layers.bin     (words, L, D) numbers, then a CRC-32 for each sentence
    <folder>/<key>/manifest.json  what it was made from

The key is a hash of model, words, settings and environment, so that another model, another data set
or another kernel is another cache. A cache appears whole or not at all. A batch reads its own
sentences and nothing else; each is held against its checksum when it is first read: opening costs
little, and no damage passes.
"""

import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor

from polyseme.config import Settings
from polyseme.data.char_vocabulary import Integers
from polyseme.embedding.output import Vectors
from polyseme.embedding.store import as_stored
from polyseme.encoders.environment import Environment
from polyseme.errors import InternalError, VectorsError
from polyseme.limits import read_json
from polyseme.storage.files import (
    canonical_json,
    disk_faults_explained,
    publish_folder,
    scratch_folder,
    sha256_of,
)
from polyseme.tasks.embeddings.cachefolder import (
    LAYERS,
    MANIFEST,
    check_room,
    note_use,
    remove_cache,
)

_Array = npt.NDArray[Any]
_FORMAT = 2


class CacheConfig(Settings):
    """Where layers are kept, and how much of them."""

    folder: Path = Path("cache")
    """Holds a folder for each model and data set. May be removed at any time."""
    dtype: Literal["float16", "float32"] = "float16"
    """How numbers are kept: float16 takes half the room and rounds in the fourth digit."""
    max_gigabytes: float = Field(20.0, gt=0)
    """Room for all caches of the folder together; one that would not fit is refused."""


@dataclass(frozen=True)
class Origin:
    """What decides every number in a cache."""

    model: str
    """SHA-256 of the model's manifest."""
    words: str
    """SHA-256 of the sentences."""
    num_words: int
    num_sentences: int
    num_layers: int
    dim: int
    dtype: str
    batch_invariant: bool
    """Whether the embedder gives a sentence the same bits in whatever batch."""
    environment: Environment
    """What decides its last bits besides: versions, processor, kernel, precision, threads."""
    format: int = _FORMAT

    @property
    def key(self) -> str:
        """The name of the cache."""
        return hashlib.sha256(canonical_json(asdict(self)).encode()).hexdigest()[:32]

    @property
    def num_bytes(self) -> int:
        """How large the file of layers is, known before it is made."""
        return self.layers_bytes + 4 * self.num_sentences

    @property
    def layers_bytes(self) -> int:
        """Of the numbers, without checksums."""
        return self.num_words * self.num_layers * self.dim * np.dtype(self.dtype).itemsize


def hash_words(sentences: Iterable[Sequence[str]]) -> str:
    """SHA-256 of sentences: of the words, their order, and where sentences end."""
    digest = hashlib.sha256()
    for words in sentences:
        digest.update(json.dumps(list(words)).encode())
    return digest.hexdigest()


class LayerCache:
    """An open cache."""

    def __init__(self, path: Path, origin: Origin, lengths: Integers) -> None:
        self.path, self.origin = path, origin
        """The folder it lies in, and what it was made from."""
        self._lengths = lengths
        self._starts: Integers = np.cumsum(lengths) - lengths
        shape = (origin.num_words, origin.num_layers, origin.dim)
        file = path / LAYERS
        self._layers: _Array = np.memmap(file, origin.dtype, "r", shape=shape)
        checksums = np.memmap(file, "<u4", "r", offset=origin.layers_bytes, shape=len(lengths))
        self._checksums = np.array(checksums)
        self._is_checked = np.zeros(len(lengths), np.bool_)

    def sentence(self, number: int) -> _Array:
        """(T, L, D) of one sentence, as on the disk."""
        begin = self._starts[number]
        layers: _Array = self._layers[begin : begin + self._lengths[number]]
        if not self._is_checked[number]:
            if zlib.crc32(layers.data) != self._checksums[number]:
                remove_cache(self.path)
                raise VectorsError(
                    f"The cached layers in {self.path} are damaged: sentence {number} is not as it "
                    "was written. They have been removed; run the same command again to recompute "
                    "them. If it happens again, test the disk."
                )
            self._is_checked[number] = True
        return layers

    def gather(self, chosen: Integers) -> Tensor:
        """(B, T, L, D), zeros after short sentences; in the cache's own precision."""
        shape = (len(chosen), int(self._lengths[chosen].max()), *self._layers.shape[1:])
        gathered: _Array = np.zeros(shape, self._layers.dtype)
        for row, number in enumerate(chosen):
            gathered[row, : self._lengths[number]] = self.sentence(int(number))
        return torch.from_numpy(gathered)


def open_cache(folder: Path, origin: Origin, lengths: Integers) -> LayerCache | None:
    """The cache of this origin, if there is a sound one. Looks at the manifest and the size."""
    path = folder / origin.key
    if path.is_symlink():
        return None
    try:
        manifest = read_json(path / MANIFEST)
        is_same = manifest["origin"] == asdict(origin)
        file = path / LAYERS
        if not is_same or file.stat().st_size != origin.num_bytes:
            return None
        if sha256_of(file, origin.layers_bytes) != manifest["checksums"]:
            return None
        note_use(path)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return LayerCache(path, origin, lengths)


def make_cache(config: CacheConfig, origin: Origin, vectors: Iterable[Vectors]) -> None:
    """Write the layers (L, T, D) of each sentence, in order, under the origin's key."""
    final = config.folder / origin.key
    config.folder.mkdir(parents=True, exist_ok=True)
    with disk_faults_explained(config.folder):
        remove_cache(final)  # what could not be opened
        check_room(config.folder, origin.num_bytes, config.max_gigabytes)
        with scratch_folder(config.folder) as scratch:
            tail = _write(scratch / LAYERS, origin, vectors)
            manifest = {"origin": asdict(origin), "checksums": hashlib.sha256(tail).hexdigest()}
            (scratch / MANIFEST).write_bytes(canonical_json(manifest).encode())
            try:
                publish_folder(scratch, final)
            except OSError:
                if not final.exists():
                    raise
                # Another process was quicker; what it has made is the same.


def _write(path: Path, origin: Origin, vectors: Iterable[Vectors]) -> bytes:
    """The numbers, then the checksums, which are returned."""
    checksums = []
    with path.open("wb") as file:
        for found in vectors:
            stored = as_stored(found, origin.dtype, setting="cache.dtype")
            layers = np.ascontiguousarray(stored.transpose(1, 0, 2))
            checksums.append(zlib.crc32(layers.data))
            file.write(layers.data)
        tail = np.array(checksums, "<u4").tobytes()
        file.write(tail)
    if path.stat().st_size != origin.num_bytes:
        raise InternalError(
            f"{path} has {path.stat().st_size:,} bytes and should have {origin.num_bytes:,}: a "
            "vector is missing, or is one too many. It is not used. Please report this."
        )
    return tail
