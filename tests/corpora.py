"""Texts written in a test, prepared: the corpora of most tests begin here."""

from pathlib import Path
from typing import Any

from polyseme.commands.prepare import PrepareConfig, run
from polyseme.config import build
from polyseme.text.corpus import Corpus


def prepared(text: Path, out: Path, *, language: str = "en", **corpus: Any) -> Corpus:
    """A corpus of one file, by one worker; `corpus` are its settings."""
    values = {
        "inputs": [str(text)],
        "out": out,
        "executor": {"workers": 1},
        "corpus": {"language": language, **corpus},
    }
    return run(build(PrepareConfig, values)).corpus
