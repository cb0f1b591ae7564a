"""Time per epoch of a task: layers gathered from the cache, against encoding every batch anew.

    python -m benchmarks.transfer_cache data/conll2003/train.txt

The model has the shape of elmo-mini and random weights; sentences are those of a file of columns
(first column the word, empty line between sentences), or made up where none is given. Both ways go
through the same embeddings with the same batches, of sentences alike in length, in turns; only the
settings differ. One line is what transfer does, from sentences to vectors with dropout; the other a
whole epoch of a small tagger, whose own work both ways have in common. Time is processor time of
one thread.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from torch import nn

from benchmarks.side_by_side import print_facts, print_table, take_turns
from polyseme.config import build
from polyseme.data.vocabulary import Vocabulary
from polyseme.model import Model
from polyseme.objectives.encoder_only import EncoderOnlyConfig
from polyseme.presets import PRESETS
from polyseme.tasks.embeddings.cachefolder import list_caches
from polyseme.tasks.embeddings.embeddings import Embeddings, EmbeddingsConfig, FeatureDataset
from polyseme.training.memory import keep_freed_memory

_BAR = 5.0
_HIDDEN, _LABELS = 100, 9
Batches = list[list[int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("columns", type=Path, nargs="?", help="a file of columns")
    parser.add_argument("--sentences", type=int, default=1500, help="how many are used")
    parser.add_argument("--batch", type=int, default=32, help="sentences in a batch")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()  # as commands that train do
    print_facts()
    sentences = list(_read(args.columns, args.sentences) if args.columns else _make(args.sentences))
    order = sorted(range(len(sentences)), key=lambda number: len(sentences[number]))
    batches = [order[begin : begin + args.batch] for begin in range(0, len(order), args.batch)]
    with tempfile.TemporaryDirectory() as folder:
        _measure(Path(folder), sentences, batches, args.repeats)


def _measure(folder: Path, sentences: list[list[str]], batches: Batches, repeats: int) -> None:
    _save_model(folder / "model", sentences)
    began = time.process_time()
    ways = {
        name: _prepare(folder, sentences, is_cached)
        for name, is_cached in (("anew", False), ("cached", True))
    }
    making = time.process_time() - began
    contestants: dict[str, Callable[[], float]] = {}
    for name, (embeddings, dataset) in ways.items():
        contestants[f"vectors, {name}"] = partial(_embed_all, embeddings, dataset, batches)
        contestants[f"tagger, {name}"] = partial(_train, embeddings, dataset, batches)
    for contestant in contestants.values():  # first touch: checksums, kernels
        contestant()
    found = take_turns(contestants, repeats)
    words = sum(map(len, sentences))
    (entry,) = list_caches(folder / "cache")
    print(
        f"elmo-mini's shape, {len(sentences):,} sentences, {words:,} words; the cache took "
        f"{making:.1f} s to make and takes {entry.num_bytes / 1e6:.0f} MB; medians of {repeats}\n"
    )
    middle = {name: statistics.median(seconds) for name, seconds in found.items()}
    rows = [
        (name, f"{middle[name]:.2f}", f"{words / middle[name]:,.0f}", f"{min(s):.2f}-{max(s):.2f}")
        for name, s in found.items()
    ]
    print_table(("an epoch of", "seconds", "words/s", "turns"), rows)
    print()
    for what in ("vectors", "tagger"):
        ratio = middle[f"{what}, anew"] / middle[f"{what}, cached"]
        is_reached = "reached" if ratio >= _BAR else "MISSED"
        told = f"; bar {_BAR:g}: {is_reached}" if what == "vectors" else ""
        print(f"{what}: {ratio:.1f} times faster from the cache{told}")


def _save_model(folder: Path, sentences: list[list[str]]) -> None:
    torch.manual_seed(0)
    config = PRESETS["elmo-mini"].model.model_copy(update={"objective": EncoderOnlyConfig()})
    known = sorted({word for sentence in sentences for word in sentence})[: config.vocabulary.size]
    letters = "".join(sorted(set("".join(known))))
    vocabulary = Vocabulary(
        config.vocabulary, pa.array(known), np.ones(len(known), np.int64), letters
    )
    Model.new(config, vocabulary, None).save(folder, card="Random weights.")


def _prepare(
    folder: Path, sentences: list[list[str]], is_cached: bool
) -> tuple[Embeddings, FeatureDataset]:
    cache = {"folder": folder / "cache"}
    model = {"kind": "frozen", "model": folder / "model", "cached": is_cached, "cache": cache}
    embeddings = Embeddings.new(build(EmbeddingsConfig, {"model": model}), device="cpu")
    return embeddings, embeddings.prepare(sentences)


def _embed_all(embeddings: Embeddings, dataset: FeatureDataset, batches: Batches) -> float:
    """From sentences to mixed vectors."""
    began = time.process_time()
    with torch.no_grad():
        for batch in batches:
            embeddings(dataset.gather(batch))
    return time.process_time() - began


def _train(embeddings: Embeddings, dataset: FeatureDataset, batches: Batches) -> float:
    """A tagger's epoch: one LSTM each way, a softmax over labels that are made up."""
    torch.manual_seed(0)
    lstm = nn.LSTM(embeddings.dims.input, _HIDDEN, batch_first=True, bidirectional=True)
    last = nn.Linear(2 * _HIDDEN, _LABELS)
    trained = [*embeddings.parameters(), *lstm.parameters(), *last.parameters()]
    optimizer = torch.optim.AdamW(trained, lr=1e-3, fused=True)
    began = time.process_time()
    for batch in batches:
        inputs = embeddings(dataset.gather(batch))
        scores = last(lstm(inputs.input)[0])[inputs.mask]
        loss = nn.functional.cross_entropy(scores, torch.arange(len(scores)) % _LABELS)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return time.process_time() - began


def _read(path: Path, most: int) -> Iterator[list[str]]:
    """The first sentences of a file of columns."""
    words: list[str] = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("-DOCSTART-"):
                words.append(line.split()[0])
            elif words:
                yield words
                words, most = [], most - 1
                if most == 0:
                    return


def _make(number: int) -> Iterator[list[str]]:
    """Sentences of 14 words on the mean, words as often as in true text."""
    random = np.random.default_rng(1)
    for length in 1 + random.poisson(13, number):
        yield [f"w{rank:x}" for rank in np.minimum(random.zipf(1.3, length), 20_000)]


if __name__ == "__main__":
    main()
