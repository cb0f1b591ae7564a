"""Turn texts into a corpus: sentences, words and a vocabulary.

Reads plain text, HTML, PDF, DOCX, EPUB, JSONL, CSV, TSV, Parquet, CoNLL-U, vertical text (.vrt)
and TEI/XML, also compressed (.gz, .bz2, .xz, .zst) and mixed in one folder; writes the corpus
folder that the other commands start from.

Examples:

  polyseme prepare novels/ --language en --out corpus/novels

  polyseme prepare books/ --language en --name-pattern '{year}_{author}_{title}' --out corpus/books

  polyseme prepare 'news-*.jsonl.gz' --language de --meta date --out corpus/news

  polyseme prepare wiki.txt --language zh --segmenter characters --out corpus/zh
"""

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, ClassVar

from pydantic import Field
from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.table import Table

from polyseme.config import Folder, OptionalFolder, Settings, build, to_toml
from polyseme.display import counted, html_table, summary, titled
from polyseme.errors import ConfigError, CorpusError, InputError, extra_needed_for
from polyseme.executors import ExecutorConfig, JobResult, ShardInput, ShardJob, run_job
from polyseme.limits import JSON_BYTES, LimitError, parse_json, read_lines
from polyseme.progress import SILENT, Progress
from polyseme.storage.files import (
    describe_files,
    disk_faults_explained,
    hold_folder,
    write_text,
)
from polyseme.storage.folders import (
    CONFIG,
    MANIFEST,
    FileList,
    check_same_settings,
    write_manifest,
)
from polyseme.storage.installed import upos_task
from polyseme.storage.remote_folders import Output, open_output
from polyseme.text.annotation import Annotator, JiebaTagger, Lemmatizer
from polyseme.text.corpus import ARTIFACT, QUARANTINE, SHARDS, VOCABULARY, WORDS, Corpus
from polyseme.text.file_metadata import FileMetadata, MetadataTable, NamePattern
from polyseme.text.formats.marked import check_attributes
from polyseme.text.plan import plan_shards
from polyseme.text.prepare import Annotators, fingerprint, shard_function
from polyseme.text.preprocessing import Preparation
from polyseme.text.records import WHOLE_FILES, ReadStats, list_reasons
from polyseme.text.remote_sources import local_inputs
from polyseme.text.sampling import count_letters, sniff, wrong_script
from polyseme.text.segmenters.jieba_words import read_user_words
from polyseme.text.settings import CorpusConfig
from polyseme.text.sources import LEAVES_FOLDER, FoundSources, find_sources
from polyseme.text.streams import suggested
from polyseme.text.word_counts import (
    COUNTS,
    CountedRange,
    count_range,
    count_words,
    merge_counts,
    most_frequent,
    with_word_counts,
)

_BYTES_PER_INPUT = 24  # in the manifest, beside its name
_BYTES_BESIDES = 2 << 20  # for settings and counts
_COUNTED_TOGETHER = 256  # shards; beyond that, opening them all would keep this process
_COUNTING = "counting"  # folder, in the output, for counts of ranges until they are merged
_LOOKED_AT = 10_000  # entries of the quarantine
_TOLD = 3
_JUDGED = 1_000  # words, the most frequent ones


class PrepareConfig(Settings):
    """What to read, where to write, and where the work is done."""

    arguments: ClassVar[tuple[str, ...]] = ("inputs",)

    inputs: tuple[str, ...]
    """Files, folders or globs to read; also s3://BUCKET/PATH and the like."""
    out: Folder
    """Folder to write the corpus to, or the address of one in a bucket."""
    corpus: CorpusConfig
    """What the corpus is."""
    executor: ExecutorConfig = Field(default_factory=ExecutorConfig)
    """Where the work is done."""
    name_pattern: str | None = None
    """Pattern of file names, for example {year}_{author}_{title}; each field becomes metadata."""
    metadata: Path | None = None
    """CSV or TSV table of metadata with a column "file"; its other columns become metadata."""
    user_dictionary: Path | None = None
    """User dictionary in jieba's format: one word per line, alone or with a frequency."""
    upos_task: OptionalFolder = None
    """Trained tagging task that --annotate upos adds parts of speech with: its folder, or its name
    if it is installed. Default: en-upos for en, jieba for zh."""
    replace: bool = False
    """Rebuild the corpus if the folder holds one made with other settings."""


