"""All sentences of a corpus to files of vectors: the function the executors run on each part.

    document, position   the sentence, as in the corpus: which document, its position in it
    word_index, word     which word of the sentence, and how it is written
    layer_0, layer_1 ... or `vector`, where layers were mixed: fixed-size lists of float16 or 32

A file is Parquet, one row a word, one column a layer; any tool that reads Parquet reads it. Vectors
are not compressed: there is little to gain.

What a file holds depends on the part, the model and the settings alone, last bits aside: not on the
worker, nor on what it embedded before. On equal machines a part that is done again is the same to
the last byte.

Fewer dimensions, if asked for, come by principal component analysis (PCA), fitted once per run on
some 20,000 words from all over the corpus and kept as `pca.safetensors` beside the vectors, so that
vectors made later, of a query say, can be projected alike and compared.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from polyseme.embedding.corpus_parts import CorpusPart, CorpusSentence, parts_of
from polyseme.embedding.folder import COUNTS, VECTORS
from polyseme.embedding.model_work import ModelWork
from polyseme.embedding.settings import VectorsConfig
from polyseme.embedding.word_embedder import Vectors, WordEmbedder, is_finite
from polyseme.errors import ConfigError, VectorsError
from polyseme.executors import Report
from polyseme.limits import LimitError, check_size
from polyseme.storage.files import scratch_for, sha256_of
from polyseme.storage.folders import MANIFEST
from polyseme.storage.parquet import ParquetOutput, required
from polyseme.storage.remote_folders import Output, is_fetched, scratch_space
from polyseme.text.corpus import Corpus

VectorArray = npt.NDArray[Any]
# Words in a row group: 6 MB a column at 384 dimensions of float16; a reader skips by the group.
_ROW_GROUP = 8_192
_KEYS = ["sentence_id", "document", "position", "word_index", "word"]
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
_TYPES = {"float16": pa.float16(), "float32": pa.float32()}


def as_stored(vectors: VectorArray, dtype: str, setting: str = "vectors.dtype") -> VectorArray:
    """Vectors in the type they are kept in, all of them finite; `setting` chooses that type."""
    with np.errstate(over="ignore", invalid="ignore"):
        stored = vectors.astype(dtype)
    if is_finite(stored):
        return stored
    if not is_finite(vectors):
        raise VectorsError("Vectors that are not finite (NaN or infinity) are not stored.")
    raise VectorsError(
        f"A vector has a number as large as {np.abs(vectors).max():.3g}, and {dtype} ends at "
        f"{np.finfo(dtype).max:,.0f}. Set {setting} = 'float32'."
    )


class ParquetWriter(ParquetOutput):
    """Writes one Parquet file, a row group at a time."""

    def __init__(self, path: Path, columns: Sequence[str], *, dim: int, dtype: str) -> None:
        self._columns, self._dtype = columns, dtype
        vector = pa.list_(pa.field("element", _TYPES[dtype], nullable=False), dim)
        kinds = (_DICTIONARY, _DICTIONARY, pa.int32(), pa.int32(), _DICTIONARY)
        keys = dict(zip(_KEYS, kinds, strict=True))
        schema = pa.schema(required(**keys, **dict.fromkeys(columns, vector)))
        super().__init__(
            path,
            schema,
            compression=dict.fromkeys(_KEYS, "zstd"),
            use_dictionary=["sentence_id", "document", "word"],
            write_statistics=_KEYS,  # the least and the largest number of a vector say nothing
        )
        self._keys: list[list[Any]] = [[] for _ in _KEYS]
        self._vectors: list[VectorArray] = []

    def add(self, sentence: CorpusSentence, chosen: Sequence[int], vectors: VectorArray) -> None:
        """The vectors (L, P, D) of the P words chosen."""
        ids, documents, positions, indices, words = self._keys
        ids += [sentence.sentence_id] * len(chosen)
        documents += [sentence.document] * len(chosen)
        positions += [sentence.position] * len(chosen)
        indices += chosen
        words += [sentence.words[index] for index in chosen]
        self._vectors.append(as_stored(vectors, self._dtype))
        if len(documents) >= _ROW_GROUP:
            self.flush()

    def flush(self) -> None:
        """Write what was collected as row groups."""
        if not self._keys[0]:
            return
        ids, documents, positions, indices, words = self._keys
        arrays = [
            pa.array(ids, pa.string()).dictionary_encode(),
            pa.array(documents, pa.string()).dictionary_encode(),
            pa.array(positions, pa.int32()),
            pa.array(indices, pa.int32()),
            pa.array(words, pa.string()).dictionary_encode(),
        ]
        vectors = np.concatenate(self._vectors, axis=1)  # (L, words, D)
        for layer, kind in zip(vectors, self.schema.types[len(_KEYS) :], strict=True):
            arrays.append(pa.FixedSizeListArray.from_arrays(pa.array(layer.reshape(-1)), type=kind))
        self.write(arrays)
        self._keys = [[] for _ in _KEYS]
        self._vectors = []


PCA_FILE = "pca.safetensors"
_SAMPLE = 20_000
_KEY, _RATIO = "made_from", "explained_variance_ratio"
LARGEST_PCA = 1 << 30
"""Bytes of the file; 3 layers from 2,048 dimensions to 1,024 have 25 MB."""


@dataclass(frozen=True)
class Pca:
    """For each of L layers a projection from D dimensions to W."""

    mean: Vectors  # (L, D)
    components: Vectors  # (L, D, W)
    explained_variance_ratio: tuple[float, ...]
    """For each layer, the share of the sample's variance that all components together have."""

    def __call__(self, vectors: Vectors) -> Vectors:
        """(L, T, D) -> (L, T, W)"""
        projected: Vectors = np.matmul(vectors - self.mean[:, None], self.components)
        return projected

    def save(self, folder: Path, made_from: str) -> None:
        """Write the file, with a hash of what it was made from."""
        tensors = {"mean": self.mean, "components": self.components}
        tensors[_RATIO] = np.array(self.explained_variance_ratio, np.float32)
        with scratch_for(folder / PCA_FILE) as scratch:
            scratch.write_bytes(save(tensors, metadata={_KEY: made_from}))

    @classmethod
    def load(cls, folder: Path, made_from: str | None = None) -> "Pca | None":
        """The one in this folder, or None; with `made_from`, only if it was made from that."""
        try:
            check_size(PCA_FILE, (folder / PCA_FILE).stat().st_size, LARGEST_PCA)
            with safe_open(folder / PCA_FILE, "numpy") as file:
                if made_from is not None and (file.metadata() or {}).get(_KEY) != made_from:
                    return None
                mean, components, ratio = map(file.get_tensor, ("mean", "components", _RATIO))
        except (OSError, SafetensorError, LimitError):
            return None
        return cls(mean, components, tuple(ratio.tolist()))


