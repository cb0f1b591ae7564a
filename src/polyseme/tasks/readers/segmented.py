"""Segmented text, a sentence a line with spaces between words, as in the SIGHAN bakeoffs.

    扬帆 远 东        becomes   扬 帆 远 东   with the labels   B E S S

The task is to find the words again from the characters alone.
"""

from itertools import accumulate, pairwise
from pathlib import Path
from typing import Literal

from polyseme.config import Settings
from polyseme.tasks.families.tagging import Tagged
from polyseme.tasks.readers.lines import LONGEST_BLOCK, ReaderItems, numbered_lines
from polyseme.tasks.spans import Scheme, Span, write_labels
from polyseme.text.records import Rejected, quote


class SegmentedConfig(Settings):
    """Words with spaces between them; each character is labelled with its place in its word."""

    kind: Literal["segmented"] = "segmented"
    scheme: Scheme = "bmes"
    """How places are written: bmes (beginning, middle, end, single), bioes, bio or iob1."""
    encoding: str = "utf-8"
    """Character encoding. A byte-order mark in the file overrides it."""


def read(path: Path, config: SegmentedConfig) -> ReaderItems:
    """An example per line that is not blank."""
    for line in numbered_lines(path, config.encoding):
        if isinstance(line, Rejected):
            yield line
            continue
        words = line.text.split()
        characters = tuple("".join(words))
        if len(characters) > LONGEST_BLOCK:
            detail = f"{len(characters):,} characters"
            yield Rejected(line.number, "too-long", quote(line.text), detail)
        elif characters:
            edges = pairwise(accumulate(map(len, words), initial=0))
            spans = [Span("", start, stop) for start, stop in edges]
            labels = write_labels(spans, len(characters), config.scheme)
            yield (Tagged(characters, tuple(labels)),)
