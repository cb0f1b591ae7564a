"""One example a line: four layouts.

A text with its label before it, as in TREC, MR and Subj.

    1 one long string of cliches .

Segmented text, a sentence a line with spaces between words, as in the SIGHAN bakeoffs. The task is
to find the words again from the characters alone.

    扬帆 远 东        becomes   扬 帆 远 东   with the labels   B E S S

Uses of an ambiguous word with their senses, in the layout of CoarseWSD-20: three files in one
folder. The first number is the word's position, from 0.

    NAME.data.txt      7         both seasons are for sale at apple 's itunes store .
    NAME.gold.txt      0
    classes_map.txt    {"0": "apple_apple_inc.", "1": "apple_apple"}

Trees with a label at every node, as the Stanford Sentiment Treebank has them.

    (3 (2 It) (4 (2 's) (4 lovely)))        the root's label is the sentence's: 3
"""

import itertools
import re
from collections.abc import Iterator
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from polyseme.config import Settings
from polyseme.errors import InputError
from polyseme.limits import read_json
from polyseme.tasks.families.classification import Classified
from polyseme.tasks.families.tagging import Tagged
from polyseme.tasks.readers.lines import (
    LONGEST_BLOCK,
    ReaderItem,
    ReaderItems,
    numbered_lines,
    of_lines,
)
from polyseme.tasks.spans import Scheme, Span, write_labels
from polyseme.text.formats.tables import NumberedLine
from polyseme.text.records import Rejected, quote


class LabelledConfig(Settings):
    """Lines that begin with their label."""

    kind: Literal["labelled"] = "labelled"
    is_split: bool = True
    """Whether texts are words already, with spaces between them."""
    encoding: str = "utf-8"
    """Character encoding. A byte-order mark in the file overrides it."""


def read(path: Path, config: LabelledConfig) -> ReaderItems:
    """An example per line that has a label and a text."""

    def labelled(line: NumberedLine) -> ReaderItem:
        label, *rest = line.text.split(maxsplit=1)
        if not rest:
            return Rejected(line.number, "no-text", quote(line.text))
        text = rest[0].strip()
        return (Classified(tuple(text.split()) if config.is_split else text, label),)

    return of_lines(path, config.encoding, labelled)


class SegmentedConfig(Settings):
    """Words with spaces between them; each character is labelled with its place in its word."""

    kind: Literal["segmented"] = "segmented"
    scheme: Scheme = "bmes"
    """Tagging scheme: bmes (beginning, middle, end, single), bioes, bio or iob1."""
    encoding: str = "utf-8"
    """Character encoding. A byte-order mark in the file overrides it."""


def read_segmented(path: Path, config: SegmentedConfig) -> ReaderItems:
    """An example per line that is not blank."""

    def segmented(line: NumberedLine) -> ReaderItem:
        words = line.text.split()
        characters = tuple("".join(words))
        if len(characters) > LONGEST_BLOCK:
            detail = f"{len(characters):,} characters"
            return Rejected(line.number, "too-long", quote(line.text), detail)
        edges = pairwise(accumulate(map(len, words), initial=0))
        spans = [Span("", start, stop) for start, stop in edges]
        return (Tagged(characters, tuple(write_labels(spans, len(characters), config.scheme))),)

    return of_lines(path, config.encoding, segmented)


_DATA, _GOLD, _NAMES = ".data.txt", ".gold.txt", "classes_map.txt"


class SenseLabelsConfig(Settings):
    """Uses of one word: the path of the data file; the file of senses is in the same folder."""

    kind: Literal["senses"] = "senses"


