"""Trees with a label at every node, one a line, as the Stanford Sentiment Treebank has them.

(3 (2 It) (4 (2 's) (4 lovely)))        the root's label is the sentence's: 3
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from polyseme.config import Settings
from polyseme.tasks.families.classification import Classified
from polyseme.tasks.readers.lines import ReaderItem, ReaderItems, numbered_lines
from polyseme.text.formats.tables import NumberedLine
from polyseme.text.records import Rejected, quote

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


def read(path: Path, config: TreesConfig) -> ReaderItems:
    """An example per sentence or, with subtrees, one per node, the whole sentence last."""
    for line in numbered_lines(path, config.encoding):
        if isinstance(line, Rejected):
            yield line
        elif line.text.strip():
            yield _tree(line, config)


def _tree(line: NumberedLine, config: TreesConfig) -> ReaderItem:
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
