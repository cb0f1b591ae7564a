"""The one list all laws run over. A new contextualizer, input, objective or softmax joins it here.

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

from polyseme.config import build
from polyseme.data.batch import Batch
from polyseme.data.vocabulary import Vocabulary, VocabularyConfig
from polyseme.errors import ConfigError
from polyseme.model import Model, ModelConfig
from polyseme.objectives.prediction import TrainingTargets

DIM = 8
WORDS = [f"{first}{last}" for first in ("ba", "no", "tüm", "水") for last in ("", "n", "ello")]
SENTENCES = [
    [WORDS[3], "unseen", WORDS[0]],
    [WORDS[n % len(WORDS)] for n in range(0, 45, 5)],
    [WORDS[7]],
    ["strange", *WORDS[2:8]],
]
_CHARACTERS = {
    "char_dim": 4,
    "filters": [{"width": 1, "num_filters": 6}, {"width": 3, "num_filters": 8}],
    "num_highway_layers": 1,
}
_LSTM = {"kind": "lstm", "proj_size": DIM}
_TRANSFORMER = {"kind": "transformer", "num_layers": 2, "dim": DIM, "num_heads": 2, "ffn_dim": 16}
CONTEXTUALIZERS: dict[str, dict[str, Any]] = {
    "lstm": {**_LSTM, "hidden_size": 12, "cell_clip": 1.0, "output_clip": 3.0},
    "plain-lstm": _LSTM,
    "rotary": _TRANSFORMER,
    "learned": {**_TRANSFORMER, "positions": "learned", "max_positions": 40},
    "feedforward": {"kind": "feedforward", "dim": DIM, "window": 3},
    "none": {"kind": "none", "dim": DIM},
}
INPUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "word": ("none", {"kind": "word", "dim": 6}),
    "unicode": ("unicode", {"kind": "characters", "dim": DIM, **_CHARACTERS}),
    "bytes": ("bytes", {"kind": "characters", "dim": DIM, **_CHARACTERS}),
    "word+characters": (
        "unicode",
        {"kind": "word+characters", "word_dim": DIM, "characters": {"dim": 5, **_CHARACTERS}},
    ),
}
DIRECTIONS = ("forward", "separate", "joint")
OBJECTIVES: dict[str, dict[str, Any]] = {
    "bidirectional": {"kind": "bidirectional"},
    "cloze": {"kind": "bidirectional", "cloze": True},
    "causal": {"kind": "causal"},
    "masked": {"kind": "masked", "next_sentence": False},
    "pairs": {"kind": "masked"},
    "cbow": {"kind": "word2vec", "window": 2},
    "skip-gram": {"kind": "word2vec", "window": 2, "architecture": "skipgram"},
}
SOFTMAXES: dict[str, dict[str, Any]] = {
    "full": {"kind": "full"},
    "tied": {"kind": "full", "tied": True},
    "sampled": {"kind": "sampled", "num_samples": 9},
    "sampled-tied": {"kind": "sampled", "num_samples": 9, "tied": True},
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
        model = Model.new(self.config, _vocabulary(self.config.vocabulary), None)
        model.network.eval()
        return model

    def batch(self, sentences: Sequence[Sequence[str]] = SENTENCES) -> Batch:
        """These sentences, as pairs where the objective has them: the second from the middle on."""
        batch = _vocabulary(self.config.vocabulary).batch(sentences)
        if not self.has_pairs:
            return batch
        position = torch.arange(batch.words.shape[1])
        is_second = batch.mask & (position > batch.lengths[:, None] // 2)
        follows = batch.lengths % 2
        return replace(batch, segments=is_second.long(), follows=follows)

    def targets(self, model: Model, batch: Batch | None = None, seed: int = 5) -> TrainingTargets:
        """What the objective predicts of a batch."""
        random = np.random.default_rng(seed)
        return model.network.objective.make_targets(batch or self.batch(), model.vocabulary, random)


@cache
def _vocabulary(config: VocabularyConfig) -> Vocabulary:
    letters = "".join(sorted(set("".join(WORDS) + "unseentrag")))
    return Vocabulary(config, pa.array(WORDS), np.ones(len(WORDS), np.int64), letters)


def make(contextualizer: str, direction: str, objective: str, reading: str, softmax: str) -> Case:
    """One combination, or a ConfigError in words."""
    characters, described = INPUTS[reading]
    values = {
        "vocabulary": {"characters": characters, "max_characters": 12},
        "encoder": {
            "input": described,
            "contextualizer": CONTEXTUALIZERS[contextualizer],
            "direction": direction,
            "segments": objective == "pairs",
        },
        "objective": {**OBJECTIVES[objective], "softmax": SOFTMAXES[softmax]},
    }
    name = f"{contextualizer}-{direction}-{objective}-{reading}-{softmax}"
    return Case(name, build(ModelConfig, values), objective == "pairs")


def _allowed() -> Iterator[Case]:
    objectives = OBJECTIVES.keys() - {"cloze"}  # reads as "bidirectional" does
    grid = product(CONTEXTUALIZERS, DIRECTIONS, sorted(objectives), INPUTS, ["full"])
    clozes = product(["lstm", "rotary"], ["separate"], ["cloze"], ["word"], ["full", "sampled"])
    heads = product(
        ["lstm"], DIRECTIONS, ["bidirectional", "masked"], ["word+characters"], SOFTMAXES
    )
    for choice in dict.fromkeys([*grid, *heads, *clozes]):
        try:
            yield make(*choice)
        except ConfigError:
            continue


CASES = list(_allowed())
every_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
"""Run a law over the whole list."""
