r"""Compute contextual vectors for every word of a corpus and write them to disk.

Reads a corpus folder, or texts, which it first prepares in the same way as the model's training
corpus. Writes Parquet, one row per word. If interrupted, run the same command again to resume.

Examples:

  polyseme embed corpus/en --model models/en --out vectors/en

  polyseme embed corpus/en --model models/en --layers top --words bank,play \
      --out vectors/bank

  polyseme embed corpus/en --model hf:models/bert --layers top --out vectors/en-bert

  grep -h bank letters/*.txt | polyseme embed - --model models/en --out vectors/bank

  polyseme embed letters.txt --model models/en --layers average --pca 64 \
      --out vectors/letters
"""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field
from rich.console import Group, RenderableType

from polyseme.commands import prepare, read_list
from polyseme.commands.vectors import facts, summary
from polyseme.config import Folder, Settings, build, to_toml
from polyseme.devices import resolve_precision
from polyseme.embedding.corpus_parts import parts_of
from polyseme.embedding.folder import ARTIFACT, COUNTS, VECTORS, VectorFolder
from polyseme.embedding.settings import ModelName, VectorsConfig
from polyseme.errors import ConfigError, InputError, ModelError, VectorsError
from polyseme.executors import JobResult, ModelExecutorConfig, run_job
from polyseme.progress import SILENT, Progress
from polyseme.storage.files import (
    describe_files,
    disk_faults_explained,
    hold_folder,
    own_folder,
    sha256_of,
    write_text,
)
from polyseme.storage.folders import (
    CONFIG,
    MANIFEST,
    check_same_settings,
    holds,
    write_manifest,
)
from polyseme.storage.installed import default_model
from polyseme.storage.remote_folders import Output, is_finished, open_output
from polyseme.storage.store import is_url
from polyseme.text.corpus import Corpus
from polyseme.text.preprocessing import Preparation
from polyseme.text.streams import STANDARD_INPUT, texts_of

if TYPE_CHECKING:
    from polyseme.embedding.word_embedder import WordEmbedder

PREPARED = "corpus"
"""Folder, inside the output, for texts that were not a corpus yet."""
GIVEN = "standard-input.txt"
"""File, inside the output, for texts that came through standard input."""


class EmbedConfig(Settings):
    """Which texts, by which model, and where to."""

    arguments: ClassVar[tuple[str, ...]] = ("inputs",)

    inputs: tuple[str, ...]
    """A corpus folder; or files, folders or globs of texts; also s3://BUCKET/PATH and the like. -
    reads texts from standard input, one per line, and keeps them in the output."""
    model: ModelName = None
    out: Folder
    """Folder to write the vectors to, or the address of one in a bucket."""
    vectors: VectorsConfig = VectorsConfig()
    """Which vectors."""
    words_file: Path | None = None
    """File of words to keep, one per line, in addition to --words."""
    tokenizer_from: str | None = None
    """Tokenization of texts, if the model does not define it: that of a language (en, zh), or of
    the model or the corpus in a folder."""
    executor: ModelExecutorConfig = Field(default_factory=ModelExecutorConfig)
    """Where the work is done."""
    replace: bool = False
    """Recompute the vectors if the folder holds some made with other settings."""


@dataclass(frozen=True)
class EmbedResult:
    """The finished vectors and how the run went."""

    vectors: VectorFolder
    seconds: float
    words_now: int  # words embedded in this run, not in one before
    files_found: int  # how many files an earlier run had finished

    def to_json(self) -> dict[str, Any]:
        """Plain values: what the folder holds, how long it took."""
        how = {"seconds": round(self.seconds, 3), "files_found": self.files_found}
        return {"folder": self.vectors.address, **facts(self.vectors), **how}


def run(config: EmbedConfig, progress: Progress = SILENT) -> EmbedResult:
    """Embed a corpus, or go on with one that was begun."""
    from polyseme.devices import num_threads
    from polyseme.embedding.bulk import embed_part
    from polyseme.embedding.model_work import ModelWork

    began = time.monotonic()
    model = _model(config)
    device = config.executor.chosen_device()
    chosen = _with_words_file(config, device)
    with (
        disk_faults_explained(config.out),
        num_threads(chosen.threads),
        open_output(config.out, {PREPARED, GIVEN}) as output,
    ):
        config = config.model_copy(update={"out": output.folder})
        with hold_folder(config.out):
            _check_folder(config, chosen)
            work = ModelWork.start(model, chosen, device, same_bits=config.executor.same_bits)
            # To be asked about itself; GPUs are for the workers.
            embedder = replace(work, device="cpu").embedder()
            corpus = _corpus(config, model, embedder, output, progress)
            (config.out / MANIFEST).unlink(missing_ok=True)  # unfinished from here on
            write_text(config.out / CONFIG, to_toml(vectors=chosen))
            output.keep(CONFIG)
            if chosen.pca is not None:
                progress.log("Fitting a PCA on a sample of the corpus.")
            function = embed_part(work, corpus, output)
            parts = parts_of(corpus)
            progress.start("Embedding", sum(part.size for part in parts))
            result = run_job(
                work.job(function, function.key(work), VECTORS),
                parts,
                output.target,
                executor=config.executor.on(device),
                on_progress=progress.update,
                on_message=progress.log,
            )
            _finish(config.out, chosen, result, embedder=embedder, corpus=corpus)
            output.publish()
    return EmbedResult(
        VectorFolder.open(config.out),
        time.monotonic() - began,
        result.counts_now.get("words_read", 0),
        result.num_found,
    )


