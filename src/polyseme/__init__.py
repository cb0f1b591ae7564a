"""Polyseme: your texts in, every word's meanings out.

    embedder = polyseme.load("models/en-mini")
    for sentence in embedder.embed("She plays the piano. It rains."):
        print(sentence.words, sentence.vectors.shape)

Importing this package loads nothing but this file. The rooms are imported by whoever uses
them: `polyseme.text` for corpora, `polyseme.engines` for work over many shards.
"""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from polyseme.pretraining.scores import Score
    from polyseme.vectors.embedder import Embedder

__version__ = "0.1.0"


def load(
    folder: "str | PathLike[str]",
    *,
    device: str | None = None,
    precision: Literal["float32", "bfloat16"] = "float32",
    threads: int | None = None,
) -> "Embedder":
    """The model in a folder, ready to turn words into vectors.

    Without `device`, a GPU is used if there is one. `precision="bfloat16"` is faster, and less
    exact in the third digit. `threads` is how many processor threads work; without it, as torch
    chooses.
    """
    from polyseme.errors import torch_needed_for

    with torch_needed_for("Embedding"):
        from polyseme.vectors.embedder import Embedder
    return Embedder.load(folder, device=device, precision=precision, threads=threads)


def score(folder: "str | PathLike[str]", texts: "str | Sequence[str]") -> "list[Score]":
    """How likely each sentence of these texts is by the model in a folder, word by word.

    `score.total` is the mean over directions of the natural log-probability; `score.parts` has
    each direction, word by word.
    """
    from pathlib import Path

    from polyseme.errors import torch_needed_for

    with torch_needed_for("Scoring"):
        from polyseme.pretraining.scores import score_texts
    return score_texts(Path(folder), [texts] if isinstance(texts, str) else texts)
