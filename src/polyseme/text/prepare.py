"""One batch of input pieces in, one shard with its quarantine and accounting out.

This is the function the engines run. It is a pure function of the files and the settings: no
clock, no randomness, no order of workers enters its output.
"""

import contextlib
import gc
import hashlib
import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any

from polyseme import __version__
from polyseme.errors import EngineError
from polyseme.files import canonical_json, sha256_of
from polyseme.text.accounting import Accounting
from polyseme.text.clean import UnfitTextError, clean, describe_script
from polyseme.text.formats import read_piece
from polyseme.text.formats.marked import remake
from polyseme.text.pieces import Batch, Piece
from polyseme.text.records import Blank, Record, Rejected, quote
from polyseme.text.segmenters import Segmenter, Words, describe_segmenter, load_segmenter
from polyseme.text.sentences import cut_long, split_sentences
from polyseme.text.settings import CorpusConfig
from polyseme.text.shards import ShardWriter

FORMAT_VERSION = 2


def describe_preparation(config: CorpusConfig) -> dict[str, Any]:
    """All that decides the words besides the text: goes into the manifest, and into models."""
    return {
        "format": FORMAT_VERSION,
        "polyseme": __version__,
        "segmenter": describe_segmenter(config.chosen_segmenter, config.language),
        "script": describe_script(config),
    }


@lru_cache(maxsize=4)
def fingerprint(config: CorpusConfig) -> str:
    """Hash of settings, tools and this room's own code: other results need another one."""
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    code = [f"{path.name} {sha256_of(path)}" for path in sources]
    parts = [config.model_dump(mode="json"), describe_preparation(config), code]
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()


def shard_function(config: CorpusConfig) -> "partial[dict[str, Any]]":
    """The work on one shard with these settings, for wherever it will be done."""
    return partial(_prepare_elsewhere, config, fingerprint(config))


def _prepare_elsewhere(
    config: CorpusConfig, expected: str, batch: Batch, folder: Path, report: Callable[[int], None]
) -> dict[str, Any]:
    """`prepare_shard`, if this worker would do it just as the process that sent it here."""
    if fingerprint(config) != expected:
        raise EngineError(
            f"A worker on {platform.node()} has other versions than the process that started the "
            f"run: {describe_preparation(config)}. Install the same Polyseme, spaCy and jieba on "
            "all nodes."
        )
    return prepare_shard(config, batch, folder, report)


