"""Turn texts into a corpus: sentences, words and a vocabulary.

Reads plain text, JSONL, CSV, TSV, Parquet, CoNLL-U, vertical text (.vrt) and TEI/XML, also
packed as .gz, .bz2, .xz or .zst; writes one folder that everything else starts from.

Examples:

  polyseme prepare novels/ --language en --out corpus/novels

  polyseme prepare 'news-*.jsonl.gz' --language de --meta date --out corpus/news

  polyseme prepare wiki.txt --language zh --segmenter characters --out corpus/zh
"""

import time
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from pydantic import Field
from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.table import Table

from polyseme.config import Settings, build, differences, read_toml, to_toml
from polyseme.engines import ExecutorConfig, Receipt, ShardJob, hold_folder, run_job
from polyseme.errors import ConfigError, CorpusError, InputError
from polyseme.files import (
    WORK,
    canonical_json,
    describe_file,
    disk_faults_explained,
    make_output,
    write_text,
)
from polyseme.progress import NullProgress, Progress
from polyseme.tables import titled
from polyseme.text.accounting import Accounting, tell_reasons
from polyseme.text.advice import about_encoding, advise
from polyseme.text.corpus import CONFIG, MANIFEST, VOCABULARY, Corpus
from polyseme.text.pieces import Batch
from polyseme.text.plan import plan_shards
from polyseme.text.prepare import describe_preparation, fingerprint, shard_function
from polyseme.text.sampling import look_into
from polyseme.text.settings import CorpusConfig
from polyseme.text.sources import Found, find_sources
from polyseme.text.vocabulary import count_words


class PrepareConfig(Settings):
    """What to read, where to write, and where the work is done."""

    inputs: tuple[str, ...]
    """Files, folders or globs to read."""
    out: Path
    """Folder to write the corpus to."""
    corpus: CorpusConfig
    """What the corpus is."""
    executor: ExecutorConfig = Field(default_factory=ExecutorConfig)
    """Who does the work."""
    replace: bool = False
    """Make the corpus anew if the folder holds one made with other settings."""


@dataclass(frozen=True)
class Prepared:
    """The finished corpus and how the run went."""

    corpus: Corpus
    seconds: float
    shards_found: int
    """How many shards an earlier run had finished."""
    advice: list[str]


def run(config: PrepareConfig, progress: Progress | None = None) -> Prepared:
    """Prepare a corpus, or go on with one that was begun."""
    progress = progress or NullProgress()
    began = time.monotonic()
    if not config.inputs:
        raise ConfigError("Nothing to prepare: name at least one file, folder or glob.")
    found, notices = look_into(find_sources(config.inputs, config.corpus), config.corpus)
    _tell(found, notices, progress)
    batches = plan_shards(found.sources, config.corpus)
    with disk_faults_explained(config.out):
        make_output(config.out)
        with hold_folder(config.out):
            _check_folder(config)
            (config.out / MANIFEST).unlink(missing_ok=True)  # unfinished from here on
            write_text(config.out / CONFIG, to_toml(corpus=config.corpus))
            receipts = _make_shards(batches, config, progress)
            _finish(config, found, receipts, progress)
    corpus = Corpus.open(config.out)
    shards_found = sum(receipt.was_there for receipt in receipts)
    return Prepared(corpus, time.monotonic() - began, shards_found, advise(corpus))


def show(result: Prepared) -> RenderableType:
    """The accounting as a table, and what to do next."""
    counts = result.corpus.accounting
    table = Table()
    table.add_column("", no_wrap=True)
    table.add_column("count", justify="right")
    for label, name in _LINES:
        table.add_row(label, f"{counts[name]:,}")
        if name == "quarantined":
            for reason, number in tell_reasons(counts["quarantine_reasons"]):
                table.add_row(f"    {reason}", number, style="yellow")
        if name in _SECTION_ENDS:
            table.add_section()
    lines = [_how_it_went(result), *result.advice]
    lines.append(f"Next: polyseme inspect {quote(str(result.corpus.folder))}")
    return Group(titled(f"Accounting of {result.corpus.folder}", table), *lines)


def _how_it_went(result: Prepared) -> str:
    told = f"{result.seconds:,.1f} s."
    if result.shards_found:
        return f"{told} {result.shards_found:,} shards were there from before and were kept."
    speed = result.corpus.accounting["words"] / result.seconds
    return f"{told} {speed:,.0f} words/s." if result.seconds > 5 else told


