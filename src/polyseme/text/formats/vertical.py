"""CWB and Sketch Engine vertical text: a word a line, structure as tags on lines of their own.

`<text …>` or `<doc …>` begins a document and its attributes are the metadata; `<s>` marks a
sentence; `<g/>` says that no space stands between two words.
"""

import html
import re

from polyseme.text.formats.lines import read_lines
from polyseme.text.formats.marked import by_attribute, sentence
from polyseme.text.pieces import Piece
from polyseme.text.records import ReadItems, Rejected
from polyseme.text.settings import CorpusConfig

# `++`: what was taken is not given back, so a line that is no tag is found out in one pass.
_TAG = re.compile(r'<(/?)([A-Za-z_][\w.-]*)((?:[^<>"]++|"[^"]*+")*+)>')
_ATTRIBUTE = re.compile(r'([A-Za-z_][\w:.-]*)="([^"]*)"')
# Without sentence tags a text is one run of words; memory is bounded by cutting it here.
_LONGEST_RUN = 10_000


def read(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per sentence; the unit that is counted is the sentence, too."""
    run = _WordRun(piece, config)
    for line in read_lines(piece, config):
        if isinstance(line, Rejected):
            yield line
            continue
        tag = _TAG.fullmatch(line.text.strip())
        if tag is None:
            run.add([html.unescape(part).strip() for part in run.split(line.text)], line.start)
            if len(run.words) >= _LONGEST_RUN:
                yield from run.finish()
            continue
        closing, name, attributes = tag.groups()
        if name == "g":
            run.is_glued = True
        elif name in ("s", "p", "text", "doc"):
            yield from run.finish()
            if name in ("text", "doc") and not closing:
                run.open_document(attributes, line.start)
    yield from run.finish()


class _WordRun:
    """The words of one sentence as they come, and the document they stand in."""

    def __init__(self, piece: Piece, config: CorpusConfig) -> None:
        self.words: list[str] = []
        self.is_glued = False
        self._glued: list[bool] = []
        self._place = piece.start
        self._name = piece.source.name
        self._document = f"{self._name}@{piece.start}"
        self._opened = piece.start
        self._columns = config.meta
        self._num_attributes = len(config.word_attributes)
        self._attributes: list[list[str]] = []
        self._meta: tuple[str | None, ...] = (None,) * len(config.meta)

    def split(self, line: str) -> list[str]:
        """The word and its attributes, as far as they are kept."""
        return line.split("\t", 1 + self._num_attributes)[: 1 + self._num_attributes]

    def add(self, columns: list[str], start: int) -> None:
        word, *attributes = columns
        if not word:
            return
        self._place = self._place if self.words else start
        self.words.append(word)
        self._attributes.append(attributes)
        self._glued.append(self.is_glued)
        self.is_glued = False

    def open_document(self, attributes: str, start: int) -> None:
        values = {key: html.unescape(value) for key, value in _ATTRIBUTE.findall(attributes)}
        self._document = f"{self._name}#{values.get('id') or start}"
        self._opened = start
        self._meta = tuple(values.get(key) for key in self._columns)

    def finish(self) -> ReadItems:
        self.is_glued = False
        if self.words:
            yield sentence(
                self.words,
                self._glued,
                document=self._document,
                place=self._place,
                meta=self._meta,
                opened=self._opened,
                attributes=by_attribute(self._attributes, self._num_attributes),
            )
            self.words, self._glued, self._attributes = [], [], []
