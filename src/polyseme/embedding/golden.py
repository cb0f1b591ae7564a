"""Golden vectors: what a few numbers of published models must be, on any machine.

A machine that gives others has a broken installation, processor or kernel, and everything computed
there is in doubt. The numbers were computed in float64 by the layers that train, which share no
code with those that embed; a test does it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polyseme.embedding.loading import load_embedder
from polyseme.embedding.output import Vectors
from polyseme.embedding.word_embedder import WordEmbedder
from polyseme.errors import ModelError

TOLERANCE = 0.001
"""Far above what another order of adding up changes, far below what a wrong weight does."""
_COPIES = 64  # of the sentence, so that there is enough to read for the compiled kernel to be used


@dataclass(frozen=True)
class GoldenVector:
    """Some dimensions of the top layer at one word of a sentence."""

    words: tuple[str, ...]
    position: int
    values: dict[int, float]


# A sentence of each language, and where its word stands: the same for all models of its words.
_ENGLISH = ("He", "sat", "on", "the", "bank", "of", "the", "river", "."), 4
_CHINESE = ("他", "在", "银行", "工作", "。"), 2
_CHARACTERS = ("他", "往", "河", "边", "走", "去", "。"), 4

GOLDEN = {
    "en-mini": GoldenVector(
        *_ENGLISH,
        {0: 0.731344, 100: 0.75777, 191: -0.000267, 192: 0.902993, 300: -0.888559, 383: 0.252359},
    ),
    "zh-mini": GoldenVector(
        *_CHINESE,
        {
            0: -0.823018,
            100: -0.210568,
            191: 0.813523,
            192: -0.123593,
            300: 0.981897,
            383: -0.254558,
        },
    ),
    "en-base": GoldenVector(
        *_ENGLISH,
        {0: 0.793852, 100: 0.812421, 191: -0.12522, 192: 0.640343, 300: -0.662993, 383: 0.386748},
    ),
    "zh-base": GoldenVector(
        *_CHINESE,
        {
            0: -0.905255,
            100: 0.124272,
            191: 0.663366,
            192: -0.030069,
            300: 0.93768,
            383: -0.126178,
        },
    ),
    "en-novels": GoldenVector(
        *_ENGLISH,
        {0: 0.871432, 100: 0.845844, 191: 0.120129, 192: 1.056335, 300: -0.171946, 383: 0.663737},
    ),
    "zh-classics": GoldenVector(
        *_CHARACTERS,
        {0: 0.755322, 100: -0.870007, 191: 0.450065, 192: 0.498921, 300: 1.060391, 383: -0.097914},
    ),
}
"""By the name of the model."""


def largest_difference(name: str) -> float:
    """How far the vector of an installed model is here from the golden one, at most."""
    return _difference(load_embedder(name), GOLDEN[name])


def check_vectors(embedder: WordEmbedder, name: str) -> None:
    """An error where a model does not give the vectors it should.

    Those of a published model, in a folder of its name, are known. Of any other, a sentence alone
    and among others must have the same vectors: different code works them out.
    """
    golden = GOLDEN.get(Path(name).name)
    if golden is not None:
        difference = _difference(embedder, golden)
    else:
        many, alone = _many_and_alone(embedder, _ENGLISH[0])
        difference = float(np.abs(many - alone).max() / max(1.0, float(np.abs(many).max())))
    if not difference <= TOLERANCE:
        raise ModelError(
            f"{name} gives vectors that differ from the right ones by {difference:.1e}, so the "
            "model or this installation is damaged. Run: polyseme doctor. A model of your own "
            "needs a folder that is not named like a published model."
        )


def _many_and_alone(embedder: WordEmbedder, words: Sequence[str]) -> tuple[Vectors, Vectors]:
    many = next(embedder.stream([words] * _COPIES, layers="top"))  # (1, T, D)
    alone = next(embedder.stream([words], layers="top"))  # by other code: see one_row.c
    return many, alone


def _difference(embedder: WordEmbedder, golden: GoldenVector) -> float:
    if max(golden.values) >= embedder.dim:  # another model with its name
        return float("inf")
    return float(
        max(
            np.abs(found[0, golden.position, at] - value)
            for found in _many_and_alone(embedder, golden.words)
            for at, value in golden.values.items()
        )
    )
