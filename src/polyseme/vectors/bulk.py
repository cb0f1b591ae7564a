"""All sentences of a corpus to files of vectors: the function the engines run on each part.

What a file holds depends on the part, the model, the settings and the environment (versions,
processor, kernel) alone: not on the worker, nor on what it embedded before. So a part that is done
again is the same to the last byte; a worker whose environment is another one does not do it.
"""

import hashlib
import platform
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from polyseme.encoders.environment import Environment, describe, differences
from polyseme.engines import Report, ShardJob
from polyseme.errors import EngineError
from polyseme.files import canonical_json, sha256_of, write_text
from polyseme.folders import MANIFEST
from polyseme.limits import read_json
from polyseme.progress import Progress
from polyseme.text.corpus import Corpus
from polyseme.training.processes import choose_device
from polyseme.vectors.allennlp_hdf5 import Hdf5Writer
from polyseme.vectors.corpus_parts import CorpusPart, Sentence, parts_of
from polyseme.vectors.embedder import Embedder
from polyseme.vectors.narrowing import NAME, Narrowing, fit
from polyseme.vectors.settings import VectorsConfig
from polyseme.vectors.store import Array, ParquetWriter

FOLDER = "vectors"
ENVIRONMENT = "environment.json"
"""What the run under way is made with; when it is finished, the manifest tells it, too."""
_SENTENCES_PER_SAMPLE = 50  # from each part that the sample for a narrowing is taken from
_SAMPLED_PARTS = 20


def embedding_job(work: "EmbedPart") -> ShardJob:
    """The job of embedding all parts."""
    return ShardJob(work=work, fingerprint=work.fingerprint, folders=(FOLDER,), linkable=(FOLDER,))


def embed_part(model: Path, config: VectorsConfig, narrowing: Path | None) -> "EmbedPart":
    """The work on one part; `narrowing` is the folder that holds the one to use."""
    folder = narrowing and narrowing.resolve()
    fingerprint = _fingerprint(model.resolve(), config, folder)
    return EmbedPart(model.resolve(), config, folder, fingerprint, environment_of(config))


def environment_of(config: VectorsConfig) -> Environment:
    """What decides last bits here, besides model and settings."""
    device = choose_device(None)
    return describe(device=device, precision=config.precision, threads=config.threads)


def note_environment(out: Path, config: VectorsConfig, progress: Progress) -> None:
    """Say so if an earlier run was made in another environment: its files are made again."""
    path, now = out / ENVIRONMENT, environment_of(config)
    try:
        before = read_json(path)
    except (OSError, ValueError):  # no run before, or one that did not get so far
        before = None
    if isinstance(before, dict) and before != now:
        changed = differences(before, now)
        progress.log(f"Files from before are made again, as last bits may differ: {changed}.")
    write_text(path, canonical_json(now))


