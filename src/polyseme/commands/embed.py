"""Turn every word of a corpus, in its sentence, into vectors on disk.

Reads a corpus folder, or texts, which are first prepared as the model's own corpus was. Writes
Parquet, one row a word; stopped at any moment, the same command goes on from there.

Examples:

  polyseme embed models/en corpus/en --out vectors/en

  polyseme embed models/en corpus/en --layers top --words bank,play --out vectors/bank

  polyseme embed models/en letters.txt --layers average --width 64 --out vectors/letters
"""

import time
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from pydantic import Field
from rich.console import Group, RenderableType

from polyseme.commands import prepare
from polyseme.commands.vectors import accounting
from polyseme.config import Settings, build, differences, read_toml, to_toml
from polyseme.engines import ExecutorConfig, Receipt, hold_folder, run_job
from polyseme.errors import ConfigError, InputError, ModelError, VectorsError
from polyseme.files import (
    WORK,
    canonical_json,
    describe_file,
    disk_faults_explained,
    make_output,
    own_folder,
    sha256_of,
    write_text,
)
from polyseme.folders import MANIFEST as MODEL_MANIFEST
from polyseme.limits import TOML_BYTES, read_text
from polyseme.progress import NullProgress, Progress
from polyseme.text.corpus import Corpus
from polyseme.text.settings import CorpusConfig
from polyseme.vectors.corpus_parts import parts_of
from polyseme.vectors.folder import CONFIG, FORMAT_VERSION, MANIFEST, VectorFolder
from polyseme.vectors.settings import VectorsConfig

if TYPE_CHECKING:
    from polyseme.model import Model
    from polyseme.vectors.bulk import EmbedPart

PREPARED = "corpus"
"""Folder, inside the output, for texts that were not a corpus yet."""


class EmbedConfig(Settings):
    """Which texts, by which model, and where to."""

    model: Path
    """The model folder."""
    inputs: tuple[str, ...]
    """A corpus folder; or files, folders or globs of texts."""
    out: Path
    """Folder to write the vectors to."""
    vectors: VectorsConfig = VectorsConfig()
    """Which vectors."""
    words_file: Path | None = None
    """A file of words to keep, one a line, besides those of --words."""
    executor: ExecutorConfig = Field(default_factory=ExecutorConfig)
    """Who does the work."""
    replace: bool = False
    """Make the vectors anew if the folder holds some made with other settings."""


@dataclass(frozen=True)
class Embedded:
    """The finished vectors and how the run went."""

    vectors: VectorFolder
    seconds: float
    words_now: int
    """Words embedded in this run, not in one before."""
    files_found: int
    """How many files an earlier run had finished."""


def run(config: EmbedConfig, progress: Progress | None = None) -> Embedded:
    """Embed a corpus, or go on with one that was begun."""
    from polyseme.model import Model
    from polyseme.vectors.bulk import embed_part, embedding_job, note_environment

    progress = progress or NullProgress()
    began = time.monotonic()
    chosen = _with_words_file(config)
    with disk_faults_explained(config.out):
        make_output(config.out)
        with hold_folder(config.out):
            _check_folder(config, chosen)
            model = Model.load(config.model)
            corpus = _corpus(config, model, progress)
            (config.out / MANIFEST).unlink(missing_ok=True)  # unfinished from here on
            write_text(config.out / CONFIG, to_toml(vectors=chosen))
            note_environment(config.out, chosen, progress)
            narrowing = _narrow(config, chosen, corpus, progress)
            parts = parts_of(corpus)
            progress.start("Embedding", sum(part.size for part in parts))
            work = embed_part(config.model, chosen, narrowing)
            receipts = run_job(
                embedding_job(work),
                parts,
                config.out,
                engine=config.executor.chosen,
                on_progress=progress.update,
            )
            _finish(config, work, receipts, model=model, corpus=corpus)
    now = [receipt for receipt in receipts if not receipt.was_there]
    return Embedded(
        VectorFolder.open(config.out),
        time.monotonic() - began,
        sum(receipt.counts["words_read"] for receipt in now),
        len(receipts) - len(now),
    )


def show(result: Embedded) -> RenderableType:
    """The accounting, and what to do next."""
    folder = result.vectors.folder
    lines = [f"{result.seconds:,.1f} s, {result.words_now / result.seconds:,.0f} words/s."]
    if result.files_found:
        lines.append(f"{result.files_found:,} files were there from before and were kept.")
    lines.append(f"Next: polyseme vectors info {quote(str(folder))}")
    return Group(accounting(result.vectors), *lines)


