"""How fast `prepare` is, and what it costs: every figure in docs/explanation/scale.md.

    python benchmarks/prepare.py speed     'texts/enwiki-0[0-3].txt.xz'   against the bare loops
    python benchmarks/prepare.py agreement 'texts/enwiki-*.txt.xz'        words against spaCy's
    python benchmarks/prepare.py growth    'texts/enwiki-*.txt.xz'        a part against all
    python benchmarks/prepare.py backends   'texts/enwiki-*.txt.xz'        Ray against local

Each compares things side by side in one run, in turns, and prints medians: the machine's mood
is in both. The bare loops read the same lines and write nothing.
"""

import argparse
import bz2
import glob
import gzip
import lzma
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

OPENERS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}


def lines_of(path: str) -> Iterator[str]:
    opener = OPENERS.get(Path(path).suffix, open)
    with opener(path, "rt", encoding="utf-8") as stream:
        yield from (line.rstrip("\n") for line in stream if line.strip())


def bare_spacy(path: str, language: str) -> int:
    """spaCy's own pipeline, as its documentation has it: words and sentences, nothing kept."""
    import spacy

    nlp = spacy.blank(language)
    nlp.add_pipe("sentencizer")
    words = 0
    for document in nlp.pipe(lines_of(path)):
        words += sum(1 for word in document if not word.is_space)
        sum(1 for _ in document.sents)
    return words


def bare_ours(path: str, language: str) -> int:
    """Our words and sentences, nothing kept: what is lost between this and `prepare` is ours."""
    from polyseme.text.segmenters import load_segmenter
    from polyseme.text.sentences import split_sentences

    segmenter = load_segmenter("jieba" if language == "zh" else "spacy", language)
    words = 0
    for line in lines_of(path):
        found = segmenter.split(line)
        split_sentences(found)
        words += len(found.words)
    return words


@dataclass
class Run:
    words: int
    seconds: float
    peak_memory: int = 0

    @property
    def speed(self) -> float:
        return self.words / self.seconds


def run_bare(loop: Callable[[str, str], int], files: list[str], args: argparse.Namespace) -> Run:
    began = time.monotonic()
    with ProcessPoolExecutor(args.workers, mp_context=get_context("spawn")) as pool:
        words = sum(pool.map(loop, files, [args.language] * len(files)))
    return Run(words, time.monotonic() - began)


def run_prepare(files: list[str], args: argparse.Namespace, *options: str) -> Run:
    """The whole command, with the memory of all its processes watched."""
    with scratch() as folder:
        out = folder / "corpus"
        words = ["--language", args.language, "--workers", str(args.workers), "--out", str(out)]
        command = [sys.executable, "-m", "polyseme", "prepare", *files, *words, *options]
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        peak = watch_memory(process)
        assert process.stderr
        if process.wait():
            raise SystemExit(process.stderr.read().decode())
        seconds = time.monotonic() - began
        counts = pq.read_table(out / "vocabulary.parquet")["count"].to_pylist()
        return Run(sum(counts), seconds, peak)


def watch_memory(process: "subprocess.Popen[bytes]") -> int:
    """The largest sum of memory over the process and its children; shared pages count once."""
    peak = 0
    while process.poll() is None:
        family = 0
        try:
            parent = psutil.Process(process.pid)
            members = [parent, *parent.children(recursive=True)]
        except psutil.Error:
            continue
        for member in members:
            with suppress(psutil.Error):  # it ended between the two looks
                family += member.memory_full_info().pss
        peak = max(peak, family)
        time.sleep(0.5)
    return peak


@contextmanager
def scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="polyseme-benchmark-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def report(name: str, runs: list[Run]) -> float:
    speed = statistics.median(run.speed for run in runs)
    seconds = statistics.median(run.seconds for run in runs)
    memory = max(run.peak_memory for run in runs) / 1e6
    shown = f", peak memory {memory:,.0f} MB" if memory else ""
    print(f"{name:<28} {speed:>12,.0f} words/s  {seconds:>7.1f} s{shown}")
    return speed