@dataclass(frozen=True)
class PrepareResult:
    """The finished corpus and how the run went."""

    corpus: Corpus
    seconds: float
    shards_found: int  # how many shards an earlier run had finished
    advice: list[str]

    def to_json(self) -> dict[str, Any]:
        """Plain values: what was read and written, how long it took, advice."""
        how = {"seconds": round(self.seconds, 3), "shards_found": self.shards_found}
        folder = self.corpus.address
        return {"folder": folder, **self.corpus.read_stats, **how, "notes": self.advice}

    def __repr__(self) -> str:
        return summary("PrepareResult", repr(self.corpus), f"{self.seconds:,.1f} s", *self.advice)

    def _repr_html_(self) -> str:
        counts = self.corpus.read_stats
        rows = [(label.strip(), counts[name]) for label, name in _LINES]
        advice = [(line, "") for line in self.advice]
        return html_table(f"Accounting of {self.corpus.address}", [*rows, *advice])


def run(config: PrepareConfig, progress: Progress = SILENT) -> PrepareResult:
    """Prepare a corpus, or go on with one that was begun."""
    began = time.monotonic()
    if not config.inputs:
        raise ConfigError("Nothing to prepare: name at least one file, folder or glob.")
    outside = _outside(config)
    config = _resolved(config, outside)
    with local_inputs(config.inputs) as inputs:
        config = config.model_copy(update={"inputs": inputs.inputs})
        found = find_sources(config.inputs, config.corpus)
        found, notices = sniff(_without_own_files(found, config), config.corpus)
        check_attributes(found.sources, config.corpus)
        annotators = _annotators(config)  # or an error, before the work begins
        sources, missing = outside.add_to(found.sources)
        found = replace(found, sources=sources)
        _log_sources(found, [*notices, *missing], progress)
        for name, annotator in zip(config.corpus.added_attributes, annotators, strict=True):
            progress.log(f"Annotating {name} by {annotator.description}.")
        shards = plan_shards(inputs.known(found.sources), config.corpus)
        _check_manifest_fits(found)
        with disk_faults_explained(config.out), open_output(config.out) as output:
            config = config.model_copy(update={"out": output.folder})
            with hold_folder(config.out):
                _check_folder(config, output)
                (config.out / MANIFEST).unlink(missing_ok=True)  # unfinished from here on
                write_text(config.out / CONFIG, to_toml(corpus=config.corpus))
                output.keep(CONFIG)
                job = _job(config.corpus, annotators, output)
                result = _make_shards(job, inputs.shards(shards), config, output, progress)
                _finish(config, found, annotators, result, output, progress)
    corpus = Corpus.open(config.out)
    advice = [*_advise(corpus), *missing]
    return PrepareResult(corpus, time.monotonic() - began, result.num_found, advice)


def _check_manifest_fits(found: FoundSources) -> None:
    """Refuse, before the work begins, what no manifest could hold when it is done."""
    named = [source.name for source in found.sources]
    named += [name + why for name, why in found.passed_over]
    if sum(len(text.encode()) + _BYTES_PER_INPUT for text in named) > JSON_BYTES - _BYTES_BESIDES:
        raise InputError(
            f"{len(found.sources):,} files are too many for one corpus: their names fill its "
            "manifest. Put several texts into a file, as JSON lines say, or make several corpora."
        )


def _outside(config: PrepareConfig) -> FileMetadata:
    """What is known of the files from their names and from a table."""
    return FileMetadata(
        NamePattern.parse(config.name_pattern) if config.name_pattern else None,
        MetadataTable.read(config.metadata, config.corpus.encoding) if config.metadata else None,
    )


def _without_own_files(found: FoundSources, config: PrepareConfig) -> FoundSources:
    """The table and the dictionary may lie beside the texts, and are none."""
    own = {path.resolve() for path in (config.metadata, config.user_dictionary) if path}
    is_own = {source.name: source.path.resolve() in own for source in found.sources}
    texts = [source for source in found.sources if not is_own[source.name]]
    if not texts:
        raise InputError(f"No text was found in: {', '.join(config.inputs)}.")
    said = [(name, "read as metadata or dictionary") for name in is_own if is_own[name]]
    return FoundSources(texts, [*found.passed_over, *said])


