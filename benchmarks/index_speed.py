"""What an index costs to make and to ask, beside embedding the same text in bulk.

    python -m benchmarks.index_speed models/en-mini corpus/en --words 300000

A part of the corpus is prepared again by itself, so that both commands read the same words. Prints,
for `--repeats` turns in which they alternate: words per second of `polyseme embed` (top layer) and
of `polyseme index`, one worker each, and their ratio; bytes per use; then, for words of the index
drawn by their frequency, milliseconds to find a word's uses, and to hold one use against all.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.side_by_side import sentences_of
from polyseme.commands import embed, prepare
from polyseme.commands import index as indexing
from polyseme.config import build
from polyseme.meanings.index.use_index import UseIndex
from polyseme.meanings.nearest import most_alike
from polyseme.text.corpus import Corpus


def main() -> None:
    arguments = _parser().parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        corpus = _beginning(Corpus.open(arguments.corpus), arguments.words, folder)
        words = corpus.read_stats["words"]
        print(f"{words:,} words, one worker, one thread")
        for turn in range(arguments.repeats):
            bulk = words / _embed(arguments.model, corpus, folder / f"vectors-{turn}")
            made = _index(arguments, corpus, folder / f"index-{turn}")
            speed = words / made.seconds
            print(f"embed {bulk:,.0f} words/s, index {speed:,.0f} words/s: {speed / bulk:.2f} x")
        uses = made.index.manifest["counts"]["uses"]
        print(
            f"{uses:,} uses of {made.num_words:,} words, {made.index.num_bytes / uses:,.0f} bytes"
        )
        _ask(UseIndex.open(made.index.folder), corpus, arguments.questions)


def _beginning(corpus: Corpus, most: int, folder: Path) -> Corpus:
    """The first sentences of a corpus as one of its own."""
    with (folder / "texts.txt").open("w", encoding="utf-8") as file:
        read = 0
        for words in sentences_of(corpus):
            file.write(" ".join(words) + "\n")
            read += len(words)
            if read >= most:
                break
    changed = {"layout": "lines", "held_out": 0.0, "meta": (), "shard_bytes": 1 << 20}
    settings = corpus.config.model_dump() | changed
    values = {"inputs": (str(folder / "texts.txt"),), "out": folder / "corpus", "corpus": settings}
    return prepare.run(build(prepare.PrepareConfig, values)).corpus


def _embed(model: Path, corpus: Corpus, out: Path) -> float:
    values = {"model": model, "inputs": (str(corpus.folder),), "out": out,
              "vectors": {"layers": "top"}, "executor": {"workers": 1}}  # fmt: skip
    return embed.run(build(embed.EmbedConfig, values)).seconds


def _index(arguments: argparse.Namespace, corpus: Corpus, out: Path) -> indexing.IndexResult:
    values = {"model": arguments.model, "folder": corpus.folder, "out": out,
              "index": {"min_uses": arguments.min_uses}, "executor": {"workers": 1}}  # fmt: skip
    return indexing.run(build(indexing.IndexConfig, values))


def _ask(index: UseIndex, corpus: Corpus, questions: int) -> None:
    """Times of a word's uses, and of one of them against the others."""
    random = np.random.default_rng(1)
    names, counts = index.word_counts()
    chosen = random.choice(len(names), questions, p=counts / counts.sum())
    finding, comparing, sizes = [], [], []
    for word in (names[number] for number in chosen):
        began = time.perf_counter()
        found = index.find(corpus, word)
        finding.append(time.perf_counter() - began)
        began = time.perf_counter()
        features = found.describe(found.uses)
        most_alike(features.select(np.array([0])), features, 10)
        comparing.append(time.perf_counter() - began)
        sizes.append(len(found.uses))
    print(f"{questions} words with {statistics.median(sizes):,.0f} uses (median)")
    for name, times in (("find a word", finding), ("nearest within it", comparing)):
        middle, late = np.percentile(times, [50, 99]) * 1000
        print(f"{name:20} {middle:7.1f} ms, p99 {late:7.1f} ms")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--words", type=int, default=300_000)
    parser.add_argument("--min-uses", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--questions", type=int, default=200)
    return parser


if __name__ == "__main__":
    main()
