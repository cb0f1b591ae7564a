"""The pieces of one shard in, the shard with its quarantine and its counts out.

This is the function the executors run. It is a pure function of the files and the settings: no
clock, no randomness, no order of workers enters its output.
"""

import contextlib
import gc
import hashlib
import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any

from polyseme.errors import ExecutorError
from polyseme.storage.files import canonical_json
from polyseme.text.annotation import Annotator
from polyseme.text.formats import read_piece
from polyseme.text.formats.marked import remake
from polyseme.text.plan import Piece, ShardPieces
from polyseme.text.preprocessing import (
    Preparation,
    PreprocessedText,
    TextPreprocessor,
    UnfitTextError,
    WordRange,
)
from polyseme.text.records import Blank, ReadStats, Record, Rejected, WordAttributes, quote
from polyseme.text.segmenters.patterns import WordSpans
from polyseme.text.settings import CorpusConfig
from polyseme.text.shards import ShardWordsWriter, ShardWriter, attribute_path

Done = tuple[dict[str, Any], str]
"""Counts of a shard, and the hash of what it was made from."""


FORMAT = 1
"""Raise it when the same texts, settings and tools give another shard: those of before are then
prepared again. A test compares shards with recorded ones."""


Annotators = tuple[Annotator, ...]
"""What adds each of `CorpusConfig.added_attributes`, in their order."""


@lru_cache(maxsize=4)
def fingerprint(config: CorpusConfig, annotators: Annotators = ()) -> str:
    """Hash of settings, tools and `FORMAT`: other results need another one."""
    parts = [Preparation.of(config).model_dump(mode="json", exclude={"polyseme"}), FORMAT]
    parts += ["attributes in words/"] if config.attributes else []
    parts += [annotator.description for annotator in annotators]
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()


def shard_function(config: CorpusConfig, annotators: Annotators = ()) -> "partial[Done]":
    """The work on one shard with these settings, for wherever it will be done."""
    expected = fingerprint(config, annotators)
    return partial(_prepare_elsewhere, config, expected, annotators=annotators)


def _prepare_elsewhere(
    config: CorpusConfig,
    expected: str,
    shard: ShardPieces,
    folder: Path,
    report: Callable[[int], None],
    *,
    annotators: Annotators = (),
) -> Done:
    """`prepare_shard`, if this worker would do it just as the process that sent it here."""
    if fingerprint(config, annotators) != expected:
        raise ExecutorError(
            f"A worker on {platform.node()} has other versions than the process that started the "
            f"run: {_tools(config, annotators)}. Install the same Polyseme, spaCy, jieba and "
            "simplemma on all nodes."
        )
    return prepare_shard(config, shard, folder, report, annotators=annotators)


def _tools(config: CorpusConfig, annotators: Annotators) -> dict[str, Any]:
    tools = Preparation.of(config).model_dump(exclude={"settings"})
    return tools | {"annotators": [annotator.description for annotator in annotators]}


def prepare_shard(
    config: CorpusConfig,
    shard: ShardPieces,
    folder: Path,
    report: Callable[[int], None] = lambda _: None,
    *,
    annotators: Annotators = (),
) -> Done:
    """Write `shards/NAME.parquet`, and its words and their attributes once more into `words/`, to
    be searched.

    And `quarantine/NAME.jsonl`, if anything was rejected.

    `report` is called with the number of bytes of input, as they are read. They are hashed as
    they are read, too: once, and just those that the shard is made from.
    """
    preprocessor = TextPreprocessor(config)
    assert len(annotators) == len(config.added_attributes)
    stats = ReadStats()
    contents: list[str] = []
    quarantine = folder / "quarantine" / f"{shard.name}.jsonl"
    quarantine.parent.mkdir()
    words = folder / "words" / f"{shard.name}.npy"
    searched = [words, *(attribute_path(words, name) for name in config.attributes)]
    with (
        _no_cycle_collection(),
        contextlib.ExitStack() as stack,
        ShardWriter(
            folder / "shards" / f"{shard.name}.parquet",
            config.meta,
            [stack.enter_context(ShardWordsWriter(path)) for path in searched],
            config.attributes,
            [annotator.load() for annotator in annotators],
        ) as writer,
        quarantine.open("w", encoding="utf-8", newline="\n") as rejected,
    ):
        for piece in shard.pieces:
            content = piece.content_hash()
            work = _PieceWork(preprocessor, stats, writer, rejected)
            work.run(replace(piece, source=replace(piece.source, on_read=report, content=content)))
            contents.append(content.hexdigest())
    if not quarantine.stat().st_size:
        quarantine.unlink()
        quarantine.parent.rmdir()
    stats.check()
    return stats.as_json(), shard.digest(contents)