def _resolved(config: PrepareConfig, outside: FileMetadata) -> PrepareConfig:
    """What stands in other files becomes part of the corpus's settings."""
    corpus = config.corpus.model_dump()
    corpus["meta"] = tuple(dict.fromkeys((*config.corpus.meta, *outside.columns)))
    if config.user_dictionary:
        corpus["user_words"] += read_user_words(config.user_dictionary)
    resolved = build(CorpusConfig, corpus)
    return config.model_copy(update={"corpus": resolved})


def show(result: PrepareResult) -> RenderableType:
    """The counts as a table, and what to do next."""
    counts = result.corpus.read_stats
    table = Table()
    table.add_column("", no_wrap=True)
    table.add_column("count", justify="right")
    for label, name in _LINES:
        table.add_row(label, f"{counts[name]:,}")
        if name == "quarantined":
            for reason, number in list_reasons(counts["quarantine_reasons"]):
                table.add_row(f"    {reason}", number, style="yellow")
        if name in _SECTION_ENDS:
            table.add_section()
    lines = [_how_it_went(result), *result.advice]
    lines.append(f"Next: polyseme inspect {quote(result.corpus.address)}")
    return Group(titled(f"Read statistics of {result.corpus.address}", table), *lines)


def _how_it_went(result: PrepareResult) -> str:
    time_taken = f"{result.seconds:,.1f} s."
    if result.shards_found:
        were = "was" if result.shards_found == 1 else "were"
        reused = counted(result.shards_found, "shard")
        return f"{time_taken} {reused} from an earlier run {were} reused."
    speed = result.corpus.read_stats["words"] / result.seconds
    return f"{time_taken} {speed:,.0f} words/s." if result.seconds > 5 else time_taken


_LINES = [
    ("read (lines, rows or sentences)", "read"),
    ("  = blank", "blank"),
    ("  + quarantined", "quarantined"),
    ("  + kept", "kept"),
    ("kept", "kept"),
    ("  - joined to the previous line", "joined"),
    ("  = records", "records"),
    ("sentences found in them", "sentences_found"),
    ("  + from splitting long ones", "sentences_added"),
    ("  = sentences written", "sentences"),
    ("words", "words"),
    ("distinct words", "distinct_words"),
    ("documents", "documents"),
    ("  of these held out", "held_out_documents"),
]
_SECTION_ENDS = {"records", "sentences", "distinct_words"}


def _log_sources(found: FoundSources, notices: list[str], progress: Progress) -> None:
    """Say what was found before any work begins."""
    for kind, files, size in found.summary():
        progress.log(f"Found {files:,} file{'s' * (files > 1)} ({kind}), {decimal(size)}.")
    for name, reason in found.passed_over[:10]:
        progress.log(f"Skipped {name}: {reason}.")
    if len(found.passed_over) > 10:
        progress.log(f"Skipped {len(found.passed_over) - 10:,} more.")
    for notice in notices:
        progress.log(notice)


def _check_folder(config: PrepareConfig, output: Output) -> None:
    """Refuse to write over a corpus of other settings, or over something not ours."""
    check_same_settings(
        config.out,
        config.corpus,
        table="corpus",
        error=CorpusError,
        refusal="was prepared with other settings: {}. Choose another --out, or add --replace to "
        "rebuild it.",
        may_differ=config.replace or not output.has_shards,
    )


def _annotators(config: PrepareConfig) -> Annotators:
    """What adds each attribute that is to be added, in their order."""
    corpus = config.corpus
    if config.upos_task is not None and "upos" not in corpus.added_attributes:
        raise ConfigError(
            "--upos-task is for --annotate upos, which is not asked for, or is kept by "
            "--word-attributes."
        )
    found: list[Annotator] = []
    for name in corpus.added_attributes:
        match name:
            case "lemma":
                found.append(Lemmatizer(corpus.language))
                found[-1].load()
            case "upos":
                found.append(_tagger(config))
    return tuple(found)


