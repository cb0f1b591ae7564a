"""How long one waits for an answer: a sentence's vectors, a word's uses, their groups, an index.

    python -m benchmarks.asking models/en-mini corpus/en --word bank --index index/en

Prints the best of `--repeats` in seconds: sentences of 20 words, one and eight at a time, with
weights packed in float16, as they are, and batch-invariant; finding a word's uses, beside what
pyarrow takes to read the words from Parquet; describing them (half a sentence each way, and beside
it whole sentences), substitutes, grouping; then `senses` as a whole, in this process and as a
command, with and without an index; and what the index takes to find a word drawn by frequency and
to hold one of its uses against all.
"""

import argparse
import itertools
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow.parquet as pq

import polyseme
from benchmarks.side_by_side import print_facts, sentences_of
from polyseme.embedding.embedder import Embedder
from polyseme.encoders.steps import FewRows
from polyseme.meanings.concordance.uses import find_uses
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.groups.grouping import group_uses
from polyseme.meanings.index.use_index import UseIndex
from polyseme.meanings.nearest import most_alike
from polyseme.text.corpus import Corpus

_LENGTH, _SENTENCES = 20, 100


def main() -> None:
    arguments = _parser().parse_args()
    print_facts()
    corpus = Corpus.open(arguments.corpus)
    embedder = polyseme.load(arguments.model, threads=arguments.threads)
    assert isinstance(embedder, Embedder)
    parts = {
        **_sentences(embedder, corpus),
        **_uses(embedder, corpus, arguments),
        **_whole(arguments),
    }
    for name, work in parts.items():
        print(f"{name:44} {_best(work, arguments.repeats):8.3f} s", flush=True)
    if arguments.index:
        _ask(Path(arguments.index), corpus)


def _best(work: Callable[[], Any], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)


def _sentences(embedder: Embedder, corpus: Corpus) -> dict[str, Callable[[], Any]]:
    fitting = (s for s in sentences_of(corpus) if len(s) == _LENGTH)
    chosen = list(itertools.islice(fitting, _SENTENCES))

    def embed(at_once: int = 1, *, is_packed: bool = True, batch_invariant: bool = False) -> None:
        can_run = FewRows.can_run if is_packed else lambda *_: False
        with mock.patch.object(FewRows, "can_run", can_run):
            for begin in range(0, len(chosen), at_once):
                some = chosen[begin : begin + at_once]
                embedder.embed(some, batch_invariant=batch_invariant)

    return {
        f"{len(chosen)} sentences, packed": embed,
        "… as they are": partial(embed, is_packed=False),
        "… batch-invariant": partial(embed, batch_invariant=True),
        "… 8 at once, packed": partial(embed, 8),
        "… 8 at once, as they are": partial(embed, 8, is_packed=False),
    }


def _uses(
    embedder: Embedder, corpus: Corpus, arguments: argparse.Namespace
) -> dict[str, Callable[[], Any]]:
    encoder = ModelUseEncoder(embedder)
    uses = find_uses(corpus, arguments.word)[: arguments.uses]
    sentences = uses.sentences()
    spans = [(begin, end) for begin, end in uses.spans.tolist()]
    print(f"{len(uses):,} uses in sentences of {sum(map(len, sentences)):,} words")

    def around() -> Any:
        return list(encoder.stream_single(sentences, spans))

    contexts, bags = (np.concatenate(each) for each in zip(*around(), strict=True))
    features = encoder.features(contexts, bags)
    return {
        "read the words of all shards by pyarrow": lambda: [
            pq.read_table(shard, columns=["words"]) for shard in corpus.shards
        ],
        "find": lambda: find_uses(corpus, arguments.word),
        "describe": around,
        "describe, whole sentences": lambda: list(
            encoder.stream(sentences, ([span] for span in spans))
        ),
        "substitutes": lambda: encoder.features(contexts, bags),
        "group": lambda: group_uses(features),
    }


def _whole(arguments: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    sources: dict[str, dict[str, Any]] = {"model": {"model": arguments.model}}
    if arguments.index:
        sources["index"] = {"index": arguments.index}
    found: dict[str, Callable[[], Any]] = {}
    for name, source in sources.items():
        line = [sys.executable, "-m", "polyseme", "senses", arguments.word]
        line += ["--in", str(arguments.corpus), f"--{name}", source[name], "--lines", "0"]
        found[f"polyseme.senses, {name}"] = partial(
            polyseme.senses, arguments.corpus, arguments.word, **source
        )
        found[f"the command, {name}"] = partial(
            subprocess.run, line, check=True, capture_output=True
        )
    return found


def _ask(folder: Path, corpus: Corpus) -> None:
    """Times of a word's uses, and of one of them against the others."""
    index = UseIndex.open(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{len(index):,} uses in the index, {size / len(index):,.0f} bytes each")
    names, counts = index.word_counts()
    chosen = np.random.default_rng(1).choice(len(names), 200, p=counts / counts.sum())
    taken: dict[str, list[float]] = {"find a word in the index": [], "nearest within it": []}
    for number in chosen:
        times = [time.perf_counter()]
        found = index.find(corpus, names[number])
        times.append(time.perf_counter())
        features = found.encode(found.uses)
        most_alike(features.select(np.array([0])), features, 10)
        times.append(time.perf_counter())
        for seconds, spent in zip(taken.values(), np.diff(times), strict=True):
            seconds.append(spent)
    for name, seconds in taken.items():
        middle, late = np.percentile(seconds, [50, 99]) * 1000
        print(f"{name:44} {middle:8.1f} ms, p99 {late:.1f} ms")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--index", help="a folder that `polyseme index` made")
    parser.add_argument("--word", default="bank")
    parser.add_argument("--uses", type=int, default=5_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    return parser


if __name__ == "__main__":
    main()
