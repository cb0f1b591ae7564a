"""CoNLL-U: words and sentences as the treebank has them; `# newdoc` begins a document.

Comment keys (`# date = 1850`) are metadata from there to the end of the document.
"""

from polyseme.text.conllu import ATTRIBUTES, parse_line
from polyseme.text.formats.lines import TextLine, read_lines
from polyseme.text.formats.marked import SentenceBuilder
from polyseme.text.pieces import Piece
from polyseme.text.records import ReadItem, ReadItems, Rejected, quote
from polyseme.text.settings import CorpusConfig


class _Sentence(SentenceBuilder):
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


def read(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per sentence. A line that cannot be read spoils the sentence it is in."""
    document, opened = f"{piece.source.name}@{piece.start}", piece.start
    values: dict[str, str] = {}
    current = _Sentence(config.word_attributes)

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
