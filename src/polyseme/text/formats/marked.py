"""What formats with words already marked share: from words to a sentence with offsets.

`SentenceBuilder` takes the words one by one, and no more of them than a sentence may have.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate

from polyseme.errors import ConfigError
from polyseme.text.conllu import ATTRIBUTES
from polyseme.text.records import (
    BLANK,
    ReadItem,
    Record,
    RecordSize,
    Rejected,
    WordAttributes,
    quote,
)
from polyseme.text.settings import CorpusConfig
from polyseme.text.sources import Source

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
