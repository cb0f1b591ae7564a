"""What bitwise equality costs: `batch_invariant=True` beside the default, at 1, 8 and 32 sentences.

    python -m benchmarks.embed_batch_invariant

Random weights in the shape of a preset, sentences of 3 to 40 words, words met before: layer 0 is
remembered, and would be the same work in both. Medians over turns taken one after the other.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import torch

from benchmarks.side_by_side import print_table, take_turns
from polyseme.data.vocabulary import Vocabulary
from polyseme.embedding.embedder import Embedder
from polyseme.model import Model
from polyseme.presets import PRESETS

_NUM_SENTENCES = (1, 8, 32)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--presets", default="elmo-mini,elmo-transformer,bert-mini")
    arguments.add_argument("--repeats", type=int, default=5)
    arguments.add_argument("--threads", type=int, default=1)
    chosen = arguments.parse_args()
    rows = []
    for preset in chosen.presets.split(","):
        embedder = random_embedder(preset, chosen.threads)
        for number in _NUM_SENTENCES:
            sentences = random_sentences(number)
            contestants: dict[str, Callable[[], float]] = {
                "default": partial(seconds, embedder, sentences, batch_invariant=False),
                "batch-invariant": partial(seconds, embedder, sentences, batch_invariant=True),
            }
            seconds(embedder, sentences, batch_invariant=False)
            found = take_turns(contestants, chosen.repeats)
            default, batch_invariant = (statistics.median(found[name]) for name in contestants)
            times = [f"{1e3 * time:.1f}" for time in (default, batch_invariant)]
            rows.append([preset, str(number), *times, f"{batch_invariant / default:.1f}"])
    print_table(["preset", "sentences", "default, ms", "batch-invariant, ms", "times"], rows)


def random_embedder(preset: str, threads: int) -> Embedder:
    """A preset with random weights and words that are numbers."""
    torch.manual_seed(1)
    config = PRESETS[preset].model
    words = [str(number) for number in range(5000)]
    counts = np.ones(len(words), np.int64)
    vocabulary = Vocabulary(config.vocabulary, pa.array(words), counts, "0123456789")
    return Embedder(Model.new(config, vocabulary, None), device="cpu", threads=threads)


def random_sentences(number: int) -> list[list[str]]:
    """Of 3 to 40 words."""
    random = np.random.default_rng(number)
    lengths = random.integers(3, 41, number)
    return [[str(word) for word in random.integers(0, 5000, length)] for length in lengths]


def seconds(embedder: Embedder, sentences: list[list[str]], *, batch_invariant: bool) -> float:
    """What it takes to embed them."""
    begin = time.perf_counter()
    for _ in embedder.stream(sentences, batch_invariant=batch_invariant):
        pass
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
