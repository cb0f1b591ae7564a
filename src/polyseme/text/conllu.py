"""One line of CoNLL-U as it stands in treebanks: ten columns, the first a number.

`text/formats/conllu.py` makes sentences of a corpus from such lines, `tasks/readers/conllu.py`
labelled examples.
"""

import re
from typing import NamedTuple

# A word (3), a contraction (3-4) or an empty node (3.1).
_NUMBER = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})|(\.[0-9]+))?")
_NUM_COLUMNS = 10
ATTRIBUTES = {
    name: 2 + number
    for number, name in enumerate(
        ("lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
    )
}
"""What a line says of its word, and in which column."""


class ConlluLine(NamedTuple):
    """A word, a contraction of several words, or a node for which nothing was written."""

    first: int
    last: int | None
    """Of a contraction: its last word."""
    is_empty_node: bool
    columns: list[str]

    @property
    def form(self) -> str:
        """The word as it is written."""
        return self.columns[1]


def parse_line(text: str) -> ConlluLine | None:
    """The parts of a line; None if it is no line of CoNLL-U."""
    columns = text.split("\t")
    number = _NUMBER.fullmatch(columns[0])
    if len(columns) != _NUM_COLUMNS or number is None or not columns[1].strip():
        return None
    first, last, decimal = number.groups()
    if last and int(last) < int(first):
        return None
    return ConlluLine(int(first), int(last) if last else None, decimal is not None, columns)