def prepare_shard(
    config: CorpusConfig,
    batch: Batch,
    folder: Path,
    report: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Write `shards/NAME.parquet`, and `quarantine/NAME.jsonl` if anything was set aside.

    `report` is told of the input's bytes as they are read.
    """
    segmenter = load_segmenter(config.chosen_segmenter, config.language)
    accounting = Accounting()
    quarantine = folder / "quarantine" / f"{batch.name}.jsonl"
    quarantine.parent.mkdir()
    with (
        _no_cycle_collection(),
        ShardWriter(folder / "shards" / f"{batch.name}.parquet", config.meta) as writer,
        quarantine.open("w", encoding="utf-8", newline="\n") as aside,
    ):
        for piece in batch.pieces:
            work = _PieceWork(config, segmenter, accounting, writer, aside)
            work.run(replace(piece, source=replace(piece.source, on_read=report)))
    if not quarantine.stat().st_size:
        quarantine.unlink()
        quarantine.parent.rmdir()
    accounting.check()
    return accounting.as_json()


@dataclass
class _PieceWork:
    """The journey of one piece through all steps, with the document it is in."""

    config: CorpusConfig
    segmenter: Segmenter
    accounting: Accounting
    writer: ShardWriter
    aside: IO[str]
    document: tuple[str, int] | None = None
    position: int = 0
    is_held_out: bool = False

    def run(self, piece: Piece) -> None:
        counts = self.accounting.counts
        counts["documents_continued"] += piece.continues
        for item in read_piece(piece, self.config):
            counts["read"] += item.units
            match item:
                case Blank():
                    counts["blank"] += item.units
                case Rejected():
                    self._set_aside(item, piece)
                case Record():
                    self._keep(item, piece)

    def _set_aside(self, item: Rejected, piece: Piece) -> None:
        self.accounting.counts["quarantined"] += item.units
        self.accounting.reasons[item.reason] += item.units
        entry = {
            "source": piece.source.name,
            "place": item.place,
            "reason": item.reason,
            "detail": item.detail,
            "units": item.units,
            "quote": item.quote,
        }
        self.aside.write(json.dumps(entry, ensure_ascii=False) + "\n")

    def _keep(self, record: Record, piece: Piece) -> None:
        try:
            text, has_controls = clean(record.text, self.config)
        except UnfitTextError as error:
            unfit = Rejected(record.place, str(error), quote(record.text), "", units=record.units)
            self._set_aside(unfit, piece)
            return
        counts = self.accounting.counts
        counts["kept"] += record.units
        counts["joined"] += record.units - 1
        counts["records"] += 1
        counts["records_with_controls"] += has_controls
        if record.words is not None and text != record.text:
            # The source has the words marked: each is cleaned by itself, and stays a word.
            record = remake(record, lambda word: clean(word, self.config)[0])
            text = record.text
        words, spans = self._segment(record, text)
        counts["records_without_words"] += not words.words
        if words.words:
            self._enter(record)
        for number, (begin, end) in enumerate(spans):
            # Unique, as a name of a source and a place in it are; and the same in any shard.
            sentence_id = f"{piece.source.name}:{record.place}:{number}"
            self._write(sentence_id, record, text, words, begin, end)

    def _segment(self, record: Record, text: str) -> tuple[Words, Iterator[tuple[int, int]]]:
        """Words and sentence spans; those the source has marked are kept as they are."""
        if record.words is not None and record.starts is not None:
            words = Words(list(record.words), list(record.starts))
            found = [(0, len(words.words))] if words.words else []
        else:
            words = self.segmenter.split(text)
            found = split_sentences(words.words)
        return words, self._cut(found)

    def _cut(self, found: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        counts = self.accounting.counts
        for begin, end in found:
            parts = cut_long(begin, end, self.config.max_words)
            counts["sentences_found"] += 1
            counts["sentences_cut"] += len(parts) > 1
            counts["sentences_added"] += len(parts) - 1
            yield from parts

    def _enter(self, record: Record) -> None:
        document = record.document, record.opened
        if document == self.document:
            return
        self.document = document
        self.position = 0
        self.is_held_out = is_held_out(record.document, self.config.held_out)
        self.accounting.counts["documents"] += 1
        self.accounting.counts["held_out_documents"] += self.is_held_out

    def _write(
        self, sentence_id: str, record: Record, text: str, words: Words, begin: int, end: int
    ) -> None:
        first = words.starts[begin]
        last = words.starts[end - 1] + len(words.words[end - 1])
        starts = [start - first for start in words.starts[begin:end]]
        self.writer.add(
            (
                sentence_id,
                record.document,
                self.position,
                self.is_held_out,
                text[first:last],
                words.words[begin:end],
                starts,
                *record.meta,
            )
        )
        self.position += 1
        length = end - begin
        counts = self.accounting.counts
        counts["sentences"] += 1
        counts["words"] += length
        counts["characters"] += last - first
        self.accounting.lengths[length] += 1
        if self.is_held_out:
            counts["held_out_sentences"] += 1
            counts["held_out_words"] += length


@contextlib.contextmanager
def _no_cycle_collection() -> Iterator[None]:
    """Spare Python the search for cycles among millions of words; there are none to find.

    It took a quarter of the time. Memory is bounded by the row group all the same.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def is_held_out(document: str, share: float) -> bool:
    """Whether a document belongs to the held-out part: by its name alone, on every machine."""
    number = int.from_bytes(hashlib.sha256(document.encode("utf-8")).digest()[:8], "big")
    return number < share * 2**64