def _with_words_file(config: EmbedConfig) -> VectorsConfig:
    """The settings with all words that are to be kept, each once, in order."""
    words = set(config.vectors.words)
    if config.words_file is not None:
        try:
            text = read_text(config.words_file, TOML_BYTES)
        except (OSError, ValueError) as error:
            raise InputError(f"{config.words_file} cannot be read: {error}.") from error
        words |= {line.strip() for line in text.splitlines() if line.strip()}
        if not words:
            raise InputError(f"{config.words_file} holds no word: write one on each line.")
    changed = {**config.vectors.model_dump(), "words": sorted(words)}
    return build(VectorsConfig, changed)


def _check_folder(config: EmbedConfig, chosen: VectorsConfig) -> None:
    """Refuse to write over something made with other settings, or over something not ours."""
    path = config.out / CONFIG
    if not path.is_file():
        others = {other.name for other in config.out.iterdir()} - {".lock", WORK, PREPARED}
        if others:
            raise VectorsError(
                f"{config.out} holds other things ({', '.join(sorted(others)[:3])}). "
                "Choose a new or empty folder for --out."
            )
        return
    before = build(VectorsConfig, read_toml(path).get("vectors", {}))
    if before == chosen or config.replace:
        return
    raise VectorsError(
        f"{config.out} was made with other settings: {differences(before, chosen)}. "
        "Choose another --out, or add --replace to make it anew."
    )


def _corpus(config: EmbedConfig, model: "Model", progress: Progress) -> Corpus:
    """The corpus that is meant, made from texts if need be, its words found as the model's were."""
    if not config.inputs:
        raise ConfigError("Nothing to embed: name a corpus folder, or texts.")
    folder = Path(config.inputs[0])
    if len(config.inputs) == 1 and (folder / MANIFEST).is_file():
        corpus = Corpus.open(folder)
    else:
        corpus = _prepared(config, model, progress)
    model.check_same_words(corpus)
    return corpus


def _prepared(config: EmbedConfig, model: "Model", progress: Progress) -> Corpus:
    """Texts as a corpus, by the settings the model carries, nothing held out."""
    if not model.preparation:
        raise ModelError(
            f"{config.model} does not tell how its text was split into words. Prepare a corpus "
            "(polyseme prepare) and embed that, or convert the model again with --language."
        )
    settings = {**model.preparation["settings"], "held_out": 0.0}
    texts = prepare.PrepareConfig(
        inputs=config.inputs,
        out=own_folder(config.out / PREPARED),
        corpus=build(CorpusConfig, settings),
        executor=config.executor,
        replace=config.replace,
    )
    return prepare.run(texts, progress).corpus


def _narrow(
    config: EmbedConfig, chosen: VectorsConfig, corpus: Corpus, progress: Progress
) -> Path | None:
    from polyseme.vectors.bulk import narrow_once

    if chosen.width is not None:
        progress.log("Looking for the directions to keep in a sample of the corpus.")
    return narrow_once(config.model, chosen, corpus, config.out)


def _finish(
    config: EmbedConfig,
    work: "EmbedPart",
    receipts: list[Receipt],
    *,
    model: "Model",
    corpus: Corpus,
) -> None:
    """Write the manifest, which makes the folder one of vectors."""
    from polyseme.vectors.bulk import ENVIRONMENT
    from polyseme.vectors.narrowing import NAME as NARROWING
    from polyseme.vectors.narrowing import Narrowing

    chosen = work.config
    files = {name: facts for receipt in receipts for name, facts in receipt.files.items()}
    narrowing = Narrowing.load(config.out) if chosen.width is not None else None
    names = [CONFIG, ENVIRONMENT, *([] if narrowing is None else [NARROWING])]
    files |= {name: describe_file(config.out / name) for name in names}
    encoder = model.config.encoder
    counts = {
        name: sum(receipt.counts[name] for receipt in receipts) for name in receipts[0].counts
    }
    manifest: dict[str, Any] = {
        "vectors_format": FORMAT_VERSION,
        "model": sha256_of(config.model / MODEL_MANIFEST),
        "corpus": sha256_of(corpus.folder / MANIFEST),
        "settings": chosen.model_dump(mode="json"),
        "environment": work.environment,
        "columns": chosen.columns(encoder.num_layers),
        "width": chosen.width or encoder.output_width,
        "variance_kept": [] if narrowing is None else narrowing.kept,
        "counts": counts,
        "files": files,
    }
    write_text(config.out / MANIFEST, canonical_json(manifest))
