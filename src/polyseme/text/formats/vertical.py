"""CWB and Sketch Engine vertical text: a word a line, structure as tags on lines of their own.

`<text …>` or `<doc …>` begins a document and its attributes are the metadata; `<s>` marks a
sentence; `<g/>` says that no space stands between two words.
"""

import html
import re

from polyseme.text.formats.lines import TextLine, read_lines
from polyseme.text.formats.marked import LONGEST_SENTENCE, SentenceBuilder
from polyseme.text.pieces import Piece
from polyseme.text.records import ReadItems, Rejected
from polyseme.text.settings import CorpusConfig

# `++`: what was taken is not given back, so a line that is no tag is found out in one pass.
_TAG = re.compile(r'<(/?)([A-Za-z_][\w.-]*)((?:[^<>"]++|"[^"]*+")*+)>')
_ATTRIBUTE = re.compile(r'([A-Za-z_][\w:.-]*)="([^"]*)"')


def read(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per sentence; the unit that is counted is the sentence, too."""
    run = _WordRun(piece, config)
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


class _WordRun(SentenceBuilder):
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
