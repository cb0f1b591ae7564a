"""CoNLL-U treebanks: a sentence's words with one of their columns or features as labels."""

import re
from pathlib import Path
from typing import Literal

from polyseme.config import Settings
from polyseme.tasks.account import Item, Items
from polyseme.tasks.examples import Tagged
from polyseme.tasks.readers.lines import Line, blocks, numbered_lines
from polyseme.text.records import Rejected, quote

_COLUMNS = {"lemma": 2, "upos": 3, "xpos": 4, "feats": 5, "deprel": 7}
_NOTHING = "_"
# A word (3), a contraction (3-4) or an empty node (3.1).
_NUMBER = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})|(\.[0-9]+))?")


class ConlluConfig(Settings):
    """A treebank. Nodes that nothing was written for are left out."""

    kind: Literal["conllu"] = "conllu"
    label: str = "upos"
    """What the label is: a column (upos, xpos, feats, deprel, lemma), or one feature by its name
    (Number, Case, Tense); a word without that feature is labelled _."""
    contractions: Literal["split", "joined"] = "split"
    """Contractions (French du, English don't in some treebanks): split, the treebank's own parts,
    each with its label; or joined, the word as written, with the parts' labels joined by +."""


def read(path: Path, config: ConlluConfig) -> Items:
    """An example per sentence. A line that is not CoNLL-U spoils the sentence it is in."""
    for block in blocks(numbered_lines(path, "utf-8")):
        if isinstance(block, Rejected):
            yield block
            continue
        lines = [line for line in block if not line.text.startswith("#")]
        if lines:
            yield _sentence(lines, config)


def _sentence(lines: list[Line], config: ConlluConfig) -> Item:
    words: list[str] = []
    labels: list[str] = []
    covered_to = 0  # the last part of the contraction before
    for line in lines:
        fields = line.text.split("\t")
        number = _NUMBER.fullmatch(fields[0])
        if len(fields) != 10 or number is None or not fields[1].strip():
            return Rejected(line.number, "not-conllu", quote(line.text))
        first, last, is_empty_node = number.groups()
        if is_empty_node or (last and config.contractions == "split"):
            continue
        if last:
            covered_to = int(last)
            words.append(fields[1])
            labels.append("")
        elif int(first) <= covered_to:
            labels[-1] += ("+" if labels[-1] else "") + _label(fields, config.label)
        else:
            words.append(fields[1])
            labels.append(_label(fields, config.label))
    if not words or not all(labels):
        return Rejected(lines[0].number, "not-conllu", quote(lines[0].text), "no word, or no parts")
    return (Tagged(tuple(words), tuple(labels)),)


def _label(fields: list[str], name: str) -> str:
    if name in _COLUMNS:
        return fields[_COLUMNS[name]] or _NOTHING
    features = dict(part.partition("=")[::2] for part in fields[5].split("|"))
    return features.get(name) or _NOTHING
