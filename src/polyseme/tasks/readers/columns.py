"""A word a line in columns, a blank line between sentences: four layouts.

CoNLL-2000, CoNLL-2003, WNUT, and Chinese files with a character a line: a word and its label.

CoNLL-U treebanks: a sentence's words with one of their columns or features as labels.

PropBank columns (CoNLL-2005, CoNLL-2012 and their like): who did what to whom. A sentence has a
column of bracketed arguments for each of its predicates, in their order; each becomes an example of
its own, with the predicate as target and the brackets as BIO labels.

    3   comes   VBZ   come   come.03   (V*)
    4   this    DT    -      -         (ARG1*
    5   story   NN    -      -         *)

Coreference in the columns of CoNLL-2012: mentions in brackets with the number of their cluster.

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
from typing import Annotated, Literal

from pydantic import AfterValidator

from polyseme.config import Settings
from polyseme.tasks.families.coreference import LONGEST_DOCUMENT, Document
from polyseme.tasks.families.tagging import Tagged
from polyseme.tasks.measures import Mention
from polyseme.tasks.readers.lines import (
    ReaderItem,
    ReaderItems,
    blocks,
    cut,
    numbered_lines,
    without_comments,
)
from polyseme.tasks.texts import WordTuple
from polyseme.text.formats.marked import parse_line
from polyseme.text.formats.tables import NumberedLine
from polyseme.text.records import RecordSize, Rejected, quote

_DOCUMENT = "-DOCSTART-"
# The first character always belongs to the word, even if it is a digit: 210 is a 2 at place 10.
_NUMBERED = re.compile(r"(.\D*)[0-9]+")


def _is_column(value: int) -> int:
    if value == 0:
        raise ValueError("columns are counted from 1, or from -1 at the end")
    return value


Column = Annotated[int, AfterValidator(_is_column)]
"""Number of a column: 1 is the first, -1 the last."""


class ColumnsConfig(Settings):
    """Words in columns, one per line, split at tabs or, where a line has none, at spaces."""

    kind: Literal["columns"] = "columns"
    word: Column = 1
    """Column of the word: 1 is the first, -1 the last."""
    label: Column = -1
    """Column of the label: 1 is the first, -1 the last."""
    numbered: bool = False
    """Whether each character is followed by its place in its word (口0 腔1), as in the Weibo files;
    the number is taken off."""
    encoding: str = "utf-8"
    """Character encoding. A byte-order mark in the file overrides it."""


def read(path: Path, config: ColumnsConfig) -> ReaderItems:
    """An example per sentence. Lines that only mark where a document begins are passed over."""
    for block in blocks(numbered_lines(path, config.encoding)):
        if isinstance(block, Rejected):
            yield block
            continue
        lines = [line for line in without_comments(block) if not line.text.startswith(_DOCUMENT)]
        if lines:
            yield _sentence(lines, config)


def _sentence(lines: list[NumberedLine], config: ColumnsConfig) -> ReaderItem:
    words, labels = [], []
    width = len(cut(lines[0]))
    for line in lines:
        columns = cut(line)
        if len(columns) != width:
            detail = f"{len(columns)} columns, the sentence begins with {width}"
            return Rejected(line.number, "wrong-number-of-columns", quote(line.text), detail)
        word, label = column_of(columns, config.word), column_of(columns, config.label)
        if word is None or label is None or width == 1:
            return Rejected(line.number, "no-word-or-label", quote(line.text))
        numbered = _NUMBERED.fullmatch(word) if config.numbered else None
        if config.numbered and numbered is None:
            return Rejected(line.number, "word-without-number", quote(line.text))
        words.append(numbered[1] if numbered else word)
        labels.append(label)
    return (Tagged(tuple(words), tuple(labels)),)


def column_of(columns: list[str], number: int) -> str | None:
    """The column with this number, as `Column` counts; None if it is missing or empty."""
    place = number - 1 if number > 0 else number
    if not -len(columns) <= place < len(columns):
        return None
    return columns[place].strip(" ") or None


_COLUMNS = {"lemma": 2, "upos": 3, "xpos": 4, "feats": 5, "deprel": 7}
_NOTHING = "_"


class ConlluConfig(Settings):
    """A treebank. Empty nodes are left out."""

    kind: Literal["conllu"] = "conllu"
    label: str = "upos"
    """What the label is: a column (upos, xpos, feats, deprel, lemma), or one feature by its name
    (Number, Case, Tense); a word without that feature is labelled _."""
    contractions: Literal["split", "joined"] = "split"
    """Contractions (French du, English don't in some treebanks): split, the treebank's own parts,
    each with its label; or joined, the word as written, with the parts' labels joined by +."""


def read_conllu(path: Path, config: ConlluConfig) -> ReaderItems:
    """An example per sentence. A line that is not CoNLL-U spoils the sentence it is in."""
    for block in blocks(numbered_lines(path, "utf-8")):
        if isinstance(block, Rejected):
            yield block
            continue
        lines = [line for line in block if not line.text.startswith("#")]
        if lines:
            yield _sentence_conllu(lines, config)


def _sentence_conllu(lines: list[NumberedLine], config: ConlluConfig) -> ReaderItem:
    words: list[str] = []
    labels: list[str] = []
    covered_to = 0  # the last part of the contraction before
    for line in lines:
        found = parse_line(line.text)
        if found is None:
            return Rejected(line.number, "not-conllu", quote(line.text))
        if found.is_empty_node or (found.last and config.contractions == "split"):
            continue
        if found.last:
            covered_to = found.last
            words.append(found.form)
            labels.append("")
        elif found.first <= covered_to:
            labels[-1] += ("+" if labels[-1] else "") + _label(found.columns, config.label)
        else:
            words.append(found.form)
            labels.append(_label(found.columns, config.label))
    if not words or not all(labels):
        return Rejected(lines[0].number, "not-conllu", quote(lines[0].text), "no word, or no parts")
    return (Tagged(tuple(words), tuple(labels)),)


def _label(fields: list[str], name: str) -> str:
    if name in _COLUMNS:
        return fields[_COLUMNS[name]] or _NOTHING
    features = dict(part.partition("=")[::2] for part in fields[5].split("|"))
    return features.get(name) or _NOTHING


class PropbankConfig(Settings):
    """A sentence's predicates, each with its arguments in a column."""

    kind: Literal["propbank"] = "propbank"
    word: Column = 2
    """Column of the word: 1 is the first, -1 the last."""
    predicate: Column = 5
    """Column that names the predicate (come.03), with - for words that are none."""
    arguments: Column = 6
    """First of the columns of arguments; there are as many as the sentence has predicates."""
    encoding: str = "utf-8"
    """Character encoding. A byte-order mark in the file overrides it."""


def read_propbank(path: Path, config: PropbankConfig) -> ReaderItems:
    """An example per predicate. A sentence without any is counted as such and gives none."""
    for block in blocks(numbered_lines(path, config.encoding)):
        if isinstance(block, Rejected):
            yield block
        else:
            yield _sentence_propbank(without_comments(block), config)


def _sentence_propbank(lines: list[NumberedLine], config: PropbankConfig) -> ReaderItem:
    rows = [cut(line) for line in lines]
    words = [column_of(row, config.word) for row in rows]
    names = [column_of(row, config.predicate) for row in rows]
    places = [place for place, name in enumerate(names) if name != "-"]
    width = config.arguments - 1 + len(places)
    for line, row, word, name in zip(lines, rows, words, names, strict=True):
        if len(row) != width or word is None or name is None:
            detail = f"{len(row)} columns; with {len(places)} predicates {width} were expected"
            return Rejected(line.number, "wrong-number-of-columns", quote(line.text), detail)
    if not places:
        return Rejected(lines[0].number, "no-predicate", quote(lines[0].text))
    found = []
    for number, place in enumerate(places, start=config.arguments - 1):
        labels = _labels([row[number].strip() for row in rows])
        if isinstance(labels, int):
            line = lines[labels]
            return Rejected(line.number, "brackets-do-not-match", quote(line.text))
        found.append(Tagged(tuple(word or "" for word in words), labels, target_index=place))
    return tuple(found)


def _labels(brackets: list[str]) -> WordTuple | int:
    """Brackets as BIO labels, or the place where they go wrong: nested, unopened, or unclosed."""
    labels = []
    role = ""
    for place, bracket in enumerate(brackets):
        before, star, after = bracket.partition("*")
        if not star or after not in ("", ")") or (before and (role or before[0] != "(")):
            return place
        if before:
            role = before[1:]
            if not role or "(" in role:
                return place
        elif after and not role:
            return place
        labels.append("O" if not role else f"B-{role}" if before else f"I-{role}")
        role = "" if after else role
    return len(brackets) - 1 if role else tuple(labels)


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
        if self.fault is not None:
            return self.fault
        clusters: dict[str, list[Mention]] = {}
        for mention, name in sorted(self.cluster_of.items()):
            clusters.setdefault(name, []).append(mention)
        genre = self.name.partition("/")[0] if "/" in self.name else ""
        return (Document(tuple(self.sentences), tuple(map(tuple, clusters.values())), genre),)


def read_coreference(path: Path, config: CoreferenceColumnsConfig) -> ReaderItems:
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
