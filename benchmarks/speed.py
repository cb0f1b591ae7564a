"""Words per second and peak memory of whole commands, in turns, alone or beside a busy program.

    python -m benchmarks.speed prepare  'texts/enwiki-0[0-3].txt.xz'   beside spaCy's own loop
    python -m benchmarks.speed pretrain CORPUS
    python -m benchmarks.speed embed    CORPUS --model MODEL
    python -m benchmarks.speed index    CORPUS --model MODEL
    python -m benchmarks.speed pretrain CORPUS --busy

Each command runs in several ways (`--ways`, by name), as often as `--repeats` says: A B C, A B C.
With `--busy` another program never waits: then the default should be at least 0.8 times as fast as
the better of one and two threads (for `embed`: workers). Memory is that of a command and all
processes that it starts, shared pages once. Growth is seen in the same run with fewer texts.
"""

import argparse
import contextlib
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil

from benchmarks.side_by_side import print_facts, print_table, take_turns
from polyseme.text.corpus import Corpus

_ONE, _TWO = {"--workers": "1"}, {"--workers": "2"}
_RAY = {**_TWO, "--backend": "ray"}
_WAYS: dict[str, dict[str, dict[str, str]]] = {
    "prepare": {"default": {}, "1 worker": _ONE, "2 workers": _TWO, "Ray": _RAY, "spaCy": {}},
    "pretrain": {
        "default": {},
        "1 thread": {"OMP_NUM_THREADS": "1"},
        "2 threads": {"OMP_NUM_THREADS": "2"},
        "2 threads that spin": {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "ACTIVE"},
        "float32": {"--set": "training.precision=float32"},
        "bfloat16": {"--set": "training.precision=bfloat16"},
    },
    "embed": {"default": {}, "1 worker": _ONE, "2 workers": _TWO, "Ray": _RAY},
    "index": {"default": {}, "1 worker": _ONE, "2 workers": _TWO, "Ray": _RAY},
}
_DEFAULT_WAYS = {
    "prepare": "2 workers,spaCy",
    "pretrain": "default,1 thread,2 threads,2 threads that spin",
    "embed": "default,1 worker,2 workers",
    "index": "default,1 worker,2 workers",
}
_SPACY = """
import bz2, gzip, lzma, sys, spacy
words, nlp = 0, spacy.blank(sys.argv[1])
nlp.add_pipe("sentencizer")
for path in sys.argv[2:]:
    opener = {"xz": lzma.open, "gz": gzip.open, "bz2": bz2.open}.get(path.rpartition(".")[2], open)
    with opener(path, "rt", encoding="utf-8") as lines:
        for document in nlp.pipe(line.rstrip() for line in lines if line.strip()):
            words += sum(not word.is_space for word in document) + 0 * len(list(document.sents))
print('{"words": %d}' % words)
"""
"""spaCy's own pipeline, as its documentation has it: words and sentences, nothing kept."""


def main() -> None:
    arguments = _parser().parse_args()
    names = (arguments.ways or _DEFAULT_WAYS[arguments.command]).split(",")
    print_facts()
    ways = {name: partial(_run, arguments, name) for name in names}
    with company(is_there=arguments.busy):
        found = take_turns(ways, arguments.repeats)
    medians = {name: statistics.median(speed for speed, _ in runs) for name, runs in found.items()}
    rows = [
        (
            name,
            f"{medians[name]:,.0f}",
            " ".join(f"{speed:,.0f}" for speed, _ in runs),
            f"{max(memory for _, memory in runs) / 1e6:,.0f}",
            f"{medians[name] / medians[names[0]]:.2f}",
        )
        for name, runs in found.items()
    ]
    place = "in company" if arguments.busy else "alone"
    first = f"times {names[0]}"
    print_table((f"{arguments.command} {place}", "words/s", "each turn", "MB", first), rows)
    if names[0] == "default" and len(names) > 2:
        best = max(medians[name] for name in names[1:3])
        print(f"\ndefault / better of {names[1]} and {names[2]}: {medians['default'] / best:.2f}")


@contextmanager
def company(*, is_there: bool) -> Iterator[None]:
    """A program that never waits."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if is_there else None
    try:
        yield
    finally:
        if busy:
            busy.kill()
            busy.wait()


def _run(arguments: argparse.Namespace, name: str) -> tuple[float, float]:
    """Words per second, and bytes of memory at most."""
    way = _WAYS[arguments.command][name]
    variables = {key: value for key, value in way.items() if not key.startswith("--")}
    options = [part for key in way.keys() - variables for part in (key, way[key])]
    plain = {key: value for key, value in os.environ.items() if not key.startswith("OMP_")}
    texts = sorted(glob.glob(arguments.texts)) or [arguments.texts]  # noqa: PTH207  # absolute
    asked = {
        "prepare": [*texts, "--language", arguments.language],
        "pretrain": [*texts, "--steps", str(arguments.steps), "--held-out-words", "1"],
        "embed": [*texts, "--model", arguments.model, "--layers", "top"],
        "index": [*texts, "--model", arguments.model],
    }[arguments.command]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "polyseme", arguments.command, *asked, *options]
        command += ["--out", str(Path(folder, "out")), "--json"]
        if name == "spaCy":
            command = [sys.executable, "-c", _SPACY, arguments.language, *texts]
        began = time.monotonic()
        process = subprocess.Popen(
            command, env={**plain, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        memory = _watch_memory(process)
        said, errors = process.communicate()
        if process.returncode:
            raise SystemExit(errors.decode())
    told = json.loads(said)
    seconds = float(told.get("seconds") or time.monotonic() - began)
    counts = told.get("counts", told)
    words = next(counts[key] for key in ("words_read", "words") if key in counts)
    if arguments.command == "index":
        words = Corpus.open(arguments.texts).read_stats["words"]
    return float(words) / seconds, memory


def _watch_memory(process: "subprocess.Popen[bytes]") -> float:
    """The largest sum of memory over the process and its children; shared pages count once."""
    peak = 0
    while process.poll() is None:
        family = 0
        with contextlib.suppress(psutil.Error):  # one ended between two looks
            parent = psutil.Process(process.pid)
            for member in (parent, *parent.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    family += member.memory_full_info().pss
        peak = max(peak, family)
        time.sleep(0.2)
    return peak


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", choices=sorted(_WAYS))
    parser.add_argument("texts", help="a corpus, or a glob of plain text files, packed or not")
    parser.add_argument("--ways", help="names of ways, with commas; the first is the measure")
    parser.add_argument("--busy", action="store_true", help="beside a program that never waits")
    parser.add_argument("--model", default="models/en-mini")
    parser.add_argument("--language", default="en")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    return parser


if __name__ == "__main__":
    main()
