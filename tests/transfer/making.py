"""Tiny models on disk, the kinds of feed that laws run over, and sentences to feed."""

from pathlib import Path
from typing import Any

import torch
from laws.cases import SENTENCES, WORDS, make

from polyseme.config import build
from polyseme.transfer.fed import Fed
from polyseme.transfer.feed import Feed, FeedConfig

MODELS = {
    "elmo": ("lstm", "apart", "bidirectional", "fused", "full"),
    "plain elmo": ("plain-lstm", "apart", "bidirectional", "bytes", "full"),
    "lstm together": ("lstm", "together", "masked", "fused", "full"),
    "elmo of transformers": ("rotary", "apart", "bidirectional", "unicode", "full"),
    "gpt": ("learned", "forward", "causal", "lookup", "full"),
    "bert": ("rotary", "together", "pairs", "fused", "full"),
    "word2vec": ("none", "forward", "cbow", "lookup", "full"),
}
__all__ = [
    "FEEDS",
    "MODELS",
    "SENTENCES",
    "WORDS",
    "feed_of",
    "feed_one",
    "save_model",
    "with_folders",
]


def save_model(name: str, folder: Path) -> Path:
    """A model with random weights, the same at every call."""
    make(*MODELS[name]).model().save(folder, card="A test's model.")
    return folder


_TABLE = {"vectors": {"kind": "new", "width": 6}, "trained": True}
_SPELT = {
    "spelling": {
        "filters": {"filters": [{"width": 3, "number": 5}], "highways": 1, "width": 4},
        "max_characters": 12,
    }
}
FEEDS: dict[str, dict[str, Any]] = {
    "table": {"words": _TABLE},
    "spelling": {"words": _SPELT},
    "static vectors": {"words": {"vectors": {"kind": "model", "model": "word2vec"}, **_SPELT}},
    "frozen": {"model": {"kind": "frozen", "model": "elmo"}},
    "frozen at both ends": {
        "words": _TABLE,
        "model": {"kind": "frozen", "model": "elmo"},
        "place": "both",
    },
    "frozen, not cached": {"model": {"kind": "frozen", "model": "gpt", "cached": False}},
    "taglm": {
        "words": {**_TABLE, **_SPELT},
        "model": {"kind": "frozen", "model": "elmo"},
        "place": "middle",
        "mix": {"only": -1},
    },
    "fine-tuned": {"model": {"kind": "finetuned", "model": "elmo"}, "mix": {"normalised": True}},
    "fine-tuned at the output": {
        "words": _TABLE,
        "model": {"kind": "finetuned", "model": "bert"},
        "place": "output",
    },
    "fine-tuned gpt": {"model": {"kind": "finetuned", "model": "gpt"}},
}
"""Settings of every kind of feed; `model` is the name of one of MODELS."""


def feed_of(values: dict[str, Any], models: dict[str, Path], cache: Path, **changes: Any) -> Feed:
    """A feed by such settings, for SENTENCES, not in training; the same at every call."""
    values = with_folders({**values, **changes}, models)
    if values.get("model", {}).get("kind") == "frozen":
        values["model"] = {"cache": {"folder": cache}, **values["model"]}
    torch.manual_seed(11)
    words = [word for sentence in SENTENCES[:2] for word in sentence]
    return Feed.new(build(FeedConfig, values), words, device="cpu").eval()


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


def feed_one(feed: Feed, words: list[str]) -> Fed:
    """A sentence fed alone."""
    with torch.no_grad():
        fed: Fed = feed(feed.prepare([words], kept=False).gather([0]))
    return fed
