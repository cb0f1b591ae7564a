"""A line a text, its label before it: `1 one long string of cliches .`, as in TREC, MR and Subj."""

from pathlib import Path
from typing import Literal

from polyseme.config import Settings
from polyseme.tasks.families.classification import Classified
from polyseme.tasks.readers.lines import ReaderItems, numbered_lines
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
    for line in numbered_lines(path, config.encoding):
        if isinstance(line, Rejected):
            yield line
            continue
        label, *rest = line.text.split(maxsplit=1) or [""]
        if rest:
            text = rest[0].strip()
            yield (Classified(tuple(text.split()) if config.is_split else text, label),)
        elif label:
            yield Rejected(line.number, "no-text", quote(line.text))
