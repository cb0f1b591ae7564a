"""How long queries take, and how much memory.

    python -m benchmarks.query CORPUS [QUERY ...] --repeats 3

Prints the best of `--repeats` in seconds, files warm, beside the processor time of all threads; the
number of matches; and the largest memory of the process.
"""

import argparse
import os
import resource
import time

import polyseme
from polyseme.text.corpus import Corpus

QUERIES = (
    '"bank"',
    '"bank"%c',
    '[word=".*ization"]',
    '[word="un.*able"%c]',
    '"bank" []{0,3} "account"',
    '"the" []{0,3} "bank"',
    '"the" [] "of" []{0,2} "king"',
    '"as" []* "as" "possible"',
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus")
    parser.add_argument("queries", nargs="*", default=QUERIES)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    corpus = Corpus.open(arguments.corpus)
    words, load = corpus.read_stats["words"], os.getloadavg()[0]
    print(f"{words:,} words, {os.cpu_count()} cores, load {load:.0f}")
    print("\n| query | matches | s | processor s |")
    print("|---|---:|---:|---:|")
    for query in arguments.queries:
        times = []
        for _ in range(arguments.repeats):
            began, used = time.perf_counter(), time.process_time()
            found = len(polyseme.query(corpus, query))
            times.append((time.perf_counter() - began, time.process_time() - used))
        wall, processor = min(times)
        print(f"| `{query}` | {found:,} | {wall:.2f} | {processor:.2f} |")
    print(f"\nlargest memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    main()
