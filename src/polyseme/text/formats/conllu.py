"""CoNLL-U: words and sentences as the treebank has them; `# newdoc` begins a document.

Comment keys (`# date = 1850`) before or within a document are its metadata.
"""

from polyseme.text.formats.lines import read_lines
from polyseme.text.formats.marked import sentence
from polyseme.text.plan import Piece
from polyseme.text.records import Blank, Item, Items, Rejected, quote
from polyseme.text.settings import CorpusConfig


class _Sentence:
    """The lines of one sentence as they come."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.glued: list[bool] = []
        self.lines = 0
        self.place = 0
        self.fault = ""
        self._next_is_glued = False
        self._covered_to = 0

    def add(self, line: str) -> None:
        """Take one word line. Words inside a contraction (lines 3-4 after 3-4) are left out."""
        fields = line.split("\t")
        number = fields[0]
        if len(fields) != 10 or not number.replace("-", "").replace(".", "").isdigit():
            self.fault = f"not a CoNLL-U line: {line[:80]!r}"
            return
        if "." in number:
            return  # an empty node: nothing was written there
        first, _, last = number.partition("-")
        if not last and int(first) <= self._covered_to:
            return
        self._covered_to = int(last) if last else self._covered_to
        self.words.append(fields[1])
        self.glued.append(self._next_is_glued)
        self._next_is_glued = "SpaceAfter=No" in fields[9]

    def finish(self, document: str, meta: tuple[str | None, ...]) -> Item:
        """The sentence as an item; its lines together count as one unit."""
        if self.fault:
            return Rejected(self.place, "not-conllu", quote(" ".join(self.words)), self.fault)
        if not self.words:
            return Blank()
        return sentence(
            self.words, self.glued, document=document, place=self.place, meta=meta, units=1
        )


def read(piece: Piece, config: CorpusConfig) -> Items:
    """A record per sentence."""
    document = f"{piece.source.name}@{piece.start}"
    values: dict[str, str] = {}
    current = _Sentence()
    for line in read_lines(piece, config):
        if isinstance(line, Rejected):
            yield line
            continue
        if not line.is_blank:
            current.place = current.place if current.lines else line.start
            current.lines += 1
            if line.text.startswith("#"):
                key, _, value = line.text[1:].partition("=")
                if key.strip() in ("newdoc", "newdoc id"):
                    document = f"{piece.source.name}#{value.strip() or line.start}"
                    values = {}
                values[key.strip()] = value.strip()
            else:
                current.add(line.text)
        elif current.lines:
            yield current.finish(document, tuple(values.get(key) for key in config.meta))
            current = _Sentence()
    if current.lines:
        yield current.finish(document, tuple(values.get(key) for key in config.meta))
