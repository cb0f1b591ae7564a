"""All sentences of a corpus to files of vectors: the function the executors run on each part.

What a file holds depends on the part, the model, the settings and the environment (versions,
processor, kernel) alone: not on the worker, nor on what it embedded before. So a part that is done
again is the same to the last byte; a worker whose environment is another one does not do it.
"""

import hashlib
import platform
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path

from polyseme.devices import devices_of
from polyseme.embedding.allennlp_hdf5 import Hdf5Writer
from polyseme.embedding.corpus_parts import CorpusPart, CorpusSentence, parts_of
from polyseme.embedding.folder import COUNTS, VECTORS
from polyseme.embedding.loading import (
    Name,
    absolute,
    environment_for,
    fingerprint_of,
    load_embedder,
)
from polyseme.embedding.pca import PCA_FILE, Pca, fit_pca
from polyseme.embedding.settings import VectorsConfig
from polyseme.embedding.store import ParquetWriter, VectorArray
from polyseme.embedding.word_embedder import WordEmbedder
from polyseme.encoders.environment import Environment, differences
from polyseme.errors import ExecutorError
from polyseme.executors import Done, Report, ShardJob
from polyseme.limits import read_json
from polyseme.progress import Progress
from polyseme.storage.files import canonical_json, sha256_of, write_text
from polyseme.storage.folders import MANIFEST
from polyseme.text.corpus import Corpus

ENVIRONMENT = "environment.json"
"""What the run under way is made with; when it is finished, it is in the manifest, too."""
_SENTENCES_PER_SAMPLE = 50  # from each part that the sample for PCA is taken from
_SAMPLED_PARTS = 20


def embedding_job(work: "EmbedPart") -> ShardJob:
    """The job of embedding all parts."""
    return ShardJob(
        work=work,
        fingerprint=work.fingerprint,
        folders=(VECTORS,),
        linkable=(VECTORS,),
        per_worker=tuple(replace(work, device=each) for each in devices_of(work.device)),
        num_gpus=int(work.device.startswith("cuda")),
    )


def embed_part(model: Path, config: VectorsConfig, pca: Path | None, device: str) -> "EmbedPart":
    """The work on one part; `pca` is the folder that holds the PCA to use."""
    name, folder = absolute(model), pca and pca.resolve()
    environment = environment_of(name, config, device)
    fingerprint = _fingerprint(name, config, folder, device)
    return EmbedPart(name, config, folder, fingerprint, environment, device)


def environment_of(model: Name, config: VectorsConfig, device: str) -> Environment:
    """What decides last bits here, besides model and settings."""
    return environment_for(
        model, device=device, precision=config.resolved_precision, threads=config.threads
    )


def note_environment(
    out: Path, model: Name, config: VectorsConfig, device: str, progress: Progress
) -> None:
    """Say so if an earlier run was made in another environment: its files are made again."""
    path, now = out / ENVIRONMENT, environment_of(model, config, device)
    try:
        before = read_json(path)
    except (OSError, ValueError):  # no run before, or one that did not get so far
        before = None
    if isinstance(before, dict) and before != now:
        changed = differences(before, now)
        progress.log(f"Existing files are recomputed, as last bits may differ: {changed}.")
    write_text(path, canonical_json(now))


@dataclass(frozen=True)
class EmbedPart:
    """A function with its settings, so that it can travel to a worker."""

    model: str
    """Its name, from wherever it is read."""
    config: VectorsConfig
    pca: Path | None
    fingerprint: str
    environment: Environment
    """That of the process that starts the run; the fingerprint has it, too."""
    device: str

    def __call__(self, part: CorpusPart, folder: Path, report: Report) -> Done:
        """Write `vectors/NAME.parquet`, or .hdf5; `report` is called for each sentence read."""
        self._check_same_everywhere()
        embedder = held_embedder(self.model, self.config, self.device, self.fingerprint)
        pca = Pca.load(self.pca) if self.pca else None
        counts = dict.fromkeys(COUNTS, 0)
        with self._writer(embedder, folder / VECTORS / part.name, pca) as writer:
            for number, sentence, found in self._embedded(embedder, part, counts, report):
                chosen = _chosen(sentence, self.config)
                vectors = found[:, chosen] if self.config.words else found
                writer.add(sentence, number, chosen, vectors if pca is None else pca(vectors))
                counts["vectors"] += len(chosen)
        return counts, part.digest()

    def _check_same_everywhere(self) -> None:
        """Refuse to embed where another file would come out than at the start of the run."""
        here = environment_of(self.model, self.config, self.device)
        check_same_bits(self.environment, here)
        fingerprint = _fingerprint(self.model, self.config, self.pca, self.device)
        check_same_code(self.fingerprint, fingerprint)

    def _embedded(
        self, embedder: WordEmbedder, part: CorpusPart, counts: dict[str, int], report: Report
    ) -> Iterator[tuple[int, CorpusSentence, VectorArray]]:
        """Each sentence that is wanted, with its number in the corpus and its vectors."""
        waiting: deque[tuple[int, CorpusSentence]] = deque()

        def wanted() -> Iterator[list[str]]:
            for number, sentence in enumerate(part.sentences(), start=part.first):
                counts["sentences"] += 1
                report(1)
                if _chosen(sentence, self.config):
                    counts["sentences_embedded"] += 1
                    counts["words_read"] += len(sentence.words)
                    counts["unread_words"] += embedder.truncation(sentence.words).unread_words
                    waiting.append((number, sentence))
                    yield sentence.words

        for found in embedder.stream(
            wanted(), layers=self.config.chosen_layers, batch_invariant=self.config.batch_invariant
        ):
            yield (*waiting.popleft(), found)

    def _writer(
        self, embedder: WordEmbedder, path: Path, pca: Pca | None
    ) -> ParquetWriter | Hdf5Writer:
        if self.config.format == "allennlp-hdf5":
            return Hdf5Writer(path.with_suffix(".hdf5"), dtype=self.config.dtype)
        return ParquetWriter(
            path.with_suffix(".parquet"),
            self.config.columns(embedder.num_layers),
            dim=embedder.dim if pca is None else pca.components.shape[-1],
            dtype=self.config.dtype,
        )