def _tagger(config: PrepareConfig) -> Annotator:
    corpus = config.corpus
    if config.upos_task is None and corpus.language == "zh":
        if corpus.chosen_segmenter == "characters":
            raise ConfigError(
                "--annotate upos needs words, and --segmenter characters makes a word of each "
                "Chinese character. Use --segmenter jieba, leave upos out, or name a task that "
                "tags characters, with --upos-task."
            )
        return JiebaTagger()
    name = config.upos_task or upos_task(corpus.language)
    with extra_needed_for("--annotate upos"):
        from polyseme.tasks.prediction import TaskTagger

        return TaskTagger.open(name)


def _job(corpus: CorpusConfig, annotators: Annotators, output: Output) -> ShardJob:
    work = shard_function(corpus, annotators)
    return ShardJob(
        # In a store the words of a shard are counted where the shard is.
        work=work if output.store is None else partial(with_word_counts, work),
        fingerprint=fingerprint(corpus, annotators),
        folders=(SHARDS, WORDS, QUARANTINE),
    )


def _make_shards(
    job: ShardJob,
    shards: Sequence[ShardInput],
    config: PrepareConfig,
    output: Output,
    progress: Progress,
) -> JobResult:
    progress.start("Preparing", sum(shard.size for shard in shards))
    try:
        return run_job(
            job,
            shards,
            output.target,
            executor=config.executor,
            on_progress=progress.update,
            on_message=progress.log,
        )
    except FileNotFoundError as error:
        raise InputError(
            f"{error.filename} was there when the run began and is gone. Put it back, or name "
            "inputs without it, and run the command again."
        ) from error


def _finish(
    config: PrepareConfig,
    found: FoundSources,
    annotators: Annotators,
    result: JobResult,
    output: Output,
    progress: Progress,
) -> None:
    """Count the vocabulary, then write the manifest, which makes the corpus a corpus."""
    distinct = _count(config, result.files, output, progress)
    files = result.files.under(SHARDS, WORDS, QUARANTINE)
    files.own |= describe_files(config.out, (VOCABULARY, CONFIG))
    stats = ReadStats.total([result.counts])
    stats.check()
    _check_words(stats, config)
    write_manifest(
        config.out,
        ARTIFACT,
        files,
        preparation=Preparation.of(config.corpus).to_manifest(),
        annotators={
            name: each.recorded
            for name, each in zip(config.corpus.added_attributes, annotators, strict=True)
        },
        inputs={source.name: source.bytes for source in found.sources},
        passed_over=dict(found.passed_over),
        read_stats={**stats.as_json(), "distinct_words": distinct},
    )
    output.publish()
    output.remove(_COUNTING)
    output.fetch(list(files.under(QUARANTINE))[:_TOLD], files)


def _count(config: PrepareConfig, files: FileList, output: Output, progress: Progress) -> int:
    """Write the vocabulary; how many spellings there are. Of very many shards, workers count."""
    threads = config.executor.workers
    count: Callable[..., int] = count_words
    tables = files.under(SHARDS)
    if output.store is not None:
        tables, count = files.under(COUNTS), merge_counts
    if len(tables) > _COUNTED_TOGETHER:
        output, tables = _count_ranges(config, tables, output, progress)
        count = merge_counts
    else:
        progress.start("Counting words", 1)
    output.fetch(tables, tables)
    paths = [output.folder / name for name in tables]
    return count(paths, config.out / VOCABULARY, threads=threads)


def _count_ranges(
    config: PrepareConfig, tables: FileList, output: Output, progress: Progress
) -> tuple[Output, FileList]:
    pairs = ((name, each["sha256"]) for name, each in tables.items())
    ranges: list[CountedRange] = []
    while some := tuple(itertools.islice(pairs, _COUNTED_TOGETHER)):
        name = f"part-{len(ranges):05d}"
        ranges.append(CountedRange(name, config.out.resolve(), output.url, some))
    progress.start("Counting words", len(tables))
    counting = output.below(_COUNTING)
    job = ShardJob(count_range, "word counts 1", folders=(COUNTS,))
    result = run_job(
        job, ranges, counting.target, executor=config.executor, on_progress=progress.update
    )
    return counting, result.files


