"""All sentences of a corpus to files of vectors: the function the executors run on each part.

What a file holds depends on the part, the model and the settings alone, last bits aside: not on the
worker, nor on what it embedded before. On equal machines a part that is done again is the same to
the last byte.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from polyseme.embedding.corpus_parts import CorpusPart, CorpusSentence, parts_of
from polyseme.embedding.folder import COUNTS, VECTORS
from polyseme.embedding.model_work import ModelWork
from polyseme.embedding.pca import PCA_FILE, Pca, fit_pca
from polyseme.embedding.settings import VectorsConfig
from polyseme.embedding.store import ParquetWriter, VectorArray
from polyseme.embedding.word_embedder import WordEmbedder
from polyseme.executors import Report
from polyseme.storage.files import sha256_of
from polyseme.storage.folders import MANIFEST
from polyseme.text.corpus import Corpus

FORMAT = 1
"""Raise it when the same vectors give another file."""
_SENTENCES_PER_SAMPLE = 50  # from each part that the sample for PCA is taken from
_SAMPLED_PARTS = 20


@dataclass(frozen=True)
class EmbedPart:
    """A function with its settings, so that it can travel to a worker."""

    pca: Path | None
    """The folder that holds the PCA to use."""

    def key(self, work: ModelWork) -> str:
        """Hash of all that decides the files: of another one, they are computed again."""
        return work.key(FORMAT, self.pca and sha256_of(self.pca / PCA_FILE))

    def __call__(
        self, work: ModelWork, part: CorpusPart, folder: Path, report: Report
    ) -> dict[str, int]:
        """Write `vectors/NAME.parquet`; `report` is called for each sentence read."""
        config, embedder = work.config, work.embedder()
        pca = Pca.load(self.pca) if self.pca else None
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


def fit_once(work: ModelWork, corpus: Corpus, out: Path) -> Path | None:
    """Fit a PCA, if fewer dimensions are wanted; once for a folder of vectors."""
    config = work.config
    if config.pca is None:
        return None
    made_from = f"{EmbedPart(None).key(work)} {sha256_of(corpus.folder / MANIFEST)}"
    if Pca.load(out, made_from) is None:
        words = (sentence.words for sentence in _sample(corpus))
        found = work.embedder().stream(words, layers=config.chosen_layers)
        fit_pca(found, config.pca).save(out, made_from)
    return out.resolve()


def _sample(corpus: Corpus) -> Iterator[CorpusSentence]:
    """Sentences from all over a corpus, round and round through some of its parts."""
    parts = parts_of(corpus)
    some = [part.sentences() for part in parts[:: max(1, len(parts) // _SAMPLED_PARTS)]]
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
