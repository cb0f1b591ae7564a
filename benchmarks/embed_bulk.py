"""How fast `embed` writes vectors to disk, and how much memory it takes.

    python -m benchmarks.embed_bulk speed MODEL CORPUS --words 500000     command against bare loop
    python -m benchmarks.embed_bulk backends MODEL CORPUS --words 5000000  Ray against local
    python -m benchmarks.embed_bulk memory MODEL CORPUS                   5 M words against 1 M

The bare loop embeds the same sentences in one process, one thread, and writes nothing. Everything
is compared in one run, in turns; ratios of medians.
"""

import argparse
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from benchmarks.side_by_side import compare, print_table, take_turns, verdict
from polyseme.embedding.corpus_parts import CorpusPart, parts_of
from polyseme.embedding.embedder import Embedder
from polyseme.storage.files import copy_file, describe_files
from polyseme.storage.folders import CONFIG, write_manifest
from polyseme.text.corpus import ARTIFACT, VOCABULARY, Corpus

TOP = ("--layers", "top")  # one layer: what most keep


def cut_corpus(corpus: Corpus, words: int, folder: Path) -> Corpus:
    """The first shards of a corpus with about so many words, as a corpus of their own."""
    import pyarrow.parquet as pq

    (folder / "shards").mkdir(parents=True)
    left = words
    for shard in corpus.shards:
        with pq.ParquetFile(shard) as file:
            schema = file.schema_arrow
            target = folder / "shards" / shard.name
            with pq.ParquetWriter(target, schema, compression="zstd") as writer:
                for group in range(file.num_row_groups):
                    if left > 0:
                        table = file.read_row_group(group)
                        writer.write_table(table, row_group_size=len(table))
                        left -= len(table["words"].combine_chunks().flatten())
        if left <= 0:
            break
    names = sorted(path.name for path in (folder / "shards").iterdir())
    for name in (CONFIG, VOCABULARY):
        copy_file(corpus.folder / name, folder / name)
    files = describe_files(folder, [*(f"shards/{name}" for name in names), CONFIG, VOCABULARY])
    metadata = {key: corpus.manifest[key] for key in ARTIFACT.metadata_keys}
    write_manifest(folder, ARTIFACT, files, **metadata)
    return Corpus.open(folder)


def embed(model: Path, corpus: Corpus, *more: str) -> tuple[float, float]:
    """Seconds that the command takes, and the most memory (MB) of it and all it started."""
    with tempfile.TemporaryDirectory(dir=corpus.folder.parent) as out:
        command = [sys.executable, "-m", "polyseme", "embed", str(model), str(corpus.folder)]
        began = time.monotonic()
        process = subprocess.Popen(
            [*command, *TOP, *more, "--out", f"{out}/v"], stdout=subprocess.DEVNULL
        )
        most = 0.0
        while process.poll() is None:
            most = max(most, memory_of(process.pid))
            time.sleep(0.2)
        assert process.returncode == 0
        return time.monotonic() - began, most


def memory_of(pid: int) -> float:
    """Megabytes of a process and those it started; pages they share count once for each."""
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        return float(sum(one.memory_info().rss for one in family)) / 1e6
    except psutil.NoSuchProcess:
        return 0.0


def num_words(parts: list[CorpusPart]) -> int:
    return sum(len(sentence.words) for part in parts for sentence in part.sentences())


def speed(model: Path, corpus: Corpus, repeats: int) -> None:
    """One worker, loading the model and all, against a loop that only embeds."""
    parts = parts_of(corpus)
    words = num_words(parts)

    def bare() -> float:
        embedder = Embedder.load(model, threads=1)  # a new one, which knows no word yet
        began = time.monotonic()
        for part in parts:
            for _ in embedder.stream((s.words for s in part.sentences()), layers="top"):
                pass
        return words / (time.monotonic() - began)

    def whole() -> float:
        from polyseme.commands.embed import EmbedConfig, run
        from polyseme.embedding.settings import VectorsConfig
        from polyseme.executors import ExecutorConfig

        with tempfile.TemporaryDirectory(dir=corpus.folder.parent) as out:
            config = EmbedConfig(
                model=model,
                inputs=(str(corpus.folder),),
                out=Path(out) / "v",
                vectors=VectorsConfig(layers="top"),
                executor=ExecutorConfig(workers=1),
            )
            return words / run(config).seconds

    found = take_turns({"bare loop": bare, "embed, 1 worker": whole}, repeats)
    rows = [[name, f"{statistics.median(times):,.0f}"] for name, times in found.items()]
    print_table(["", "words/s"], rows)
    ratio, told = compare(found["embed, 1 worker"], found["bare loop"])
    print(f"embed / bare: {told}; {verdict(ratio, 0.9)}")


def backends(model: Path, corpus: Corpus, repeats: int) -> None:
    """Two workers here against two on a private Ray cluster, start and end included."""
    words = num_words(parts_of(corpus))
    contestants: dict[str, Callable[[], tuple[float, float]]] = {
        "local": lambda: embed(model, corpus, "--workers", "2"),
        "ray": lambda: embed(model, corpus, "--workers", "2", "--backend", "ray"),
    }
    found = take_turns(contestants, repeats)
    speeds = {name: [words / seconds for seconds, _ in runs] for name, runs in found.items()}
    rows = [[name, f"{statistics.median(each):,.0f}"] for name, each in speeds.items()]
    print_table(["2 workers", "words/s"], rows)
    ratio, told = compare(speeds["ray"], speeds["local"])
    print(f"{words:,} words. Ray / local: {told}; {verdict(ratio, 0.9)}")


def memory(model: Path, corpus: Corpus, small: Corpus) -> None:
    """The most memory over a large corpus and over the first fifth of it."""
    _, of_small = embed(model, small, "--workers", "1")
    _, of_large = embed(model, corpus, "--workers", "1")
    print(f"1 M words {of_small:,.0f} MB, 5 M words {of_large:,.0f} MB: {of_large / of_small:.3f}")
    print(f"at most 1.10: {'reached' if of_large <= 1.1 * of_small else 'MISSED'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("speed", "backends", "memory"))
    parser.add_argument("model", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--words", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    print("again: python -m benchmarks.embed_bulk " + shlex.join(sys.argv[1:]) + "\n", flush=True)
    whole = Corpus.open(given.corpus)
    scratch = Path(tempfile.mkdtemp())
    try:
        match given.what:
            case "speed":
                speed(given.model, cut_corpus(whole, given.words, scratch / "c"), given.repeats)
            case "backends":
                backends(given.model, cut_corpus(whole, given.words, scratch / "c"), given.repeats)
            case "memory":
                small = cut_corpus(whole, 1_000_000, scratch / "small")
                memory(given.model, cut_corpus(whole, 5_000_000, scratch / "large"), small)
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