def check_same_bits(started: Environment, here: Environment) -> None:
    """Refuse a worker whose vectors would have other last bits than those of the first process."""
    if changed := differences(started, here):
        raise ExecutorError(
            f"A worker on {platform.node()} would give vectors with other last bits than the "
            f"process that started the run: {changed}. Use nodes with equal processors and "
            "versions; build the kernel on all (python -m polyseme.encoders.kernels.build), "
            "with one compiler, or on none."
        )


def check_same_code(started: str, here: str) -> None:
    """Refuse a worker with another fingerprint of model and code than the first process."""
    if started != here:
        raise ExecutorError(
            f"A worker on {platform.node()} has another model or another code of Polyseme than "
            "the process that started the run. Give all nodes the same ones."
        )


def fit_once(
    model: Path, config: VectorsConfig, corpus: Corpus, out: Path, device: str
) -> Path | None:
    """Fit a PCA, if fewer dimensions are wanted; once for a folder of vectors."""
    if config.pca is None:
        return None
    name = absolute(model)
    fingerprint = _fingerprint(name, config, None, device)
    made_from = f"{fingerprint} {sha256_of(corpus.folder / MANIFEST)}"
    if Pca.load(out, made_from) is None:
        embedder = held_embedder(name, config, device, made_from)
        words = (sentence.words for sentence in _sample(corpus))
        found = embedder.stream(words, layers=config.chosen_layers)
        fit_pca(found, config.pca).save(out, made_from)
    return out


def _sample(corpus: Corpus) -> Iterator[CorpusSentence]:
    """Sentences from all over a corpus, round and round through some of its parts."""
    parts = parts_of(corpus)
    some = [part.sentences() for part in parts[:: max(1, len(parts) // _SAMPLED_PARTS)]]
    while some:
        taken = [list(islice(sentences, _SENTENCES_PER_SAMPLE)) for sentences in some]
        for sentences in taken:
            yield from sentences
        some = [rest for rest, sentences in zip(some, taken, strict=True) if sentences]


@lru_cache(maxsize=1)
def held_embedder(model: str, config: VectorsConfig, device: str, key: str) -> WordEmbedder:
    """The model, held by a worker from part to part; another `key` is another model."""
    del key
    return load_embedder(
        model,
        device=device,
        precision=config.resolved_precision,
        threads=config.threads,
        pooling=config.pooling,
    )


def _chosen(sentence: CorpusSentence, config: VectorsConfig) -> list[int]:
    """Which words of a sentence are wanted."""
    wanted = config.word_set
    if not wanted:
        return list(range(len(sentence.words)))
    return [index for index, word in enumerate(sentence.words) if word in wanted]


def _fingerprint(model: str, config: VectorsConfig, pca: Path | None, device: str) -> str:
    """Hash of model, settings, code and environment: other vectors need another one."""
    parts = [
        config.model_dump(mode="json"),
        fingerprint_of(model, config.pooling),
        pca and sha256_of(pca / PCA_FILE),
        environment_of(model, config, device),
        code_hashes("data", "embedding", "encoders"),
    ]
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()


@lru_cache(maxsize=2)
def code_hashes(*names: str) -> list[str]:
    """Hashes of the rooms that decide a result. What is compiled is part of the environment."""
    package = Path(__file__).parent.parent
    rooms = [package / room for room in names]
    assert all(room.is_dir() for room in rooms), "a room was renamed"
    sources = sorted(path for room in rooms for path in room.rglob("*.py"))
    return [f"{path.name} {sha256_of(path)}" for path in sources]
