"""The one list all laws run over. A new context, input, objective or softmax joins it here.

`ModelConfig` itself says which combinations are allowed; the others are left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from polyseme.batches import Batch, Lexicon, LexiconConfig
from polyseme.config import build
from polyseme.errors import ConfigError
from polyseme.model import Model, ModelConfig
from polyseme.objectives.question import Question

WIDTH = 8
WORDS = [f"{first}{last}" for first in ("ba", "no", "tüm", "水") for last in ("", "n", "ello")]
SENTENCES = [
    [WORDS[3], "unseen", WORDS[0]],
    [WORDS[n % len(WORDS)] for n in range(0, 45, 5)],
    [WORDS[7]],
    ["strange", *WORDS[2:8]],
]
_CHARACTERS = {
    "character_width": 4,
    "filters": [{"width": 1, "number": 6}, {"width": 3, "number": 8}],
    "highways": 1,
}
CONTEXTS: dict[str, dict[str, Any]] = {
    "lstm": {"kind": "lstm", "cells": 12, "cell_clip": 1.0, "output_clip": 3.0},
    "plain-lstm": {"kind": "lstm"},
    "rotary": {"kind": "transformer", "layers": 2, "heads": 2, "inner": 16},
    "learned": {
        "kind": "transformer",
        "layers": 2,
        "heads": 2,
        "inner": 16,
        "positions": "learned",
        "longest": 40,
    },
    "none": {"kind": "none"},
}
INPUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "lookup": ("none", {"kind": "lookup", "width": 6}),
    "unicode": ("unicode", {"kind": "characters", "width": WIDTH, **_CHARACTERS}),
    "bytes": ("bytes", {"kind": "characters", "width": WIDTH, **_CHARACTERS}),
    "fused": (
        "unicode",
        {"kind": "fused", "lookup": WIDTH, "characters": {"width": 5, **_CHARACTERS}},
    ),
}
DIRECTIONS = ("forward", "apart", "together")
OBJECTIVES: dict[str, dict[str, Any]] = {
    "bidirectional": {"kind": "bidirectional"},
    "causal": {"kind": "causal"},
    "masked": {"kind": "masked", "next_sentence": False},
    "pairs": {"kind": "masked"},
    "cbow": {"kind": "neighbours", "reach": 2},
    "skip-gram": {"kind": "neighbours", "reach": 2, "predicts": "neighbours"},
}
SOFTMAXES: dict[str, dict[str, Any]] = {
    "full": {"kind": "full"},
    "tied": {"kind": "full", "tied": True},
    "sampled": {"kind": "sampled", "samples": 9},
    "sampled-tied": {"kind": "sampled", "samples": 9, "tied": True},
    "adaptive": {"kind": "adaptive", "cutoffs": [6, 12], "shrink": 1.5},
}


@dataclass(frozen=True)
class Case:
    """One point of the space, tiny."""

    name: str
    config: ModelConfig
    has_pairs: bool

    def model(self) -> Model:
        """A fresh model, the same at every call, not in training."""
        torch.manual_seed(3)
        model = Model.new(self.config, _lexicon(self.config.lexicon), {"segmenter": "none"})
        model.network.eval()
        return model

    def batch(self, sentences: Sequence[Sequence[str]] = SENTENCES) -> Batch:
        """These sentences, as pairs where the objective has them: the second from the middle on."""
        batch = _lexicon(self.config.lexicon).batch(sentences)
        if not self.has_pairs:
            return batch
        place = torch.arange(batch.words.shape[1])
        is_second = batch.mask & (place > batch.lengths[:, None] // 2)
        follows = batch.lengths % 2
        return replace(batch, segments=is_second.long(), follows=follows)

    def question(self, model: Model, batch: Batch | None = None, seed: int = 5) -> Question:
        """What the objective asks about a batch."""
        random = np.random.default_rng(seed)
        return model.network.objective.ask(batch or self.batch(), model.lexicon, random)


@cache
def _lexicon(config: LexiconConfig) -> Lexicon:
    letters = "".join(sorted(set("".join(WORDS) + "unseentrag")))
    return Lexicon(config, pa.array(WORDS), np.ones(len(WORDS), np.int64), letters)


def make(context: str, direction: str, objective: str, reading: str, softmax: str) -> Case:
    """One combination, or a ConfigError in words."""
    characters, described = INPUTS[reading]
    values = {
        "lexicon": {"characters": characters, "max_characters": 12},
        "encoder": {
            "input": described,
            "context": {**CONTEXTS[context], "width": WIDTH},
            "direction": direction,
            "segments": objective == "pairs",
        },
        "objective": {**OBJECTIVES[objective], "softmax": SOFTMAXES[softmax]},
    }
    name = f"{context}-{direction}-{objective}-{reading}-{softmax}"
    return Case(name, build(ModelConfig, values), objective == "pairs")


def _allowed() -> Iterator[Case]:
    grid = product(CONTEXTS, DIRECTIONS, OBJECTIVES, INPUTS, ["full"])
    heads = product(["lstm"], DIRECTIONS, ["bidirectional", "masked"], ["fused"], SOFTMAXES)
    for choice in dict.fromkeys([*grid, *heads]):
        try:
            yield make(*choice)
        except ConfigError:
            continue


CASES = list(_allowed())
every_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
"""Run a law over the whole list."""
