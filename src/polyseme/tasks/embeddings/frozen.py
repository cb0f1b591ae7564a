"""A model whose weights stay as they are: its layers go into the task, nothing goes back.

    in   the sentences of a data set
    out  every layer of every word, (B, T, L, D): from a cache on disk, or computed each time

The model is no part of the task's module: it has no gradients, and is neither trained nor saved.

    <folder>/<key>.bin   the cache: (words, L, D) numbers, one sentence after another, mapped

Its key is a hash of model, sentences and settings: another model or another data set is another
file. It appears whole or not at all, and may be removed at any time.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from rich.filesize import decimal
from torch import Tensor

from polyseme.config import Settings
from polyseme.data.batch import Integers
from polyseme.embedding.bulk import as_stored
from polyseme.embedding.loading import load_embedder
from polyseme.embedding.model_work import FORMAT
from polyseme.embedding.settings import Pooling, Precision
from polyseme.embedding.word_embedder import Vectors, WordEmbedder
from polyseme.limits import LimitError
from polyseme.progress import SILENT, Progress
from polyseme.storage.files import disk_faults_explained, scratch_for
from polyseme.storage.records import map_array
from polyseme.tasks.embeddings.features import Sentences


class CacheConfig(Settings):
    """Where layers are kept, and how."""

    folder: Path = Path("cache")
    """Holds a file for each model and data set. May be removed at any time."""
    dtype: Literal["float16", "float32"] = "float16"
    """Data type on disk: float16 takes half the space and rounds in the fourth digit."""


class LayerCache:
    """The layers of some sentences, on disk."""

    def __init__(self, path: Path, lengths: Integers, shape: tuple[int, int], dtype: str) -> None:
        self.path = path
        self._lengths = lengths
        self._starts: Integers = np.cumsum(lengths) - lengths
        self._shape, self._dtype = (int(lengths.sum()), *shape), np.dtype(dtype)
        self._layers: npt.NDArray[Any] | None = None

    @property
    def num_bytes(self) -> int:
        """How much room the numbers take, known before there are any."""
        return math.prod(self._shape) * self._dtype.itemsize

    def open(self) -> bool:
        """Whether the file is there, and of the right size."""
        try:
            numbers = map_array(self.path, self._dtype, math.prod(self._shape))
        except (OSError, LimitError):
            return False
        self._layers = numbers.reshape(self._shape)
        return True

    def make(self, vectors: Iterable[Vectors]) -> None:
        """Write the layers (L, T, D) of each sentence, in order, and open the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with (
            disk_faults_explained(self.path.parent),
            scratch_for(self.path) as scratch,
            scratch.open("wb") as file,
        ):
            for found in vectors:
                stored = as_stored(found, self._dtype.name, setting="cache.dtype")
                file.write(np.ascontiguousarray(stored.transpose(1, 0, 2)).data)
        is_open = self.open()
        assert is_open, "a vector is missing, or is one too many"

    def gather(self, chosen: Integers) -> Tensor:
        """(B, T, L, D), zeros after short sentences; in the cache's own precision."""
        assert self._layers is not None, "not open"
        lengths = self._lengths[chosen]
        gathered = np.zeros((len(chosen), int(lengths.max()), *self._shape[1:]), self._dtype)
        for row, (begin, length) in enumerate(zip(self._starts[chosen], lengths, strict=True)):
            gathered[row, :length] = self._layers[begin : begin + length]
        return torch.from_numpy(gathered)


def cache_key(sentences: Iterable[Sequence[str]], *made_from: object) -> str:
    """Hash of sentences (words, their order, and where each ends) and of what else is given."""
    digest = hashlib.sha256(json.dumps(made_from).encode())
    for words in sentences:
        digest.update(json.dumps(list(words)).encode())
    return digest.hexdigest()[:32]


