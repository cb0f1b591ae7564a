"""All sentences of a corpus to files of vectors: the function the executors run on each part.

What a file holds depends on the part, the model and the settings alone, last bits aside: not on the
worker, nor on what it embedded before. On equal machines a part that is done again is the same to
the last byte.

Fewer dimensions, if asked for, come by principal component analysis (PCA), fitted once per run on
some 20,000 words from all over the corpus and kept as `pca.safetensors` beside the vectors, so that
vectors made later, of a query say, can be projected alike and compared.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from polyseme.embedding.corpus_parts import CorpusPart, CorpusSentence, parts_of
from polyseme.embedding.folder import COUNTS, VECTORS
from polyseme.embedding.model_work import ModelWork
from polyseme.embedding.settings import VectorsConfig
from polyseme.embedding.store import ParquetWriter, VectorArray
from polyseme.embedding.word_embedder import Vectors, WordEmbedder
from polyseme.errors import ConfigError
from polyseme.executors import Report
from polyseme.limits import LimitError, check_size
from polyseme.storage.files import scratch_for, sha256_of
from polyseme.storage.folders import MANIFEST
from polyseme.storage.remote_folders import Output, is_fetched, scratch_space
from polyseme.text.corpus import Corpus

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
        yield from _in_turn([part.staged(folder).sentences() for part in chosen])


def _in_turn(some: list[Iterator[CorpusSentence]]) -> Iterator[CorpusSentence]:
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