@dataclass(frozen=True)
class EmbedPart:
    """A function with its settings, so that it can travel to a worker."""

    model: Path
    config: VectorsConfig
    narrowing: Path | None
    fingerprint: str
    environment: Environment
    """That of the process that starts the run; the fingerprint has it, too."""

    def __call__(self, part: CorpusPart, folder: Path, report: Report) -> dict[str, Any]:
        """Write `vectors/NAME.parquet`, or .hdf5; `report` is told of each sentence read."""
        self._check_same_everywhere()
        embedder = load_embedder(self.model, self.config, self.fingerprint)
        narrow = Narrowing.load(self.narrowing) if self.narrowing else None
        counts = {"sentences": 0, "sentences_embedded": 0, "words_read": 0, "vectors": 0}
        with self._writer(embedder, folder / FOLDER / part.name, narrow) as writer:
            for number, sentence, found in self._embedded(embedder, part, counts, report):
                places = _places(sentence, self.config)
                vectors = found[:, places] if self.config.words else found
                writer.add(sentence, number, places, vectors if narrow is None else narrow(vectors))
                counts["vectors"] += len(places)
        return counts

    def _check_same_everywhere(self) -> None:
        """Refuse to embed where another file would come out than at the start of the run."""
        changed = differences(self.environment, environment_of(self.config))
        if changed:
            raise EngineError(
                f"A worker on {platform.node()} would give vectors with other last bits than the "
                f"process that started the run: {changed}. Use nodes with equal processors and "
                "versions; build the kernel on all (python -m polyseme.encoders.compiled), with "
                "one compiler, or on none."
            )
        if _fingerprint(self.model, self.config, self.narrowing) != self.fingerprint:
            raise EngineError(
                f"A worker on {platform.node()} has another model or another code of Polyseme than "
                "the process that started the run. Give all nodes the same ones."
            )

    def _embedded(
        self, embedder: Embedder, part: CorpusPart, counts: dict[str, int], report: Report
    ) -> Iterator[tuple[int, Sentence, Array]]:
        """Each sentence that is wanted, with its number in the corpus and its vectors."""
        waiting: deque[tuple[int, Sentence]] = deque()

        def wanted() -> Iterator[list[str]]:
            for number, sentence in enumerate(part.sentences(), start=part.first):
                counts["sentences"] += 1
                report(1)
                if _places(sentence, self.config):
                    counts["sentences_embedded"] += 1
                    counts["words_read"] += len(sentence.words)
                    waiting.append((number, sentence))
                    yield sentence.words

        for found in embedder.stream(
            wanted(), layers=self.config.chosen_layers, exact=self.config.exact
        ):
            yield (*waiting.popleft(), found)

    def _writer(
        self, embedder: Embedder, path: Path, narrow: Narrowing | None
    ) -> ParquetWriter | Hdf5Writer:
        if self.config.format == "allennlp-hdf5":
            return Hdf5Writer(path.with_suffix(".hdf5"), dtype=self.config.dtype)
        return ParquetWriter(
            path.with_suffix(".parquet"),
            self.config.columns(embedder.num_layers),
            width=embedder.width if narrow is None else narrow.directions.shape[-1],
            dtype=self.config.dtype,
        )


def narrow_once(model: Path, config: VectorsConfig, corpus: Corpus, out: Path) -> Path | None:
    """Find the directions to keep, if fewer numbers are wanted; once for a folder of vectors."""
    if config.width is None:
        return None
    made_from = f"{_fingerprint(model, config, None)} {sha256_of(corpus.folder / MANIFEST)}"
    if Narrowing.load(out, made_from) is None:
        embedder = load_embedder(model, config, made_from)
        words = (sentence.words for sentence in _sample(corpus))
        found = embedder.stream(words, layers=config.chosen_layers)
        fit(found, config.width).save(out, made_from)
    return out


def _sample(corpus: Corpus) -> Iterator[Sentence]:
    """Sentences from all over a corpus, round and round through some of its parts."""
    parts = parts_of(corpus)
    some = [part.sentences() for part in parts[:: max(1, len(parts) // _SAMPLED_PARTS)]]
    while some:
        taken = [list(islice(sentences, _SENTENCES_PER_SAMPLE)) for sentences in some]
        for sentences in taken:
            yield from sentences
        some = [rest for rest, sentences in zip(some, taken, strict=True) if sentences]


@lru_cache(maxsize=1)
def load_embedder(model: Path, config: VectorsConfig, key: str) -> Embedder:
    """The model, held by a worker from part to part; another `key` is another model."""
    del key
    return Embedder.load(model, precision=config.precision, threads=config.threads)


def _places(sentence: Sentence, config: VectorsConfig) -> list[int]:
    """Which words of a sentence are wanted."""
    chosen = config.word_set
    if not chosen:
        return list(range(len(sentence.words)))
    return [place for place, word in enumerate(sentence.words) if word in chosen]


def _fingerprint(model: Path, config: VectorsConfig, narrowing: Path | None) -> str:
    """Hash of model, settings, code and environment: other vectors need another one."""
    parts = [
        config.model_dump(mode="json"),
        sha256_of(model / MANIFEST),
        narrowing and sha256_of(narrowing / NAME),
        environment_of(config),
        _code(),
    ]
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()


@lru_cache(maxsize=1)
def _code() -> list[str]:
    """Hashes of the rooms that decide a vector. What is compiled is part of the environment."""
    package = Path(__file__).parent.parent
    rooms = ("vectors", "encoders", "batches")
    sources = sorted(path for room in rooms for path in (package / room).rglob("*.py"))
    return [f"{path.name} {sha256_of(path)}" for path in sources]
