"""Coreference in the columns of CoNLL-2012: mentions in brackets with the number of their cluster.

    #begin document (1342_pride_and_prejudice); part 0
    1342_pride   0   0   My      (3
    1342_pride   0   1   dear    -
    1342_pride   0   2   Mr.     (1
    1342_pride   0   3   Bennet  1)|3)

LitBank and OntoNotes come so, a file a document or many in one (`cat *.conll > train.conll`). A
part of a document is a document of its own. The genre is what a document's name has before its
first slash (OntoNotes: bc/cctv/00/cctv_0000); there may be none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from polyseme.config import Settings
from polyseme.tasks.clusters import Mention
from polyseme.tasks.families.coreference import LONGEST_DOCUMENT, Document
from polyseme.tasks.readers.columns import Column, column_of
from polyseme.tasks.readers.lines import ReaderItem, ReaderItems, blocks, cut, numbered_lines
from polyseme.tasks.texts import WordTuple
from polyseme.text.formats.tables import NumberedLine
from polyseme.text.records import RecordSize, Rejected, quote

_BEGIN = re.compile(r"#begin document \(?([^);]*)")
_END = "#end document"
_NONE = {"", "-", "_"}
_BRACKET = re.compile(r"(\()?([^()|]+)(\))?")


class CoreferenceColumnsConfig(Settings):
    """Documents in columns, mentions in brackets in one of them."""

    kind: Literal["coreference"] = "coreference"
    word: Column = 4
    """Column of the word: 1 is the first, -1 the last."""
    mentions: Column = -1
    """Column of the brackets."""
    encoding: str = "utf-8"
    """Character encoding. A byte-order mark in the file overrides it."""


@dataclass
class _Draft:
    """A document as far as it is read."""

    line: int
    name: str = ""
    sentences: list[WordTuple] = field(default_factory=list)
    cluster_of: dict[Mention, str] = field(default_factory=dict)
    num_words: int = 0
    size: RecordSize = field(default_factory=RecordSize)
    fault: Rejected | None = None

    def finished(self) -> ReaderItem:
        """The document, or why it is none."""
        if self.fault is None and not self.sentences:
            self.fault = Rejected(self.line, "no-word", quote(self.name))
        if self.fault is None:
            return (Document(tuple(self.sentences), self._clusters(), self._genre()),)
        return self.fault

    def _clusters(self) -> tuple[tuple[Mention, ...], ...]:
        found: dict[str, list[Mention]] = {}
        for mention, name in sorted(self.cluster_of.items()):
            found.setdefault(name, []).append(mention)
        return tuple(map(tuple, found.values()))

    def _genre(self) -> str:
        return self.name.partition("/")[0] if "/" in self.name else ""


def read(path: Path, config: CoreferenceColumnsConfig) -> ReaderItems:
    """An example per document; one with a fault is rejected as a whole."""
    draft: _Draft | None = None
    for block in blocks(numbered_lines(path, config.encoding)):
        if isinstance(block, Rejected):
            draft = draft or _Draft(block.place)
            draft.fault = draft.fault or block
            continue
        for run in _between_marks(block):
            begins = _BEGIN.match(run[0].text)
            if (begins or run[0].text.startswith(_END)) and draft is not None:
                yield draft.finished()
                draft = None
            if begins:
                draft = _Draft(run[0].number, begins[1].strip())
            elif not run[0].text.startswith(_END):
                draft = draft or _Draft(run[0].number)
                _add(draft, run, config)
    if draft is not None:
        yield draft.finished()


def _between_marks(block: list[NumberedLine]) -> Iterator[list[NumberedLine]]:
    """Lines that begin or end a document, each alone, and the lines between them together."""
    run: list[NumberedLine] = []
    for line in block:
        if line.text.startswith(_END) or _BEGIN.match(line.text):
            if run:
                yield run
            yield [line]
            run = []
        else:
            run.append(line)
    if run:
        yield run


def _add(draft: _Draft, lines: list[NumberedLine], config: CoreferenceColumnsConfig) -> None:
    """One more sentence; nothing is kept of a document that has a fault."""
    if draft.fault is not None:
        return
    rows = [cut(line) for line in lines]
    words = [column_of(row, config.word) for row in rows]
    if None in words:
        line = lines[words.index(None)]
        draft.fault = Rejected(line.number, "no-word", quote(line.text), f"column {config.word}")
        return
    # Where there is none, LitBank has nothing at all in the column.
    brackets = [column_of(row, config.mentions) or "" for row in rows]
    found = _mentions(brackets)
    if isinstance(found, int):
        line = lines[found]
        draft.fault = Rejected(line.number, "brackets-do-not-match", quote(line.text))
        return
    is_small = draft.size.add(sum(len(line.text) for line in lines))
    if draft.num_words + len(words) > LONGEST_DOCUMENT or not is_small:
        excess = f"over {LONGEST_DOCUMENT:,} words" if is_small else draft.size.excess
        detail = f"{excess}; cut it into parts"
        draft.fault = Rejected(draft.line, "too-long", quote(draft.name), detail)
        return
    _keep(draft, found, lines[0])
    draft.sentences.append(tuple(word or "" for word in words))
    draft.num_words += len(words)


def _keep(draft: _Draft, found: list[tuple[str, int, int]], line: NumberedLine) -> None:
    """Mentions counted over the document; each is in one cluster."""
    for name, start, stop in found:
        mention = (draft.num_words + start, draft.num_words + stop)
        if draft.cluster_of.setdefault(mention, name) != name:
            detail = f"words {start + 1} to {stop} of the sentence"
            draft.fault = Rejected(line.number, "mention-in-two-clusters", quote(line.text), detail)
            return


def _mentions(brackets: Sequence[str]) -> list[tuple[str, int, int]] | int:
    """Cluster, first word and the word after the last of each mention of a sentence; or the place
    where brackets go wrong."""
    found = []
    open_: dict[str, list[int]] = {}
    for place, bracket in enumerate(brackets):
        if bracket in _NONE:
            continue
        for part in bracket.split("|"):
            match = _BRACKET.fullmatch(part)
            if match is None or not (match[1] or match[3]):
                return place
            if match[1]:
                open_.setdefault(match[2], []).append(place)
            if match[3]:
                if not open_.get(match[2]):
                    return place
                found.append((match[2], open_[match[2]].pop(), place + 1))
    left = [starts[-1] for starts in open_.values() if starts]
    return left[0] if left else found
