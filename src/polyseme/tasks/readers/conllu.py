"""CoNLL-U treebanks: a sentence's words with one of their columns or features as labels."""

from pathlib import Path
from typing import Literal

from polyseme.config import Settings
from polyseme.tasks.families.tagging import Tagged
from polyseme.tasks.readers.lines import ReaderItem, ReaderItems, blocks, numbered_lines
from polyseme.text.formats.marked import parse_line
from polyseme.text.formats.tables import NumberedLine
from polyseme.text.records import Rejected, quote

_COLUMNS = {"lemma": 2, "upos": 3, "xpos": 4, "feats": 5, "deprel": 7}
_NOTHING = "_"


class ConlluConfig(Settings):
    """A treebank. Nodes that nothing was written for are left out."""

    kind: Literal["conllu"] = "conllu"
    label: str = "upos"
    """What the label is: a column (upos, xpos, feats, deprel, lemma), or one feature by its name
    (Number, Case, Tense); a word without that feature is labelled _."""
    contractions: Literal["split", "joined"] = "split"
    """Contractions (French du, English don't in some treebanks): split, the treebank's own parts,
    each with its label; or joined, the word as written, with the parts' labels joined by +."""


def read(path: Path, config: ConlluConfig) -> ReaderItems:
    """An example per sentence. A line that is not CoNLL-U spoils the sentence it is in."""
    for block in blocks(numbered_lines(path, "utf-8")):
        if isinstance(block, Rejected):
            yield block
            continue
        lines = [line for line in block if not line.text.startswith("#")]
        if lines:
            yield _sentence(lines, config)


def _sentence(lines: list[NumberedLine], config: ConlluConfig) -> ReaderItem:
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
