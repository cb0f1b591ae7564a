"""How long collocates and keywords take, and how much memory.

    python -m benchmarks.tables CORPUS --word bank --where "document~a" --repeats 3

Prints the best of `--repeats` in seconds, files warm: words counted, documents counted, and the
whole as a call; the processor time of all threads; and the largest memory of the process.
"""

import argparse
import resource
import time
from collections.abc import Callable

import polyseme
from benchmarks.side_by_side import print_facts
from polyseme.meanings.concordance.uses import find_uses
from polyseme.text.corpus import Corpus


def main() -> None:
    arguments = _parser().parse_args()
    print_facts()
    corpus = Corpus.open(arguments.corpus)
    print(f"{corpus.read_stats['words']:,} words, {corpus.read_stats['documents']:,} documents")
    print(f"uses of {arguments.word!r}: {len(find_uses(corpus, arguments.word)):,}")
    work: dict[str, Callable[[], object]] = {
        "collocates": lambda: polyseme.collocates(corpus, arguments.word),
        "collocates, sentence": lambda: polyseme.collocates(corpus, arguments.word, sentence=True),
        "keywords against the rest": lambda: polyseme.keywords(corpus, where=arguments.where),
    }
    for name, run in work.items():
        wall, processor = min(_timed(run) for _ in range(arguments.repeats))
        print(f"{name:>26}: {wall:.2f} s, {processor:.2f} s of processors")
    print(f"largest memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


def _timed(run: Callable[[], object]) -> tuple[float, float]:
    began, used = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - began, time.process_time() - used


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus")
    parser.add_argument("--word", default="bank")
    parser.add_argument("--where", default="document~1")
    parser.add_argument("--repeats", type=int, default=3)
    return parser


if __name__ == "__main__":
    main()