@dataclass
class _PieceWork:
    """The journey of one piece through all steps, with the document it is in."""

    preprocessor: TextPreprocessor
    stats: ReadStats
    writer: ShardWriter
    rejected: IO[str]
    document: tuple[str, int] | None = None
    position: int = 0
    is_held_out: bool = False
    outside: dict[str, str | None] = field(default_factory=dict)

    def run(self, piece: Piece) -> None:
        self.outside = dict(piece.source.outside)
        counts = self.stats.counts
        counts["documents_continued"] += piece.continues
        for item in read_piece(piece, self.preprocessor.config):
            counts["read"] += item.units
            match item:
                case Blank():
                    counts["blank"] += item.units
                case Rejected():
                    self._quarantine(item, piece)
                case Record():
                    self._keep(item, piece)

    def _quarantine(self, item: Rejected, piece: Piece) -> None:
        self.stats.counts["quarantined"] += item.units
        self.stats.reasons[item.reason] += item.units
        entry = {
            "source": piece.source.name,
            "place": item.place,
            "reason": item.reason,
            "detail": item.detail,
            "units": item.units,
            "quote": item.quote,
        }
        self.rejected.write(json.dumps(entry, ensure_ascii=False) + "\n")

    def _keep(self, record: Record, piece: Piece) -> None:
        try:
            found = self._preprocess(record)
        except UnfitTextError as error:
            unfit = Rejected(record.place, error.reason, quote(record.text), "", units=record.units)
            self._quarantine(unfit, piece)
            return
        self._count(record, found)
        if found.sentences:
            self._enter(record)
        number = 0
        for spans in found.sentences:
            for span in spans:
                # Unique, as a name of a source and a place in it are; and the same in any shard.
                sentence_id = f"{piece.source.name}:{record.place}:{number}"
                self._write(sentence_id, record, found, span)
                number += 1

    def _meta(self, record: Record) -> tuple[str | None, ...]:
        """The user's columns: what is known of the file from outside goes first."""
        if not self.outside:
            return record.meta
        columns = self.preprocessor.config.meta
        return tuple(
            self.outside.get(name) or value
            for name, value in zip(columns, record.meta, strict=True)
        )

    def _preprocess(self, record: Record) -> PreprocessedText:
        """Words and sentences; those the source has marked are kept as they are."""
        preprocessor = self.preprocessor
        if record.words is None or record.starts is None:
            return preprocessor(record.text)
        text, has_controls = preprocessor.normalize(record.text)
        if text != record.text:  # each word is normalized by itself, and stays a word
            record = remake(record, lambda word: preprocessor.normalize(word)[0])
        assert record.words is not None
        assert record.starts is not None
        words = WordSpans(list(record.words), list(record.starts))
        one = [(0, len(words.words))] if words.words else []
        found = preprocessor.in_sentences(record.text, words, one, has_controls=has_controls)
        return replace(found, attributes=self._attributes(record.attributes))

    def _attributes(self, given: WordAttributes) -> WordAttributes:
        """Normalized as the words are: all of a sentence at once, as most are normal."""
        # No value has a tab: columns end there.
        joined = "\t".join(value or "" for values in given for value in values)
        normalized, _ = self.preprocessor.normalize(joined)
        if normalized == joined:
            return given
        each = iter(normalized.split("\t"))
        return tuple(tuple(next(each).strip() or None for _ in values) for values in given)

    def _count(self, record: Record, found: PreprocessedText) -> None:
        counts = self.stats.counts
        counts["kept"] += record.units
        counts["joined"] += record.units - 1
        counts["records"] += 1
        counts["records_with_controls"] += found.has_controls
        counts["records_without_words"] += not found.sentences
        for spans in found.sentences:
            counts["sentences_found"] += 1
            counts["sentences_split"] += len(spans) > 1
            counts["sentences_added"] += len(spans) - 1

    def _enter(self, record: Record) -> None:
        document = record.document, record.opened
        if document == self.document:
            return
        self.document = document
        self.position = 0
        self.is_held_out = is_held_out(record.document, self.preprocessor.config.held_out)
        self.stats.counts["documents"] += 1
        self.stats.counts["held_out_documents"] += self.is_held_out

    def _write(
        self, sentence_id: str, record: Record, found: PreprocessedText, span: WordRange
    ) -> None:
        (begin, end), words, all_starts = span, found.words.words[slice(*span)], found.words.starts
        first, last = all_starts[begin], all_starts[end - 1] + len(words[-1])
        attributes = [list(values[begin:end]) for values in found.attributes]
        self.writer.add(
            (
                sentence_id,
                record.document,
                self.position,
                self.is_held_out,
                found.text[first:last],
                words,
                [start - first for start in all_starts[begin:end]],
                *self._meta(record),
                *attributes,
            )
        )
        self.position += 1
        counts = self.stats.counts
        counts["sentences"] += 1
        counts["words"] += len(words)
        counts["characters"] += last - first
        self.stats.lengths[len(words)] += 1
        if self.is_held_out:
            counts["held_out_sentences"] += 1
            counts["held_out_words"] += len(words)


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