def speed(files: list[str], args: argparse.Namespace) -> None:
    rounds: dict[str, list[Run]] = {"bare spaCy": [], "bare polyseme words": [], "prepare": []}
    for _ in range(args.repeats):
        if args.language != "zh":
            rounds["bare spaCy"].append(run_bare(bare_spacy, files, args))
        rounds["bare polyseme words"].append(run_bare(bare_ours, files, args))
        rounds["prepare"].append(run_prepare(files, args))
    speeds = {name: report(name, runs) for name, runs in rounds.items() if runs}
    for name in ("bare spaCy", "bare polyseme words"):
        if name in speeds:
            print(f"prepare = {speeds['prepare'] / speeds[name]:.2f} x {name}")


def agreement(files: list[str], args: argparse.Namespace) -> None:
    import spacy

    from polyseme.text.segmenters.spacy_rules import SpacyRules

    ours, theirs = SpacyRules(args.language), spacy.blank(args.language).tokenizer
    both = either = 0
    missed: Counter[str] = Counter()
    for path in files:
        for number, line in enumerate(lines_of(path)):
            if number % args.every:
                continue
            split = ours.split(line)
            a = set(zip(split.starts, split.words, strict=True))
            b = {(word.idx, word.text) for word in theirs(line) if not word.is_space}
            both += len(a & b)
            either += len(a | b)
            missed.update(word for _, word in b - a)
    print(f"{either:,} words, {both / either:.4%} the same. Most often missed:")
    print("  " + "  ".join(f"{word} ({count})" for word, count in missed.most_common(12)))


def growth(files: list[str], args: argparse.Namespace) -> None:
    # A packed file is one shard: a number of files that the workers cannot share evenly shows
    # their idling, not growth. Hence a third beside the quarter.
    sizes = [max(len(files) // 4, 1), max(len(files) // 3, 1), len(files)]
    runs: dict[int, list[Run]] = {size: [] for size in sizes}
    for _ in range(args.repeats):
        for size in sizes:
            runs[size].append(run_prepare(files[:size], args))
    for size, done in runs.items():
        report(f"{size} files", done)
    peak = {size: max(run.peak_memory for run in done) for size, done in runs.items()}
    seconds = {size: statistics.median(r.seconds for r in done) for size, done in runs.items()}
    words = {size: done[0].words for size, done in runs.items()}
    for size in sizes[:2]:
        memory = peak[len(files)] / peak[size]
        pace = (seconds[len(files)] / words[len(files)]) / (seconds[size] / words[size])
        print(
            f"{len(files)} against {size}: peak memory {memory:.2f} x, time per word {pace:.2f} x"
        )


def backends(files: list[str], args: argparse.Namespace) -> None:
    rounds: dict[str, list[Run]] = {"local": [], "ray": []}
    for _ in range(args.repeats):
        for backend, done in rounds.items():
            done.append(run_prepare(files, args, "--backend", backend))
    for backend, done in rounds.items():
        report(backend, done)
    local, ray = (statistics.median(run.seconds for run in done) for done in rounds.values())
    print(f"Ray takes {ray / local - 1:+.1%} time, of which its start is a fixed part")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["speed", "agreement", "growth", "backends"])
    parser.add_argument("texts", help="glob of plain text files, packed or not")
    parser.add_argument("--language", default="en")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--every", type=int, default=100, help="agreement: one line of this many")
    args = parser.parse_args()
    files = sorted(glob.glob(args.texts))  # noqa: PTH207  # absolute globs
    if not files:
        parser.error(f"no file matches {args.texts}")
    {"speed": speed, "agreement": agreement, "growth": growth, "backends": backends}[args.what](
        files, args
    )


if __name__ == "__main__":
    main()
