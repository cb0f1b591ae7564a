r"""Index a corpus: compute the features of word uses once, so that later queries are fast.

Writes a folder with the features of the uses of each content word, or of the words you name,
sorted by word. `polyseme senses` and `nearest` read it with --index. You can stop it at any time:
run the same command again to resume. An index fits only this model and this version of the corpus.

Examples:

  polyseme index corpus/en --model models/en-mini --out index/en

  polyseme index corpus/en --model models/en-mini --words bank,plant,play \
      --out index/three

  polyseme index corpus/zh --model models/zh-mini --min-uses 200 --max-uses 1000 \
      --out index/zh
"""

import time
from dataclasses import dataclass, replace
from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field
from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.config import Folder, Settings, to_toml
from polyseme.display import numbers, on_one_line
from polyseme.embedding.settings import ModelName
from polyseme.errors import UseIndexError
from polyseme.executors import ExecutorConfig, ModelExecutorConfig
from polyseme.meanings.settings import UseIndexConfig
from polyseme.progress import SILENT, Progress, duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polyseme.executors import JobResult, ShardJob
    from polyseme.executors.commit import Target
    from polyseme.meanings.index.folder import IndexFolder
    from polyseme.meanings.index.word_range import WordRange
    from polyseme.storage.remote_folders import Output


class IndexConfig(Settings):
    """Which corpus, by which model, and where to."""

    arguments: ClassVar[tuple[str, ...]] = ("corpus",)

    corpus: Folder
    """The corpus folder."""
    model: ModelName = None
    out: Folder
    """Folder to write the index to, or the address of one in a bucket."""
    index: UseIndexConfig = UseIndexConfig()
    """Which uses."""
    executor: ModelExecutorConfig = Field(default_factory=ModelExecutorConfig)
    """Where the work is done."""
    replace: bool = False
    """Rebuild the index if the folder holds one of another model, corpus or choice of words.
    The old one can be read until the new one is finished."""


@dataclass(frozen=True)
class IndexResult:
    """The finished index and how the run went."""

    index: "IndexFolder"
    num_words: int
    seconds: float
    words_now: int  # words that were read in this run, not in one before
    parts_found: int  # how many parts an earlier run had finished
    was_there: bool  # whether the index was finished, and whole, before

    def to_json(self) -> dict[str, Any]:
        """Plain values: what the index has, how long it took."""
        return {
            "folder": self.index.address,
            "words": self.num_words,
            **self.index.manifest["counts"],
            "num_bytes": self.index.num_bytes,
            "seconds": round(self.seconds, 3),
            "parts_found": self.parts_found,
            "was_there": self.was_there,
        }


def run(config: IndexConfig, progress: Progress = SILENT) -> IndexResult:
    """Make an index, or go on with one that was begun."""
    from polyseme.devices import num_threads
    from polyseme.storage.files import disk_faults_explained, hold_folder
    from polyseme.storage.remote_folders import open_output

    began = time.monotonic()
    with (
        disk_faults_explained(config.out),
        num_threads(config.index.threads),
        open_output(config.out) as output,
    ):
        config = config.model_copy(update={"out": output.folder})
        with hold_folder(config.out):
            return _run(config, output, progress, began)


def _run(config: IndexConfig, output: "Output", progress: Progress, began: float) -> IndexResult:
    from polyseme.embedding.corpus_parts import parts_of
    from polyseme.embedding.model_work import ModelWork
    from polyseme.executors import run_job
    from polyseme.meanings.index.build import choose_words, finished, write_index, write_words
    from polyseme.meanings.index.folder import PARTS, WORDS, IndexFolder
    from polyseme.meanings.index.row_group import held_encoder, index_part
    from polyseme.storage.files import write_text
    from polyseme.storage.folders import CONFIG
    from polyseme.storage.installed import default_model
    from polyseme.text.corpus import Corpus

    corpus = Corpus.open(config.corpus, without_shards=True)
    model = config.model or default_model(corpus.config.language)
    if finished(output, model, corpus, config.index, may_differ=config.replace):
        found = IndexFolder.open(config.out)
        table = found.path("words", ".parquet").relative_to(config.out).as_posix()
        output.fetch([table], found.manifest["files"])
        return IndexResult(found, found.num_words, time.monotonic() - began, 0, 0, was_there=True)
    _check_folder(config)
    device = config.executor.chosen_device()
    work = ModelWork.start(model, config.index.vectors, device, same_bits=config.executor.same_bits)
    encoder = held_encoder(replace(work, device="cpu"))  # GPUs are for the workers
    corpus.check_same_words(encoder.embedder.preparation)
    words = choose_words(corpus, config.index)
    write_text(config.out / CONFIG, to_toml(index=config.index))
    write_words(words, config.out / WORDS)
    output.keep(CONFIG)
    output.keep(WORDS)
    function = index_part(work, config.index, config.out / WORDS, corpus)
    parts = parts_of(corpus)
    progress.start("Describing uses", sum(part.size for part in parts))
    result = run_job(
        work.job(function, function.key, PARTS),
        parts,
        output.target,
        executor=config.executor.on(device),
        on_progress=progress.update,
        on_message=progress.log,
    )

    def sort(job: "ShardJob", ranges: "Sequence[WordRange]", target: "Target") -> "JobResult":
        progress.start("Sorting uses by word", sum(each.size for each in ranges))
        executor = config.executor.on("cpu")
        if len(ranges) == 1:  # sorted before a cluster would have begun
            executor = ExecutorConfig(workers=1)
        return run_job(
            job,
            ranges,
            target,
            executor=executor,
            on_progress=progress.update,
            on_message=progress.log,
        )

    found = write_index(output, function, encoder, corpus, words, result, sort)
    words_now = result.counts_now.get("words_read", 0)
    return IndexResult(
        found, len(words), time.monotonic() - began, words_now, result.num_found,
        was_there=False,
    )  # fmt: skip


def _check_folder(config: IndexConfig) -> None:
    """Refuse to go on with an index of other settings, or to write over something not ours."""
    from polyseme.storage.folders import check_same_settings

    check_same_settings(
        config.out,
        config.index,
        table="index",
        error=UseIndexError,
        refusal="was begun with other settings: {}. Choose another --out, or add --replace.",
        may_differ=config.replace,
    )


def show(result: IndexResult) -> RenderableType:
    """What the index has, what it weighs, and what to do next."""
    counts: dict[str, Any] = result.index.manifest["counts"]
    table = Table("", *numbers(""), show_header=False)
    size = result.index.num_bytes
    rows = {
        "words": f"{result.num_words:,}",
        "uses": f"{counts['uses']:,}",
        "sentences with uses": f"{counts['sentences_kept']:,} of {counts['sentences']:,}",
        "size": f"{size / 1e6:,.1f} MB",
        "bytes per use": f"{size / max(1, counts['uses']):,.0f}",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    parts: list[RenderableType] = [table]
    if result.was_there:
        parts.append("The index was already there, and is intact.")
    else:
        speed = result.words_now / max(1e-9, result.seconds)
        parts.append(f"Took {duration(result.seconds)}, {speed:,.0f} words/s.")
    if result.parts_found:
        parts.append(f"{result.parts_found:,} parts of an earlier run were reused.")
    folder = quote(result.index.address)
    parts.append(on_one_line(f"Next: polyseme senses WORD --in CORPUS --index {folder}"))
    return Group(*parts)
