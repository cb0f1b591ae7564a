"""A model whose weights stay as they are: its layers go into the task, nothing goes back.

    in   the sentences of a data set
    out  every layer of every word, (B, T, L, D): from a cache on disk, or worked out each time

The model is no part of the task's module: it has no gradients, and is neither trained nor saved.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from rich.filesize import decimal
from torch import Tensor

from polyseme.config import Settings
from polyseme.data.char_vocabulary import Integers
from polyseme.embedding.loading import load_embedder
from polyseme.embedding.output import Vectors
from polyseme.embedding.settings import Pooling, Precision
from polyseme.embedding.word_embedder import WordEmbedder
from polyseme.errors import VectorsError
from polyseme.progress import NullProgress, Progress
from polyseme.tasks.embeddings.cache import (
    CacheConfig,
    LayerCache,
    Origin,
    hash_words,
    make_cache,
    open_cache,
)
from polyseme.tasks.embeddings.features import Sentences

# Of a number, and of the root mean square: float16 rounds by 0.0005, a batch of another shape
# changes float32 by 0.00001 and bfloat16 by 0.02. Another model's vectors are off by 1.
_TOLERANCE = {"float32": 2e-3, "bfloat16": 1e-1}
_SAMPLE = 3  # sentences that are worked out again when a cache is opened


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

    @classmethod
    def load(cls, config: FrozenConfig, *, device: str | None = None) -> "Frozen":
        """The model in the folder that the settings name."""
        embedder = load_embedder(
            config.model, device=device, precision=config.precision, pooling=config.pooling
        )
        return cls(config, embedder)

    @property
    def model_hash(self) -> str:
        """Which model it is, wherever it lies."""
        return self.embedder.fingerprint

    @property
    def num_layers(self) -> int:
        """Vectors for each word."""
        return self.embedder.num_layers

    @property
    def dim(self) -> int:
        """Dimension of each."""
        return self.embedder.dim

    def source(
        self, sentences: Sentences, *, use_cache: bool = True, progress: Progress | None = None
    ) -> "LayerSource":
        """A data set's layers. `use_cache`: kept in the cache, if the settings have one."""
        if not (use_cache and self.config.cached):
            return WorkedOut(self, sentences)
        return Cached(self, sentences, progress or NullProgress())

    def layers(self, sentences: Sequence[Sequence[str]]) -> Iterator[Vectors]:
        """(L, T, D) of each sentence."""
        return self.embedder.stream(sentences, batch_invariant=self.config.batch_invariant)

    def origin(self, sentences: Sequence[Sequence[str]], lengths: Integers) -> Origin:
        """What the cache of these sentences is made from; tells how large it will be."""
        config = self.config
        return Origin(
            model=self.model_hash,
            words=hash_words(sentences),
            num_words=int(lengths.sum()),
            num_sentences=len(lengths),
            num_layers=self.num_layers,
            dim=self.dim,
            dtype=config.cache.dtype,
            batch_invariant=config.batch_invariant,
            environment=self.embedder.environment,
        )


class WorkedOut:
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
    """Layers from the cache, which is made if there is none that is sound."""

    def __init__(self, frozen: Frozen, sentences: Sentences, progress: Progress) -> None:
        # The same sentence often stands in a data set many times, as premises do.
        places: dict[tuple[str, ...], int] = {}
        which = [places.setdefault(tuple(words), len(places)) for words in sentences.words]
        self._which: Integers = np.array(which, np.int64)
        distinct = list(places)
        lengths = np.array([len(words) for words in distinct], np.int64)
        self.cache = _open_or_make(frozen, distinct, lengths, progress)

    def gather(self, chosen: Integers) -> Tensor:
        """(B, T, L, D), zeros after short sentences."""
        return self.cache.gather(self._which[chosen])


LayerSource = WorkedOut | Cached


def _open_or_make(
    frozen: Frozen, sentences: Sequence[Sequence[str]], lengths: Integers, progress: Progress
) -> LayerCache:
    config = frozen.config.cache
    origin = frozen.origin(sentences, lengths)
    cache = open_cache(config.folder, origin, lengths)
    if cache is not None and _is_right(cache, frozen, sentences):
        return cache
    del cache
    progress.log(f"Layers of the data will take {decimal(origin.num_bytes)} on disk.")
    progress.start("Embedding the data", len(sentences))
    make_cache(config, origin, _counted(frozen.layers(sentences), progress))
    cache = open_cache(config.folder, origin, lengths)
    assert cache is not None
    return cache


def _counted(vectors: Iterator[Vectors], progress: Progress) -> Iterator[Vectors]:
    for number, found in enumerate(vectors, start=1):
        yield found
        progress.update(number)


def _is_right(cache: LayerCache, frozen: Frozen, sentences: Sequence[Sequence[str]]) -> bool:
    """Whether some of its sentences are what the model gives today.

    Settings, versions, processor and kernel are in the key; a change of code shows only here.
    """
    numbers = np.linspace(0, len(sentences) - 1, min(_SAMPLE, len(sentences))).astype(np.int64)
    today = frozen.layers([sentences[number] for number in numbers])
    tolerance = _TOLERANCE[frozen.config.precision]
    for number, found in zip(numbers, today, strict=True):
        try:
            kept = cache.sentence(int(number)).transpose(1, 0, 2).astype(np.float32)
        except VectorsError:
            return False
        size = float(np.sqrt(np.square(found).mean()))
        if not np.allclose(kept, found, rtol=tolerance, atol=tolerance * size):
            return False
    return True