def read_senses(path: Path) -> ReaderItems:
    """An example per use, its word as target and its sense by name."""
    if not path.name.endswith(_DATA):
        raise InputError(f"{path} does not end in {_DATA}; its senses would be in *{_GOLD}.")
    gold = path.with_name(path.name.removesuffix(_DATA) + _GOLD)
    names = _names(path.with_name(_NAMES))
    both = itertools.zip_longest(numbered_lines(path, "utf-8"), numbered_lines(gold, "utf-8"))
    for number, (use, sense) in enumerate(both, start=1):
        if isinstance(use, Rejected):
            yield use
        elif isinstance(sense, Rejected):
            yield sense
        elif use and use.text.strip() and sense and sense.text.strip():
            yield _example(use, sense.text.strip(), names)
        elif (use and use.text.strip()) or (sense and sense.text.strip()):
            raise InputError(
                f"Line {number} has text in only one of {path} and {gold.name}, so which use has "
                "which sense can no longer be told. Both must have the same number of lines."
            )


def _example(line: NumberedLine, sense: str, names: dict[str, str]) -> ReaderItem:
    place, _, text = line.text.partition("\t")
    words = tuple(text.split())
    if not place.isdecimal() or int(place) >= len(words):
        detail = f"there is no word {place} among {len(words)}"
        return Rejected(line.number, "no-such-word", quote(line.text), detail)
    if names and sense not in names:
        return Rejected(line.number, "no-such-sense", quote(line.text), f"sense {sense!r}")
    return (Classified(words, names.get(sense, sense), target_index=int(place)),)


def _names(path: Path) -> dict[str, str]:
    """Names of the senses by number; none if there is no such file."""
    if not path.is_file():
        return {}
    try:
        names = read_json(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not JSON: {error}.") from error
    if not isinstance(names, dict):
        raise InputError(f"{path} holds no names of senses, but {type(names).__name__}.")
    return {str(key): str(value) for key, value in names.items()}


_PART = re.compile(r"[()]|[^() ]+")
# How the Penn Treebank writes what would look like its own signs.
_ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
# With all subtrees, work grows with the square of the length.
_LONGEST = 2_000


class TreesConfig(Settings):
    """Labelled trees, one sentence per line."""

    kind: Literal["trees"] = "trees"
    subtrees: bool = False
    """Whether every part of a sentence with a label is an example too; for training only."""
    encoding: str = "utf-8"
    """Character encoding. A byte-order mark in the file overrides it."""


class _Node(NamedTuple):
    label: str
    start: int
    stop: int


def read_trees(path: Path, config: TreesConfig) -> ReaderItems:
    """An example per sentence or, with subtrees, one per node, the whole sentence last."""
    return of_lines(path, config.encoding, partial(_tree, config))


def _tree(config: TreesConfig, line: NumberedLine) -> ReaderItem:
    words: list[str] = []
    try:
        nodes = list(_nodes(line.text, words))
    except ValueError as error:
        return Rejected(line.number, "not-a-tree", quote(line.text), str(error))
    if len(words) > _LONGEST:
        return Rejected(line.number, "too-long", quote(line.text), f"{len(words):,} words")
    chosen = nodes if config.subtrees else nodes[-1:]
    return tuple(Classified(tuple(words[a:b]), label) for label, a, b in chosen)


def _nodes(text: str, words: list[str]) -> Iterator[_Node]:
    """The nodes of a tree, each after those inside it; its words are added to `words`.

    Without recursion: a line may nest deeper than Python's stack goes.
    """
    parts = _PART.findall(text)
    if not parts or parts[0] != "(":
        raise ValueError("it does not begin with a bracket")
    opened: list[tuple[str, int]] = []  # label of each node not yet closed, and its first word
    place = 0
    while place < len(parts):
        part = parts[place]
        if not opened and place > 0:
            raise ValueError("something stands after its end")
        if part == "(":
            place += 1
            label = parts[place] if place < len(parts) else ")"
            if label in "()":
                raise ValueError("a bracket has no label")
            opened.append((label, len(words)))
        elif part == ")":
            label, start = opened.pop()
            if start == len(words):
                raise ValueError("a node has no words")
            yield _Node(label, start, len(words))
        else:
            words.append(_ESCAPED.get(part, part.replace("\\/", "/").replace("\\*", "*")))
        place += 1
    if opened:
        raise ValueError("a bracket is not closed")
