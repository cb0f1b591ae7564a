"""How long a word's uses take to find, beside what pyarrow takes to read the words from Parquet.

    python benchmarks/find_uses.py corpus/en bank "river bank" hippopotamus

For each word: uses found, seconds of `find_uses` and of the whole command, medians of several
rounds after one that warms the files. The loop of pyarrow reads the words column of all row groups,
as dictionaries, on the same number of threads, and looks for nothing.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq

from polyseme.meanings.concordance.search import ShardGroups, all_groups
from polyseme.meanings.concordance.uses import find_uses
from polyseme.text.corpus import SHARDS, WORDS, Corpus


def bare(parts: list[ShardGroups], threads: int) -> int:
    def read(part: ShardGroups) -> int:
        file = pq.ParquetFile(part.path, read_dictionary=["words.list.element"])
        tables = (file.read_row_group(n, ["words"], use_threads=False) for n in part.groups)
        return sum(table.num_rows for table in tables)

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(read, parts))


def seconds(work: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Median of wall and of processor time, after a round that is not counted."""
    work()
    rounds = []
    for _ in range(repeats):
        began, used = time.perf_counter(), time.process_time()
        work()
        rounds.append((time.perf_counter() - began, time.process_time() - used))
    wall, processor = zip(*rounds, strict=True)
    return statistics.median(wall), statistics.median(processor)


def command(folder: Path, word: str) -> None:
    line = [sys.executable, "-m", "polyseme", "uses", word, "--in", str(folder)]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("words", nargs="+")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    corpus = Corpus.open(args.corpus)
    words, shards = (
        sum(path.stat().st_size for path in (corpus.folder / name).iterdir())
        for name in (WORDS, SHARDS)
    )
    print(f"{corpus}; words {words / 1e6:,.1f} MB beside {shards / 1e6:,.1f} MB of shards")
    parts = all_groups(corpus)
    print(
        f"    {'pyarrow, words only':<26} {seconds(lambda: bare(parts, args.threads), 3)[0]:6.2f} s"
    )
    for word in args.words:
        print(f"{word!r}: {len(find_uses(corpus, word)):,} uses")
        for name, work in {
            "find_uses": lambda word=word: find_uses(corpus, word, threads=args.threads),
            "polyseme uses (command)": lambda word=word: command(args.corpus, word),
        }.items():
            wall, processor = seconds(work, args.repeats)
            used = f", processor {processor:.2f} s" if "command" not in name else ""
            print(f"    {name:<26} {wall:6.2f} s{used}")


if __name__ == "__main__":
    main()
