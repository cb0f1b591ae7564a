"""Formats with words and sentences already marked: CoNLL-U and vertical text.

CoNLL-U has a line of ten columns for each word; `# newdoc` begins a document, and other comment
keys (`# date = 1850`) are metadata from there to its end. Vertical text (CWB, Sketch Engine) has a
word a line and structure as tags on lines of their own: `<text …>` or `<doc …>` begins a document,
and its attributes are the metadata; `<s>` marks a sentence; `<g/>` says that no space stands
between two words.
"""

import html
import re
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from polyseme.errors import ConfigError
from polyseme.text.formats.lines import TextLine, read_lines
from polyseme.text.plan import Piece
from polyseme.text.records import (
    BLANK,
    ReadItem,
    ReadItems,
    Record,
    RecordSize,
    Rejected,
    WordAttributes,
    quote,
)
from polyseme.text.settings import CorpusConfig
from polyseme.text.sources import Source

# A word (3), a contraction (3-4) or an empty node (3.1).
_NUMBER = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})|(\.[0-9]+))?")
_NUM_COLUMNS = 10
ATTRIBUTES = {
    name: 2 + number
    for number, name in enumerate(
        ("lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
    )
}
"""What a line says of its word, and in which column."""


class ConlluLine(NamedTuple):
    """A word, a contraction of several words, or a node for which nothing was written."""

    first: int
    last: int | None
    """Of a contraction: its last word."""
    is_empty_node: bool
    columns: list[str]

    @property
    def form(self) -> str:
        """The word as it is written."""
        return self.columns[1]


def parse_line(text: str) -> ConlluLine | None:
    """The parts of a line; None if it is no line of CoNLL-U."""
    columns = text.split("\t")
    number = _NUMBER.fullmatch(columns[0])
    if len(columns) != _NUM_COLUMNS or number is None or not columns[1].strip():
        return None
    first, last, decimal = number.groups()
    if last and int(last) < int(first):
        return None
    return ConlluLine(int(first), int(last) if last else None, decimal is not None, columns)


_NO_VALUE = ("", "_")
LONGEST_SENTENCE = 10_000
"""Words; more of them are no sentence but a file without sentence ends."""


class SentenceBuilder:
    """The words of one sentence as they come. Of one that is too long, or has a fault, none are
    kept: it is rejected as a whole when it ends."""

    def __init__(self, num_attributes: int) -> None:
        self._num_attributes = num_attributes
        self._size = RecordSize(LONGEST_SENTENCE)
        self.clear()

    def clear(self) -> None:
        """Another sentence begins."""
        self._place: int | None = None
        self._words: list[str] = []
        self._glued: list[bool] = []
        self._attributes: list[Sequence[str]] = []
        self._size.clear()
        self._fault: Rejected | None = None
        self.is_glued = False  # whether no space stands before the next word

    @property
    def is_begun(self) -> bool:
        """Whether there was anything of it."""
        return self._place is not None

    @property
    def num_words(self) -> int:
        """How many words it has so far, kept or not."""
        return self._size.parts

    def begin(self, place: int) -> None:
        """Note where it begins: at the first line of any kind."""
        self._place = place if self._place is None else self._place

    def add(self, word: str, attributes: Sequence[str], place: int) -> None:
        """One more word, as it is written and with what is said of it."""
        self.begin(place)
        if not self._size.add(len(word) + sum(map(len, attributes))):
            detail = f"{self._size.excess} without a sentence end"
            self.reject(Rejected(place, "sentence-too-long", quote(word), detail))
        if self._fault is None:
            self._words.append(word)
            self._attributes.append(attributes)
            self._glued.append(self.is_glued)
        self.is_glued = False

    def reject(self, fault: Rejected) -> None:
        """Something in it cannot be read. The first fault is told."""
        self.begin(fault.place)
        self._fault = self._fault or fault
        self._words, self._glued, self._attributes = [], [], []

    def finish(self, document: str, opened: int, meta: tuple[str | None, ...]) -> ReadItem:
        """The sentence as an item; its lines together count as one unit."""
        item: ReadItem = BLANK
        if self._fault is not None:
            item = self._fault
        elif self._words:
            assert self._place is not None
            item = sentence(
                self._words,
                self._glued,
                document=document,
                place=self._place,
                meta=meta,
                opened=opened,
                attributes=by_attribute(self._attributes, self._num_attributes),
            )
        self.clear()
        return item


def sentence(
    words: Sequence[str],
    glued: Sequence[bool],
    *,
    document: str,
    place: int,
    meta: tuple[str | None, ...],
    opened: int,
    attributes: WordAttributes = (),
) -> Record:
    """A record of one sentence. `glued[i]` says that no space stands before word i."""
    assert all(len(values) == len(words) for values in attributes)
    # The first word stands at 0; each next one after its forerunner and, unless glued, a space.
    steps = [0] + [
        len(word) + (not is_glued) for word, is_glued in zip(words, glued[1:], strict=False)
    ]
    starts = tuple(accumulate(steps[: len(words)]))
    text = "".join(
        ("" if is_glued or i == 0 else " ") + word
        for i, (word, is_glued) in enumerate(zip(words, glued, strict=True))
    )
    return Record(
        document,
        text,
        place,
        meta,
        opened=opened,
        words=tuple(words),
        starts=starts,
        attributes=attributes,
    )


def by_attribute(rows: Sequence[Sequence[str]], number: int) -> WordAttributes:
    """The values of each attribute, from those of each word; what is missing or `_` is no value."""

    def value(row: Sequence[str], column: int) -> str | None:
        found = row[column] if column < len(row) else ""
        # An entity may stand for a tab, and where tabs are columns end.
        return None if found in _NO_VALUE else found.replace("\t", " ")

    return tuple(tuple(value(row, column) for row in rows) for column in range(number))


def check_attributes(sources: Sequence[Source], config: CorpusConfig) -> None:
    """Refuse attributes that files cannot have."""
    names = config.word_attributes
    others = [source for source in sources if source.format not in ("conllu", "vertical")]
    if names and others:
        raise ConfigError(
            f"{others[0].name} is read as {others[0].format}, in which words have no attributes. "
            f"Leave out --word-attributes {','.join(names)}, or give CoNLL-U or vertical text."
        )
    unknown = [name for name in names if name not in ATTRIBUTES]
    if unknown and any(source.format == "conllu" for source in sources):
        raise ConfigError(
            f"CoNLL-U has no attribute {unknown[0]!r}. Expected: {', '.join(ATTRIBUTES)}."
        )


def remake(record: Record, change: Callable[[str], str]) -> Record:
    """The same sentence with every word changed. One that comes out empty is left out."""
    assert record.words is not None
    assert record.starts is not None
    ends = [start + len(word) for start, word in zip(record.starts, record.words, strict=True)]
    glued = [start == end for start, end in zip(record.starts, [0, *ends], strict=False)]
    changed = [change(word).strip() for word in record.words]
    kept = [i for i, word in enumerate(changed) if word]
    return sentence(
        [changed[i] for i in kept],
        [glued[i] for i in kept],
        document=record.document,
        place=record.place,
        meta=record.meta,
        opened=record.opened,
        attributes=tuple(tuple(values[i] for i in kept) for values in record.attributes),
    )


class _ConlluSentence(SentenceBuilder):
    """The lines of one sentence as they come."""

    def __init__(self, attributes: tuple[str, ...]) -> None:
        super().__init__(len(attributes))
        self._columns = [ATTRIBUTES[name] for name in attributes]

    def clear(self) -> None:
        super().clear()
        self._covered_to = 0  # the last word of the contraction before

    def add_line(self, line: TextLine) -> None:
        """Take one word line. Words inside a contraction (lines 3-4 after 3-4) are left out."""
        self.begin(line.start)
        found = parse_line(line.text)
        if found is None:
            self._refuse(line, "not a CoNLL-U line, so the sentence is not one")
            return
        if found.is_empty_node:
            return  # nothing was written there
        if found.first <= self._covered_to:
            if found.last is not None:
                self._refuse(line, "two contractions overlap")
            return
        self._covered_to = found.last or self._covered_to
        columns = [found.columns[number].strip() for number in self._columns]
        self.add(found.form, columns, line.start)
        self.is_glued = "SpaceAfter=No" in found.columns[9]

    def _refuse(self, line: TextLine, detail: str) -> None:
        self.reject(Rejected(line.start, "not-conllu", quote(line.text), detail))


def read_conllu(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per sentence. A line that cannot be read_conllu spoils the sentence it is in."""
    document, opened = f"{piece.source.name}@{piece.start}", piece.start
    values: dict[str, str] = {}
    current = _ConlluSentence(config.word_attributes)

    def finished() -> ReadItem:
        return current.finish(document, opened, tuple(values.get(key) for key in config.meta))

    for line in read_lines(piece, config):
        if isinstance(line, Rejected):
            current.reject(line)
        elif line.text.startswith("#"):
            current.begin(line.start)
            key, _, value = line.text[1:].partition("=")
            if key.strip() in ("newdoc", "newdoc id"):
                document, opened = f"{piece.source.name}#{value.strip() or line.start}", line.start
                values = {}
            if key.strip() in config.meta:
                values[key.strip()] = value.strip()
        elif not line.is_blank:
            current.add_line(line)
        elif current.is_begun:
            yield finished()
    if current.is_begun:
        yield finished()


# `++`: what was taken is not given back, so a line that is no tag is found out in one pass.
_TAG = re.compile(r'<(/?)([A-Za-z_][\w.-]*)((?:[^<>"]++|"[^"]*+")*+)>')
_ATTRIBUTE = re.compile(r'([A-Za-z_][\w:.-]*)="([^"]*)"')


def read_vertical(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per sentence; the unit that is counted is the sentence, too."""
    run = _VerticalSentence(piece, config)
    for line in read_lines(piece, config):
        if isinstance(line, Rejected):
            yield line
            continue
        tag = _TAG.fullmatch(line.text.strip())
        if tag is None:
            run.add_line(line)
            # Without sentence tags a text is one run of words, which is cut here.
            if run.num_words >= LONGEST_SENTENCE:
                yield from run.finished()
            continue
        closing, name, attributes = tag.groups()
        if name == "g":
            run.is_glued = True
        elif name in ("s", "p", "text", "doc"):
            yield from run.finished()
            if name in ("text", "doc") and not closing:
                run.open_document(attributes, line.start)
    yield from run.finished()


class _VerticalSentence(SentenceBuilder):
    """The words of one sentence as they come, and the document they stand in."""

    def __init__(self, piece: Piece, config: CorpusConfig) -> None:
        super().__init__(len(config.word_attributes))
        self._name = piece.source.name
        self._document = f"{self._name}@{piece.start}"
        self._opened = piece.start
        self._columns = config.meta
        self._num_columns = 1 + len(config.word_attributes)
        self._meta: tuple[str | None, ...] = (None,) * len(config.meta)

    def add_line(self, line: TextLine) -> None:
        """Take a word and its attributes, as far as they are kept."""
        columns = line.text.split("\t", self._num_columns)[: self._num_columns]
        word, *attributes = [html.unescape(column).strip() for column in columns]
        if word:
            self.add(word, attributes, line.start)

    def open_document(self, attributes: str, start: int) -> None:
        values = {key: html.unescape(value) for key, value in _ATTRIBUTE.findall(attributes)}
        self._document = f"{self._name}#{values.get('id') or start}"
        self._opened = start
        self._meta = tuple(values.get(key) for key in self._columns)

    def finished(self) -> ReadItems:
        """The sentence, if there is one."""
        if self.is_begun:
            yield self.finish(self._document, self._opened, self._meta)
        self.is_glued = False