def fit_pca(samples: Iterable[Vectors], dim: int) -> Pca:
    """From arrays (L, T, D), as many as are needed. Memory holds a D x D matrix for each layer."""
    words = 0
    total = scatter = np.zeros(1)
    for vectors in samples:
        precise = vectors.astype(np.float64)
        words += precise.shape[1]
        total = total + precise.sum(axis=1)  # (L, D)
        scatter = scatter + np.matmul(precise.transpose(0, 2, 1), precise)  # (L, D, D)
        if words >= _SAMPLE:
            break
    if not words or dim > min(words, total.shape[-1]):
        most = min(words, total.shape[-1]) if words else 0
        raise ConfigError(
            f"PCA cannot give {dim} dimensions: {most} at most (those of a vector, or the number "
            "of words at hand). Ask for a smaller --pca."
        )
    mean = total / words
    covariance = scatter / words - mean[:, :, None] * mean[:, None, :]
    values, vectors_of = np.linalg.eigh(covariance)  # ascending
    chosen = vectors_of[..., ::-1][..., :dim]
    # A component and its opposite are equally good: the largest number decides which it is.
    largest = np.take_along_axis(chosen, np.abs(chosen).argmax(axis=1, keepdims=True), axis=1)
    ratio = values[:, ::-1][:, :dim].sum(axis=1) / values.sum(axis=1)
    components = (chosen * np.sign(largest)).astype(np.float32)
    return Pca(mean.astype(np.float32), components, tuple(ratio.tolist()))


