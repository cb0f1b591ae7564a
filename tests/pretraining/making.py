"""A corpus with a rule a model can learn, and models small enough to learn it in seconds."""

from pathlib import Path
from typing import Any

from corpora import prepared

from polyseme.config import build
from polyseme.data.stream import BatchConfig
from polyseme.data.vocabulary import Vocabulary
from polyseme.model import Model, ModelConfig
from polyseme.pretraining.language_modeling import Pretraining
from polyseme.text.corpus import Corpus

ANIMALS = ("cat", "dog", "hen", "cow", "pig", "fox")
SOUNDS = ("purrs", "barks", "clucks", "moos", "grunts", "howls")


def rule_text(lines: int = 240) -> str:
    """Each animal makes its own sound, twice: the second half of a line follows from the first."""
    rows = []
    for number in range(lines):
        animal, sound = ANIMALS[number % 6], SOUNDS[number % 6]
        many = "The old" if number % 4 else "One young"
        rows.append(f"{many} {animal} {sound} and {sound} .")
    return "\n".join(rows) + "\n"


def rule_corpus(folder: Path) -> Corpus:
    """`rule_text` prepared, a document a line, a part of them held out."""
    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "text.txt"
    text.write_text(rule_text(), encoding="utf-8")
    return prepared(text, folder / "corpus", layout="lines", held_out=0.2)


def tiny_values(**changes: Any) -> dict[str, Any]:
    """Settings of a tiny ELMo; `changes` replaces whole parts."""
    values: dict[str, Any] = {
        "vocabulary": {"size": 100, "min_count": 1},
        "encoder": {
            "input": {"kind": "word", "dim": 16},
            "contextualizer": {"kind": "lstm", "num_layers": 2, "proj_size": 16, "hidden_size": 24},
            "direction": "separate",
        },
        "objective": {"kind": "bidirectional", "softmax": {"kind": "full"}},
    }
    return values | changes


def tiny_model(corpus: Corpus, **changes: Any) -> Model:
    """An untrained tiny model for a corpus."""
    config = build(ModelConfig, tiny_values(**changes))
    return Model.new(config, Vocabulary.of(corpus, config.vocabulary), corpus.preparation)


def tiny_train_module(corpus: Corpus, *, seed: int = 1, **changes: Any) -> Pretraining:
    """The same as something to train."""
    batches = BatchConfig(words=200)
    return Pretraining(
        tiny_model(corpus, **changes), corpus, batches, seed=seed, held_out_words=10_000
    )
