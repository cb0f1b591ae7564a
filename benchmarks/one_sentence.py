"""How long one sentence takes, with weights packed in float16 and as they are.

    python -m benchmarks.one_sentence models/en-mini corpus/en

Sentences of 20 words of the corpus, one at a time, as someone who types them would wait for them.
Each is embedded both ways, in turns; medians by the clock.
"""

import argparse
import itertools
import statistics
import time
from pathlib import Path
from unittest import mock

import torch

import polyseme
from benchmarks.side_by_side import print_facts, print_table, sentences_of
from polyseme.encoders.one_row import OneRow
from polyseme.text.corpus import Corpus

_LENGTH = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("model", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--threads", default="1,2")
    arguments = parser.parse_args()
    print_facts()
    embedder = polyseme.load(str(arguments.model))
    fitting = (s for s in sentences_of(Corpus.open(arguments.corpus)) if len(s) == _LENGTH)
    sentences = list(itertools.islice(fitting, arguments.sentences + 20))
    rows = []
    for threads in arguments.threads.split(","):
        torch.set_num_threads(int(threads))
        taken: dict[str, list[float]] = {"as they are": [], "packed": []}
        for sentence in sentences:
            for name, seconds in taken.items():
                with mock.patch.object(
                    OneRow, "run", OneRow.run if name == "packed" else _declined
                ):
                    began = time.perf_counter()
                    embedder.embed([sentence])
                    seconds.append(time.perf_counter() - began)
        plain, packed = (1e3 * statistics.median(each[20:]) for each in taken.values())
        rows.append((threads, f"{plain:.1f}", f"{packed:.1f}", f"{packed / plain:.2f}"))
    print_table(("threads", "as they are, ms", "packed, ms", "ratio"), rows)


def _declined(*_: object) -> None:
    return None


if __name__ == "__main__":
    main()