FORMAT = 1
"""Raise it when the same vectors give another file."""
_SENTENCES_PER_SAMPLE = 50  # from each part that the sample for PCA is taken from
_SAMPLED_PARTS = 20


@dataclass(frozen=True)
class EmbedPart:
    """A function with its settings, so that it can travel to a worker."""

    pca: Pca | None
    """The PCA to use."""
    pca_hash: str | None = None
    """SHA-256 of its file."""

    def key(self, work: ModelWork) -> str:
        """Hash of all that decides the files: of another one, they are computed again."""
        return work.key(FORMAT, self.pca_hash)

    def __call__(
        self, work: ModelWork, part: CorpusPart, folder: Path, report: Report
    ) -> dict[str, int]:
        """Write `vectors/NAME.parquet`; `report` is called for each sentence read."""
        config, embedder, pca = work.config, work.embedder(), self.pca
        counts = dict.fromkeys(COUNTS, 0)
        with ParquetWriter(
            folder / VECTORS / f"{part.name}.parquet",
            config.columns(embedder.num_layers),
            dim=embedder.dim if pca is None else pca.components.shape[-1],
            dtype=config.dtype,
        ) as writer:
            for sentence, found in _embedded(config, embedder, part, counts, report):
                chosen = _chosen(sentence, config)
                vectors = found[:, chosen] if config.words else found
                writer.add(sentence, chosen, vectors if pca is None else pca(vectors))
                counts["vectors"] += len(chosen)
        return counts


def _embedded(
    config: VectorsConfig,
    embedder: WordEmbedder,
    part: CorpusPart,
    counts: dict[str, int],
    report: Report,
) -> Iterator[tuple[CorpusSentence, VectorArray]]:
    """Each sentence that is wanted, with its vectors."""
    waiting: deque[CorpusSentence] = deque()

    def wanted() -> Iterator[list[str]]:
        for sentence in part.sentences():
            counts["sentences"] += 1
            report(1)
            if _chosen(sentence, config):
                counts["sentences_embedded"] += 1
                counts["words_read"] += len(sentence.words)
                counts["unread_words"] += embedder.truncation(sentence.words).unread_words
                waiting.append(sentence)
                yield sentence.words

    for found in embedder.stream(
        wanted(), layers=config.chosen_layers, batch_invariant=config.batch_invariant
    ):
        yield waiting.popleft(), found


def embed_part(work: ModelWork, corpus: Corpus, output: Output) -> EmbedPart:
    """The work on a part. If fewer dimensions are wanted, a PCA is fitted, once for an output."""
    config, out = work.config, output.folder
    if config.pca is None:
        return EmbedPart(None)
    made_from = f"{EmbedPart(None).key(work)} {sha256_of(corpus.folder / MANIFEST)}"
    output.recall(PCA_FILE)
    if Pca.load(out, made_from) is None:
        words = (sentence.words for sentence in _sample(corpus))
        found = work.embedder().stream(words, layers=config.chosen_layers)
        fit_pca(found, config.pca).save(out, made_from)
        output.keep(PCA_FILE)
    return EmbedPart(Pca.load(out), sha256_of(out / PCA_FILE))


def _sample(corpus: Corpus) -> Iterator[CorpusSentence]:
    """Sentences from all over a corpus, round and round through some of its parts."""
    parts = parts_of(corpus)
    with scratch_space() if is_fetched(corpus.folder) else nullcontext(Path()) as folder:
        chosen = parts[:: max(1, len(parts) // _SAMPLED_PARTS)]
        some = [part.staged(folder).sentences() for part in chosen]
        while some:
            taken = [list(islice(sentences, _SENTENCES_PER_SAMPLE)) for sentences in some]
            for sentences in taken:
                yield from sentences
            some = [rest for rest, sentences in zip(some, taken, strict=True) if sentences]


def _chosen(sentence: CorpusSentence, config: VectorsConfig) -> list[int]:
    """Which words of a sentence are wanted."""
    wanted = config.word_set
    if not wanted:
        return list(range(len(sentence.words)))
    return [index for index, word in enumerate(sentence.words) if word in wanted]
