"""CoNLL-U: words and sentences as the treebank has them; `# newdoc` begins a document.

Comment keys (`# date = 1850`) are metadata from there to the end of the document.
"""

from polyseme.text.conllu import ATTRIBUTES, parse_line
from polyseme.text.formats.lines import TextLine, read_lines
from polyseme.text.formats.marked import by_attribute, sentence
from polyseme.text.pieces import Piece
from polyseme.text.records import Blank, ReadItem, ReadItems, Rejected, quote
from polyseme.text.settings import CorpusConfig


class _Sentence:
    """The lines of one sentence as they come."""

    def __init__(self, attributes: tuple[str, ...]) -> None:
        self.words: list[str] = []
        self._columns = [ATTRIBUTES[name] for name in attributes]
        self._attributes: list[list[str]] = []
        self.glued: list[bool] = []
        self.place = 0
        self.is_begun = False
        self.fault: Rejected | None = None
        self._next_is_glued = False
        self._covered_to = 0

    def begin(self, place: int) -> None:
        """Note where it begins, at its first line of any kind."""
        self.place = self.place if self.is_begun else place
        self.is_begun = True

    def add(self, line: TextLine) -> None:
        """Take one word line. Words inside a contraction (lines 3-4 after 3-4) are left out."""
        found = parse_line(line.text)
        if found is None:
            detail = "not a CoNLL-U line, so the sentence is not one"
            self.fault = self.fault or Rejected(line.start, "not-conllu", quote(line.text), detail)
            return
        if found.is_empty_node:
            return  # nothing was written there
        if found.last is None and found.first <= self._covered_to:
            return
        self._covered_to = found.last or self._covered_to
        self.words.append(found.form)
        self._attributes.append([found.columns[number].strip() for number in self._columns])
        self.glued.append(self._next_is_glued)
        self._next_is_glued = "SpaceAfter=No" in found.columns[9]

    def finish(self, document: tuple[str, int], meta: tuple[str | None, ...]) -> ReadItem:
        """The sentence as an item; its lines together count as one unit."""
        if self.fault:
            return self.fault
        if not self.words:
            return Blank()
        name, opened = document
        return sentence(
            self.words,
            self.glued,
            document=name,
            place=self.place,
            meta=meta,
            opened=opened,
            attributes=by_attribute(self._attributes, len(self._columns)),
        )


def read(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per sentence. A line that cannot be read spoils the sentence it is in."""
    document = f"{piece.source.name}@{piece.start}", piece.start
    values: dict[str, str] = {}
    current = _Sentence(config.word_attributes)
    for line in read_lines(piece, config):
        if isinstance(line, Rejected):
            current.begin(line.place)
            current.fault = current.fault or line
        elif line.text.startswith("#"):
            current.begin(line.start)
            key, _, value = line.text[1:].partition("=")
            if key.strip() in ("newdoc", "newdoc id"):
                document = f"{piece.source.name}#{value.strip() or line.start}", line.start
                values = {}
            values[key.strip()] = value.strip()
        elif not line.is_blank:
            current.begin(line.start)
            current.add(line)
        elif current.is_begun:
            yield current.finish(document, tuple(values.get(key) for key in config.meta))
            current = _Sentence(config.word_attributes)
    if current.is_begun:
        yield current.finish(document, tuple(values.get(key) for key in config.meta))
