"""Tiny models on disk, the kinds of embeddings that laws run over, and sentences."""

from pathlib import Path
from typing import Any

import torch
from laws.cases import SENTENCES, WORDS, make

from polyseme.config import build
from polyseme.tasks.embeddings.embeddings import Embeddings, EmbeddingsConfig
from polyseme.tasks.embeddings.features import TaskInputs

MODELS = {
    "elmo": ("lstm", "separate", "bidirectional", "word+characters", "full"),
    "plain elmo": ("plain-lstm", "separate", "bidirectional", "bytes", "full"),
    "lstm joint": ("lstm", "joint", "masked", "word+characters", "full"),
    "elmo of transformers": ("rotary", "separate", "bidirectional", "unicode", "full"),
    "gpt": ("learned", "forward", "causal", "word", "full"),
    "bert": ("rotary", "joint", "pairs", "word+characters", "full"),
    "word2vec": ("none", "forward", "cbow", "word", "full"),
}
__all__ = [
    "EMBEDDINGS",
    "MODELS",
    "SENTENCES",
    "WORDS",
    "embed_one",
    "embeddings_of",
    "save_model",
    "with_folders",
]


def save_model(name: str, folder: Path) -> Path:
    """A model with random weights, the same at every call."""
    make(*MODELS[name]).model().save(folder, card="A test's model.")
    return folder


_TABLE = {"vectors": {"kind": "new", "dim": 6}, "trained": True}
_SPELT = {
    "characters": {
        "cnn": {"filters": [{"width": 3, "num_filters": 5}], "num_highway_layers": 1, "dim": 4},
        "max_characters": 12,
    }
}
EMBEDDINGS: dict[str, dict[str, Any]] = {
    "table": {"words": _TABLE},
    "characters": {"words": _SPELT},
    "static vectors": {"words": {"vectors": {"kind": "model", "model": "word2vec"}, **_SPELT}},
    "frozen": {"model": {"kind": "frozen", "model": "elmo"}},
    "frozen at both ends": {
        "words": _TABLE,
        "model": {"kind": "frozen", "model": "elmo"},
        "insert_at": "both",
    },
    "frozen, not cached": {"model": {"kind": "frozen", "model": "gpt", "cached": False}},
    "taglm": {
        "words": {**_TABLE, **_SPELT},
        "model": {"kind": "frozen", "model": "elmo"},
        "insert_at": "after_first_layer",
        "mix": {"layer": -1},
    },
    "fine-tuned": {"model": {"kind": "finetuned", "model": "elmo"}, "mix": {"layer_norm": True}},
    "fine-tuned at the output": {
        "words": _TABLE,
        "model": {"kind": "finetuned", "model": "bert"},
        "insert_at": "output",
    },
    "fine-tuned gpt": {"model": {"kind": "finetuned", "model": "gpt"}},
}
"""Settings of every kind of embeddings; `model` is the name of one of MODELS."""


def embeddings_of(
    values: dict[str, Any], models: dict[str, Path], cache: Path, **changes: Any
) -> Embeddings:
    """Embeddings by such settings, for SENTENCES, not in training; the same at every call."""
    values = with_folders({**values, **changes}, models)
    if values.get("model", {}).get("kind") == "frozen":
        values["model"] = {"cache": {"folder": cache}, **values["model"]}
    torch.manual_seed(11)
    words = [word for sentence in SENTENCES[:2] for word in sentence]
    return Embeddings.new(build(EmbeddingsConfig, values), words, device="cpu").eval()


def with_folders(value: Any, models: dict[str, Path]) -> Any:
    """Settings with the folder of each model in place of its name."""
    if not isinstance(value, dict):
        return value
    return {
        key: models[part]
        if key == "model" and isinstance(part, str)
        else with_folders(part, models)
        for key, part in value.items()
    }


def embed_one(embeddings: Embeddings, words: list[str]) -> TaskInputs:
    """The inputs of a sentence alone."""
    with torch.no_grad():
        inputs: TaskInputs = embeddings(embeddings.prepare([words], use_cache=False).gather([0]))
    return inputs
