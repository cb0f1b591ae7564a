"""CWB and Sketch Engine vertical text: a word a line, structure as tags on lines of their own.

`<text …>` or `<doc …>` begins a document and its attributes are the metadata; `<s>` marks a
sentence; `<g/>` says that no space stands between two words.
"""

import html
import re

from polyseme.text.formats.lines import read_lines
from polyseme.text.formats.marked import sentence
from polyseme.text.plan import Piece
from polyseme.text.records import Items, Rejected
from polyseme.text.settings import CorpusConfig

_TAG = re.compile(r"<(/?)([A-Za-z_][\w.-]*)([^<>]*?)(/?)>")
_ATTRIBUTE = re.compile(r'([A-Za-z_][\w:.-]*)="([^"]*)"')
# Without sentence tags a text is one run of words; memory is bounded by cutting it here.
_LONGEST_RUN = 10_000


def read(piece: Piece, config: CorpusConfig) -> Items:
    """A record per sentence; the unit of the accounting is the sentence, too."""
    document = f"{piece.source.name}@{piece.start}"
    values: dict[str, str] = {}
    words: list[str] = []
    glued: list[bool] = []
    place, is_glued = piece.start, False

    def finish() -> Items:
        if words:
            meta = tuple(values.get(key) for key in config.meta)
            yield sentence(words, glued, document=document, place=place, meta=meta, units=1)
            words.clear()
            glued.clear()

    for line in read_lines(piece, config):
        if isinstance(line, Rejected):
            yield line
            continue
        tag = _TAG.fullmatch(line.text.strip())
        if tag is None:
            word = html.unescape(line.text.split("\t", 1)[0].strip())
            if word:
                place = place if words else line.start
                words.append(word)
                glued.append(is_glued)
                is_glued = False
            if len(words) >= _LONGEST_RUN:
                yield from finish()
            continue
        closing, name, attributes, _ = tag.groups()
        if name == "g":
            is_glued = True
            continue
        if name in ("s", "p", "text", "doc"):
            yield from finish()
            is_glued = False
        if name in ("text", "doc") and not closing:
            values = {key: html.unescape(value) for key, value in _ATTRIBUTE.findall(attributes)}
            document = f"{piece.source.name}#{values.get('id') or line.start}"
    yield from finish()
