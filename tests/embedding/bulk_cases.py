"""A corpus in several shards, a tiny model for it, and the settings to embed one by the other."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from corpora import prepared
from pretraining.making import tiny_model

from polyseme.commands.embed import EmbedConfig, EmbedResult, run
from polyseme.config import build
from polyseme.model import Model
from polyseme.text.corpus import Corpus


@dataclass(frozen=True)
class Case:
    """A model and a corpus of three shards or more, on disk."""

    model: Path
    corpus: Corpus
    text: Path

    def embed(self, out: Path, **changes: Any) -> EmbedResult:
        """Run the command; `changes` are settings of the vectors."""
        return run(self.settings(out, **changes))

    def settings(self, out: Path, **changes: Any) -> EmbedConfig:
        own = {
            name: changes.pop(name)
            for name in ("inputs", "words_file", "replace", "executor")
            if name in changes
        }
        values = {
            "model": self.model,
            "inputs": [str(self.corpus.folder)],
            "out": out,
            "vectors": changes,
            "executor": {"workers": 1},
        }
        return build(EmbedConfig, values | own)


def make_case(folder: Path, lines: int = 300, shard_bytes: int = 1 << 12) -> Case:
    """Sentences of different lengths, each with a word that no other has."""
    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "text.txt"
    rows = [
        " ".join(f"word{(number * 7 + place) % 50}" for place in range(1 + number % 11))
        + f" n{number} ."
        for number in range(lines)
    ]
    text.write_text("\n".join(rows) + "\n", encoding="utf-8")
    out = folder / "corpus"
    corpus = prepared(text, out, layout="lines", held_out=0.1, shard_bytes=shard_bytes)
    torch.manual_seed(3)
    model: Model = tiny_model(corpus)
    model.save(folder / "model", card="A model for tests.")
    return Case(folder / "model", corpus, text)
