"""Where the time of `polyseme senses` goes, for a word with many uses.

    python -m benchmarks.senses_speed models/en-mini corpus/en --word bank --index index/en

Prints the seconds of each part, the best of `--repeats`: finding the uses, describing them (reading
half a sentence each way, and beside it whole sentences both ways), substitutes, and grouping; then
those of the whole, in this process and as a command, with and without an index that has the word.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import polyseme
from polyseme.meanings.concordance.uses import find_uses
from polyseme.meanings.features.use_describer import UseDescriber
from polyseme.meanings.groups.grouping import group_uses
from polyseme.text.corpus import Corpus


def main() -> None:
    arguments = _parser().parse_args()
    corpus = Corpus.open(arguments.corpus)
    describer = UseDescriber(polyseme.load(arguments.model, threads=arguments.threads))
    uses = find_uses(corpus, arguments.word)[: arguments.uses]
    sentences = uses.sentences()
    spans = [(begin, end) for begin, end in uses.spans.tolist()]
    words = sum(len(sentence) for sentence in sentences)
    print(f"{len(uses):,} uses in sentences of {words:,} words")

    def around() -> Any:
        return list(describer.stream_single(sentences, spans))

    described = around()
    contexts, bags = (np.concatenate(each) for each in zip(*described, strict=True))
    features = describer.features(contexts, bags)
    parts: dict[str, Callable[[], Any]] = {
        "find": lambda: find_uses(corpus, arguments.word),
        "describe": around,
        "describe, whole sentences": lambda: list(
            describer.stream(sentences, ([span] for span in spans))
        ),
        "substitutes": lambda: describer.features(contexts, bags),
        "group": lambda: group_uses(features),
    }
    for name, source in _sources(arguments).items():
        parts[f"polyseme.senses, {name}"] = partial(
            polyseme.senses, arguments.corpus, arguments.word, **source
        )
        parts[f"the command, {name}"] = partial(_command, arguments, source)
    for name, work in parts.items():
        print(f"{name:28} {min(_seconds(work) for _ in range(arguments.repeats)):7.2f} s")


def _sources(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Where the features of uses come from, as `senses` takes it."""
    sources: dict[str, dict[str, Any]] = {"model": {"model": arguments.model}}
    return sources | ({"index": {"index": arguments.index}} if arguments.index else {})


def _command(arguments: argparse.Namespace, source: dict[str, Any]) -> None:
    [(option, folder)] = source.items()
    line = [sys.executable, "-m", "polyseme", "senses", arguments.word]
    line += ["--in", str(arguments.corpus), f"--{option}", folder, "--lines", "0"]
    subprocess.run(line, check=True, capture_output=True)


def _seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
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