class FrozenConfig(Settings):
    """The layers of a model that is not changed."""

    kind: Literal["frozen"] = "frozen"
    model: Path
    """Folder of the model; hf:FOLDER for a Hugging Face encoder."""
    pooling: Pooling = "mean"
    """Hugging Face encoders only: pool the subword tokens of a word by their mean, or take the
    first."""
    precision: Precision = "float32"
    """Precision of the computation: bfloat16 is faster, and less exact in the third digit."""
    batch_invariant: bool = False
    """Bitwise identical vectors whatever else is in the batch; slower."""
    cached: bool = True
    """Whether the layers of a data set are computed once and kept on disk."""
    cache: CacheConfig = CacheConfig()
    """Where."""


class Frozen:
    """A model that is only read."""

    def __init__(self, config: FrozenConfig, embedder: WordEmbedder) -> None:
        self.config, self.embedder = config, embedder
        self.model_hash = embedder.fingerprint
        """Which model it is, wherever it lies."""
        self.num_layers, self.dim = embedder.num_layers, embedder.dim
        """Vectors for each word, and the dimension of each."""

    @classmethod
    def load(cls, config: FrozenConfig, *, device: str | None = None) -> "Frozen":
        """The model in the folder that the settings name."""
        embedder = load_embedder(
            config.model, device=device, precision=config.precision, pooling=config.pooling
        )
        return cls(config, embedder)

    def source(
        self, sentences: Sentences, *, use_cache: bool = True, progress: Progress = SILENT
    ) -> "LayerSource":
        """A data set's layers. `use_cache`: kept in the cache, if the settings have one."""
        if not (use_cache and self.config.cached):
            return UncachedLayers(self, sentences)
        return Cached(self, sentences, progress)

    def layers(self, sentences: Sequence[Sequence[str]]) -> Iterator[Vectors]:
        """(L, T, D) of each sentence."""
        return self.embedder.stream(sentences, batch_invariant=self.config.batch_invariant)

    def cache(self, sentences: Sequence[Sequence[str]], lengths: Integers) -> LayerCache:
        """Where the layers of these sentences are kept, if they are there."""
        config = self.config
        made_from = (FORMAT, self.model_hash, config.cache.dtype, config.precision)
        key = cache_key(sentences, *made_from, config.batch_invariant)
        path = config.cache.folder / f"{key}.bin"
        return LayerCache(path, lengths, (self.num_layers, self.dim), config.cache.dtype)


class UncachedLayers:
    """Layers that are worked out whenever they are asked for, as for sentences met once."""

    def __init__(self, frozen: Frozen, sentences: Sentences) -> None:
        self._frozen, self._sentences = frozen, sentences

    def gather(self, chosen: Integers) -> Tensor:
        """(B, T, L, D), zeros after short sentences."""
        lengths = self._sentences.lengths[chosen]
        shape = (len(chosen), int(lengths.max()), self._frozen.num_layers, self._frozen.dim)
        gathered = np.zeros(shape, np.float32)
        words = [self._sentences.words[number] for number in chosen]
        for row, found in enumerate(self._frozen.layers(words)):
            gathered[row, : lengths[row]] = found.transpose(1, 0, 2)
        return torch.from_numpy(gathered)


class Cached:
    """Layers from the cache, which is made if it is not there."""

    def __init__(self, frozen: Frozen, sentences: Sentences, progress: Progress) -> None:
        # The same sentence often stands in a data set many times, as premises do.
        places: dict[tuple[str, ...], int] = {}
        which = [places.setdefault(tuple(words), len(places)) for words in sentences.words]
        self._which: Integers = np.array(which, np.int64)
        distinct = list(places)
        self.cache = frozen.cache(distinct, np.array([len(words) for words in distinct], np.int64))
        if not self.cache.open():
            progress.log(f"Layers of the data will take {decimal(self.cache.num_bytes)} on disk.")
            progress.start("Embedding the data", len(distinct))
            self.cache.make(_counted(frozen.layers(distinct), progress))

    def gather(self, chosen: Integers) -> Tensor:
        """(B, T, L, D), zeros after short sentences."""
        return self.cache.gather(self._which[chosen])


LayerSource = UncachedLayers | Cached


def _counted(vectors: Iterator[Vectors], progress: Progress) -> Iterator[Vectors]:
    for number, found in enumerate(vectors, start=1):
        yield found
        progress.update(number)
