"""Polyseme: your texts in, every word's meanings out.

    embedder = polyseme.load("models/en-mini")
    for sentence in embedder.embed("She plays the piano. It rains."):
        print(sentence.words, sentence.vectors.shape)

Importing this package loads nothing but this file. The rooms are imported by whoever uses
them: `polyseme.text` for corpora, `polyseme.engines` for work over many shards.
"""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from os import PathLike

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
    try:
        from polyseme.vectors.embedder import Embedder
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "safetensors"):
            raise
        from polyseme.errors import MissingExtraError

        raise MissingExtraError.of(error.name, extra="torch", purpose="Embedding") from error
    return Embedder.load(folder, device=device, precision=precision, threads=threads)