def _check_words(stats: ReadStats, config: PrepareConfig) -> None:
    """A corpus without a word is none."""
    counts = stats.counts
    if counts["words"]:
        return
    where = f" in {config.out / QUARANTINE}" if counts["quarantined"] else ""
    raise InputError(
        f"No words came out of the input: {counted(counts['read'], 'line')} read, "
        f"{counts['blank']:,} blank, {counts['quarantined']:,} quarantined{where}. "
        f"{_about_encoding(stats.reasons, config.corpus.language)}".rstrip(),
        *(f"  {told}" for told in _unread_files(config.out, stats.reasons)),
    )


def _advise(corpus: Corpus) -> list[str]:
    """What the user should know about the result, if anything."""
    counts = corpus.read_stats
    config = corpus.config
    layout = config.layout
    is_plain = any(name.endswith((".txt", ".text")) for name in corpus.manifest["inputs"])
    advice = [_about_links(corpus.manifest["passed_over"])]
    if counts["quarantined"]:
        advice.append(f"What was quarantined is in {corpus.address}/{QUARANTINE}, with reasons.")
        advice += _unread_files(corpus.folder, counts["quarantine_reasons"])
    if counts["quarantined"] > counts["kept"]:
        advice.append(_about_encoding(counts["quarantine_reasons"], config.language))
    advice.append(_about_language(corpus))
    if config.held_out and not counts["held_out_documents"]:
        smaller = (
            " Or define what a document is: --layout articles if blank lines separate documents, "
            "--layout lines if each line is one."
        )
        number = counts["documents"]
        none = f"None of the {number:,} documents was held out."
        advice.append(
            ("No document was held out: there is only one." if number == 1 else none)
            + " Reading words needs none; to train and evaluate a model, raise --held-out."
            + (smaller if is_plain and layout not in ("articles", "lines") else "")
        )
    if is_plain and layout == "articles" and counts["records"] < 1.2 * counts["documents"]:
        advice.append(
            "Nearly every document has one line only. If blank lines separate paragraphs here, not "
            "documents, use --layout unwrapped."
        )
    return [line for line in advice if line]


def _about_encoding(reasons: Mapping[str, int], language: str) -> str:
    """Advice where text was quarantined because its encoding was not the one stated."""
    if not any(reason.startswith("not-utf") for reason in reasons):
        return ""
    return (
        "Most of it is not UTF-8. Say which --encoding it has; for --language "
        f"{language} try {suggested(language)}."
    )


def _unread_files(folder: Path, reasons: Mapping[str, int]) -> list[str]:
    """Some of the files that could not be read, or not to the end, each with the reason."""
    if not WHOLE_FILES.intersection(reasons):
        return []
    entries = itertools.islice(_quarantined(folder), _LOOKED_AT)
    told = (
        f"{each['source']}: {each['reason']}: {each['detail']}."
        for each in entries
        if each["reason"] in WHOLE_FILES
    )
    return list(itertools.islice(told, _TOLD))


def _quarantined(folder: Path) -> Iterator[dict[str, str]]:
    for path in sorted((folder / QUARANTINE).glob("*.jsonl")):
        for line in read_lines(path):
            try:
                yield parse_json(line.decode("utf-8"))
            except (LimitError, json.JSONDecodeError, UnicodeError):
                continue  # a line that comes in parts


def _about_links(passed_over: Mapping[str, str]) -> str:
    links = [name for name, reason in passed_over.items() if reason == LEAVES_FOLDER]
    if not links:
        return ""
    more = ", …" if len(links) > 1 else ""
    were = "were" if len(links) > 1 else "was"
    return f"{len(links):,} of the files {were} skipped ({links[0]}{more}): a {LEAVES_FOLDER}."


def _about_language(corpus: Corpus) -> str:
    """A corpus written in another script than its language, by its most frequent words."""
    letters = han = 0
    for word in most_frequent(corpus.vocabulary, _JUDGED):
        of_word, of_these = count_letters(word.word)
        letters, han = letters + of_word * word.count, han + of_these * word.count
    wrong = wrong_script(han / letters if letters else -1.0, corpus.config.language)
    return f"The corpus has {wrong} Then prepare it again with --replace." if wrong else ""