def show(result: EmbedResult) -> RenderableType:
    """What was embedded, and what to do next."""
    lines = [f"{result.seconds:,.1f} s, {result.words_now / result.seconds:,.0f} words/s."]
    if result.files_found:
        lines.append(f"{result.files_found:,} files from an earlier run were reused.")
    lines.append(f"Next: polyseme vectors info {quote(result.vectors.address)}")
    return Group(summary(result.vectors), *lines)


def _model(config: EmbedConfig) -> str:
    """The model that is named, or the default for the language of the corpus."""
    if config.model is not None:
        return config.model
    folder = config.inputs[0] if config.inputs else ""
    if is_url(folder) and is_finished(folder):
        folder = str(Corpus.open(folder, without_shards=True).folder)
    if not folder or not holds(Path(folder), "corpus"):
        raise ConfigError("Name the model with --model: only a corpus has a default, by language.")
    return default_model(Corpus.open(folder).config.language)


def _with_words_file(config: EmbedConfig, device: str) -> VectorsConfig:
    """The settings with all words that are to be kept, each once, in order."""
    words = set(config.vectors.words)
    if config.words_file is not None:
        words |= set(read_list(config.words_file))
        if not words:
            raise InputError(f"{config.words_file} holds no word: write one on each line.")
    vectors = config.vectors
    # What `auto` comes to here, for all workers, for the key of each file and for the manifest.
    precision = resolve_precision(vectors.precision, device)
    told = {"words": sorted(words), "precision": precision}
    return build(VectorsConfig, {**vectors.model_dump(), **told})


def _check_folder(config: EmbedConfig, chosen: VectorsConfig) -> None:
    """Refuse to write over vectors of other settings, or over something not ours."""
    check_same_settings(
        config.out,
        chosen,
        table="vectors",
        error=VectorsError,
        refusal="was made with other settings: {}. Choose another --out, or add --replace to "
        "recompute them.",
        may_differ=config.replace,
        besides=frozenset({PREPARED, GIVEN}),
    )


def _corpus(
    config: EmbedConfig,
    model: str,
    embedder: "WordEmbedder",
    output: Output,
    progress: Progress,
) -> Corpus:
    """The corpus that is meant, made from texts if need be, its words found as the model's were."""
    from polyseme.embedding.loading import preparation_for

    if not config.inputs:
        raise ConfigError("Nothing to embed: name a corpus folder, or texts.")
    preparation = preparation_for(model, embedder.preparation, config.tokenizer_from)
    if len(config.inputs) == 1 and is_finished(config.inputs[0]):
        corpus = Corpus.open(config.inputs[0], without_shards=True)
    else:
        corpus = _prepared(config, model, preparation, output, progress)
    corpus.check_same_words(preparation)
    return corpus


def _prepared(
    config: EmbedConfig,
    model: str,
    preparation: Preparation | None,
    output: Output,
    progress: Progress,
) -> Corpus:
    """Texts as a corpus, by the settings the model carries, nothing held out."""
    if preparation is None:
        raise ModelError(
            f"{model} does not say how text is split into words. Say it with "
            "--tokenizer-from: a language, or the folder of a model or a corpus. Or prepare a "
            "corpus (polyseme prepare) and embed that."
        )
    if output.store is None:
        out = own_folder(config.out / PREPARED)
    else:  # where workers see it, too
        out = Path(f"{output.store.url}/{PREPARED}")
    texts = prepare.PrepareConfig(
        inputs=_named(config, output),
        out=out,
        corpus=preparation.settings.model_copy(update={"held_out": 0.0}),
        executor=config.executor.on("cpu"),
        replace=config.replace,
    )
    found = prepare.run(texts, progress).corpus
    return found if output.store is None else Corpus.open(out, without_shards=True)


def _named(config: EmbedConfig, output: Output) -> tuple[str, ...]:
    """Where the texts lie. Those of standard input are kept in a file: a run may have to go on."""
    if STANDARD_INPUT not in config.inputs:
        return config.inputs
    given = config.out / GIVEN
    write_text(given, "\n".join(texts_of([STANDARD_INPUT])) + "\n")
    output.keep(GIVEN)
    name = f"{output.url}/{GIVEN}" if output.url else str(given)
    return tuple(name if each == STANDARD_INPUT else each for each in config.inputs)


def _finish(
    out: Path,
    chosen: VectorsConfig,
    result: JobResult,
    *,
    embedder: "WordEmbedder",
    corpus: Corpus,
) -> None:
    """Write the manifest, which makes the folder one of vectors."""
    from polyseme.embedding.bulk import PCA_FILE, Pca
    from polyseme.embedding.model_work import environments_of

    files, counts = result.files, result.counts
    pca = Pca.load(out) if chosen.pca is not None else None
    files.own |= describe_files(out, [CONFIG, *([] if pca is None else [PCA_FILE])])
    write_manifest(
        out,
        ARTIFACT,
        files,
        model=embedder.fingerprint,
        corpus=sha256_of(corpus.folder / MANIFEST),
        settings=chosen.model_dump(mode="json"),
        environments=environments_of(counts),
        columns=chosen.columns(embedder.num_layers),
        dim=chosen.pca or embedder.dim,
        explained_variance_ratio=[] if pca is None else pca.explained_variance_ratio,
        counts={name: counts[name] for name in COUNTS},
    )