_LINES = [
    ("read (lines, rows or sentences)", "read"),
    ("  = blank", "blank"),
    ("  + quarantined", "quarantined"),
    ("  + kept", "kept"),
    ("kept", "kept"),
    ("  - joined to the line before", "joined"),
    ("  = records", "records"),
    ("sentences found in them", "sentences_found"),
    ("  + added by cutting long ones", "sentences_added"),
    ("  = sentences written", "sentences"),
    ("words", "words"),
    ("distinct words", "distinct_words"),
    ("documents", "documents"),
    ("  of these held out", "held_out_documents"),
]
_SECTION_ENDS = {"records", "sentences", "distinct_words"}


def _tell(found: Found, notices: list[str], progress: Progress) -> None:
    """Say what was found before any work begins."""
    for kind, files, size in found.summary():
        progress.log(f"Found {files:,} file{'s' * (files > 1)} ({kind}), {decimal(size)}.")
    for name, reason in found.passed_over[:10]:
        progress.log(f"Passed over {name}: {reason}.")
    if len(found.passed_over) > 10:
        progress.log(f"Passed over {len(found.passed_over) - 10:,} more.")
    for notice in notices:
        progress.log(notice)


def _check_folder(config: PrepareConfig) -> None:
    """Refuse to write over something made with other settings, or over something not ours."""
    path = config.out / CONFIG
    if not path.is_file():
        others = {other.name for other in config.out.iterdir()} - {".lock", WORK}
        if others:
            raise CorpusError(
                f"{config.out} holds other things ({', '.join(sorted(others)[:3])}). "
                "Choose a new or empty folder for --out."
            )
        return
    before = build(CorpusConfig, read_toml(path).get("corpus", {}))
    has_shards = any((config.out / "receipts").glob("*.json"))
    if before == config.corpus or not has_shards or config.replace:
        return
    raise CorpusError(
        f"{config.out} was prepared with other settings: {differences(before, config.corpus)}. "
        "Choose another --out, or add --replace to make it anew."
    )


def _make_shards(batches: list[Batch], config: PrepareConfig, progress: Progress) -> list[Receipt]:
    job = ShardJob(
        work=shard_function(config.corpus),
        fingerprint=fingerprint(config.corpus),
        folders=("shards", "quarantine"),
        linkable=("shards",),
    )
    progress.start("Preparing", sum(batch.size for batch in batches))
    try:
        return run_job(
            job, batches, config.out, engine=config.executor.chosen, on_progress=progress.update
        )
    except FileNotFoundError as error:
        raise InputError(
            f"{error.filename} was there when the run began and is gone. Put it back, or name "
            "inputs without it, and run the command again."
        ) from error


def _finish(
    config: PrepareConfig, found: Found, receipts: list[Receipt], progress: Progress
) -> None:
    """Count the vocabulary, then write the manifest, which makes the corpus a corpus."""
    files = {name: facts for receipt in receipts for name, facts in receipt.files.items()}
    shards = [config.out / name for name in files if name.startswith("shards/")]
    progress.start("Counting words", 1)
    distinct = count_words(shards, config.out / VOCABULARY, threads=config.executor.workers)
    progress.update(1)
    for name in (VOCABULARY, CONFIG):
        files[name] = describe_file(config.out / name)
    accounting = Accounting.total(receipt.counts for receipt in receipts)
    accounting.check()
    _check_words(accounting, config.out)
    manifest: dict[str, Any] = {
        "preparation": describe_preparation(config.corpus),
        "settings": config.corpus.model_dump(mode="json"),
        "inputs": {source.name: source.bytes for source in found.sources},
        "shard_inputs": {receipt.name: receipt.input for receipt in receipts},
        "passed_over": dict(found.passed_over),
        "accounting": {**accounting.as_json(), "distinct_words": distinct},
        "files": files,
    }
    write_text(config.out / MANIFEST, canonical_json(manifest))


def _check_words(accounting: Accounting, folder: Path) -> None:
    """A corpus without a word is none."""
    counts = accounting.counts
    if counts["words"]:
        return
    where = f" set aside in {folder / 'quarantine'}" if counts["quarantined"] else " set aside"
    raise InputError(
        f"No words came out of the input: {counts['read']:,} lines read, {counts['blank']:,} "
        f"blank, {counts['quarantined']:,}{where}. {about_encoding(accounting.reasons)}"
    )
