"""What a run over very many tiny shards costs the process that started it, here and on Ray.

    python -m benchmarks.store                       10,000 shards of one text, prepared here
    python -m benchmarks.store --shards 100000 --ways copy,Ray
    python -m benchmarks.store --ways Ray --kill 3   Ray, with three of its nodes killed on the way

Ways: `prepare` is the command itself with two local workers, `prepare-Ray` the same on a cluster of
four nodes on this machine; the corpus is then inspected with --verify. `copy` and `Ray` run the
executors alone, over shards that are cheap to make (some bytes each). `sort` puts the uses of an
index in order, which come from so many parts of 500 uses each. Told are processor seconds
and memory of the starting process alone, fresh and when nothing is left to do, for each shard; and
the manifest.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.side_by_side import print_facts, print_table
from polyseme.executors import Done, ExecutorConfig, Report, ShardJob, run_job
from polyseme.meanings.index.folder import RowShape, row_type
from polyseme.meanings.index.row_group import COUNT
from polyseme.meanings.index.word_range import WordRange, plan_ranges, sorting_job
from polyseme.storage.folders import FILES, MANIFEST, FileList
from polyseme.storage.remote_folders import SharedFile
from polyseme.text.corpus import Corpus

_ON_RAY = ("Ray", "prepare-Ray")
_USES, _WORDS = 500, 20_000  # of a part, and in all
_TESTS = Path(__file__).parents[1] / "tests"


@dataclass(frozen=True, slots=True)
class TinyShard:
    """A number, written down."""

    number: int

    @property
    def name(self) -> str:
        """In order up to 10^7."""
        return f"part-{self.number:07d}"

    @property
    def size(self) -> int:
        """One piece of work."""
        return 1

    def digest(self) -> str:
        """What it is made from."""
        return f"{self.number:064d}"

    def identity(self) -> str:
        """The same."""
        return self.digest()

    def staged(self, _folder: Path) -> "TinyShard":
        """Itself."""
        return self


def write_tiny(shard: TinyShard, folder: Path, report: Report) -> Done:
    """Three small files, as a shard of a corpus has."""
    for top in ("shards", "words", "quarantine"):
        (folder / top).mkdir()
        (folder / top / f"{shard.name}.txt").write_text(f"{shard.number} {top}\n")
    report(1)
    counts = {f"count_{number}": number for number in range(20)}
    return {**counts, "lengths": {str(n): 1 for n in range(30)}}, shard.digest()


def run_tiny(shards: int, out: Path, executor: dict[str, Any]) -> dict[str, Any]:
    """A run of the executors alone."""
    inputs = [TinyShard(number) for number in range(shards)]
    job = ShardJob(write_tiny, "tiny", folders=("shards", "words", "quarantine"))
    result = run_job(job, inputs, out, executor=ExecutorConfig(**executor))
    assert len(result.files) == 3 * shards
    assert result.counts["count_3"] == 3 * shards
    result.files.write(out)
    whole = FileList.read(out / FILES, {})
    assert whole[f"words/part-{shards - 1:07d}.txt"]["bytes"]
    return {"found": result.num_found, "manifest": (out / FILES).stat().st_size}


def run_prepare(shards: int, out: Path, executor: dict[str, Any]) -> dict[str, Any]:
    """The command, on documents of which each fills a shard."""
    from polyseme.commands.prepare import PrepareConfig, run
    from polyseme.config import build

    text = out.with_name("text.txt")
    if not text.exists():
        words = " ".join(f"word{n % 97}" for n in range(650))
        text.write_text("".join(f"Document {n} says: {words}.\n\n" for n in range(shards)))
    corpus = {"language": "en", "layout": "articles", "segmenter": "whitespace"}
    values = {"inputs": [str(text)], "out": out, "executor": executor,
              "corpus": {**corpus, "shard_bytes": 4096}}  # fmt: skip
    result = run(build(PrepareConfig, values))
    there = [out / name for name in (MANIFEST, FILES) if (out / name).exists()]
    manifest = sum(path.stat().st_size for path in there)
    begun = time.process_time()
    found = Corpus.open(out)
    opened = time.process_time() - begun
    assert len(found.shards) >= 0.9 * shards
    return {"found": result.shards_found, "manifest": manifest, "opened": opened,
            "shards": len(found.shards)}  # fmt: skip


def run_sort(parts: int, out: Path, executor: dict[str, Any]) -> dict[str, Any]:
    """The end of `polyseme index`: uses in parts, each sorted by word, become sorted as a whole."""
    shape: RowShape = {"context": 512, "bag": 150, "substitutes": 50}
    files = _make_parts(parts, out, shape)
    begun, cpu = time.monotonic(), time.process_time()
    named: list[Any] = [(SimpleNamespace(name=f"part-{n:05d}"), n * _USES) for n in range(parts)]
    uses, spans = plan_ranges(named, files, shape, _WORDS, out / "ranges.parquet")
    table = SharedFile(out / "ranges.parquet", "", "ranges.parquet", "")
    ranges = [
        WordRange(number, uses[first:last], first, table, out, "")
        for number, (first, last) in enumerate(spans)
    ]
    job = sorting_job(shape, "benchmark")
    result = run_job(job, ranges, out / "uses", executor=ExecutorConfig(**executor))
    told = {"seconds": time.monotonic() - begun, "cpu": time.process_time() - cpu}
    assert sum(each.size for each in ranges) == parts * _USES
    found = parts if result.num_found == len(ranges) else 0
    return {**told, "found": found, "manifest": (out / "ranges.parquet").stat().st_size}


def _make_parts(parts: int, out: Path, shape: RowShape) -> dict[str, Any]:
    chance, rows = np.random.default_rng(1), np.zeros(_USES, row_type(shape))
    (out / "parts").mkdir(parents=True, exist_ok=True)
    for number in range(parts):
        name = out / "parts" / f"part-{number:05d}"
        if name.with_suffix(".uses").exists():
            continue
        rows["word"] = np.sort(chance.zipf(1.3, _USES) % _WORDS)
        rows["sentence"] = np.arange(_USES)
        words, uses = np.unique(rows["word"], return_counts=True)
        counts = np.empty(len(words), COUNT)
        counts["word"], counts["uses"] = words, uses
        name.with_suffix(".uses").write_bytes(rows.tobytes())
        name.with_suffix(".counts").write_bytes(counts.tobytes())
    return {f"parts/part-{number:05d}.uses": {"sha256": ""} for number in range(parts)}


def child(way: str, shards: int, out: Path, address: str, workers: int) -> None:
    """One run in a process of its own: what it cost, as JSON."""
    executor: dict[str, Any] = {"workers": workers}
    if way in _ON_RAY:
        executor = {"backend": "ray", "ray_address": address}

    def once(shards: int, out: Path) -> dict[str, Any]:
        run = {"prepare": run_prepare, "sort": run_sort}.get(way.partition("-")[0], run_tiny)
        return run(shards, out, executor)

    with tempfile.TemporaryDirectory() as folder:  # imports and first uses are not of the shards
        once(20, Path(folder) / "first")
    begun, cpu = time.monotonic(), time.process_time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = once(shards, out)
    told.setdefault("seconds", time.monotonic() - begun)
    told.setdefault("cpu", time.process_time() - cpu)
    told["kilobytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    print("\n" + json.dumps(told))


def _start(way: str, shards: int, out: Path, address: str, workers: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "benchmarks.store", "--child", way, "--shards", str(shards)]
    return subprocess.Popen(
        [*command, "--out", str(out), "--address", address, "--workers", str(workers)],
        stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip


def _told(process: "subprocess.Popen[str]") -> dict[str, Any]:
    said, _ = process.communicate()
    assert process.returncode == 0, said
    told: dict[str, Any] = json.loads(said.splitlines()[-1])
    return told


def measure(way: str, shards: int, folder: Path, kills: int, workers: int) -> list[list[str]]:
    """Fresh and again, as rows of the table; a corpus is then held against its hashes."""
    out = folder / way
    rows = _measure(way, shards, out, kills, workers)
    if way.startswith("prepare"):
        command = [sys.executable, "-m", "polyseme", "inspect", str(out), "--verify"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return rows


def _measure(way: str, shards: int, out: Path, kills: int, workers: int) -> list[list[str]]:
    if way not in _ON_RAY:
        return [_row(way, state, shards, _told(_start(way, shards, out, "", workers)))
                for state in ("fresh", "restart")]  # fmt: skip
    import pytest

    sys.path.insert(0, str(_TESTS))
    from reliability.mortal_cluster import three_nodes

    with pytest.MonkeyPatch.context() as patch, three_nodes(patch) as cluster:
        cluster.add_node()
        cluster.add_node()
        process = _start(way, shards, out, cluster.address, workers)
        for blow in range(kills):
            moment = shards * (blow + 1) // (kills + 2)
            while process.poll() is None and _done(out) < moment:
                time.sleep(0.5)
            cluster.node_dies()
        rows = [_row(f"{way}, {kills} nodes killed", "fresh", shards, _told(process))]
        return [
            *rows,
            _row(way, "restart", shards, _told(_start(way, shards, out, cluster.address, workers))),
        ]


def _done(out: Path) -> int:
    return sum(1 for _ in (out / "receipts").glob("*.json"))


def _row(way: str, state: str, shards: int, told: dict[str, Any]) -> list[str]:
    number = told.get("shards", shards)
    # A shard whose node died after it was done is found by the task that is sent again.
    assert told["found"] == number or state == "fresh"
    return [
        way, state, f"{number:,}", f"{told['seconds']:,.1f}", f"{told['cpu']:,.1f}",
        f"{1e3 * told['cpu'] / number:.2f}", f"{told['kilobytes'] / number:.2f}",
        f"{told['manifest'] / number:,.0f}",
    ]  # fmt: skip


def main() -> None:
    """Measure each way in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, default=10_000)
    parser.add_argument("--ways", default="prepare,copy")
    parser.add_argument("--kill", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--child")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--address", default="")
    given = parser.parse_args()
    if given.child:
        child(given.child, given.shards, given.out, given.address, given.workers)
        return
    print_facts()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for way in given.ways.split(","):
            rows += measure(way, given.shards, Path(folder), given.kill, given.workers)
    heads = [
        "way",
        "",
        "shards",
        "s",
        "CPU s",
        "CPU ms a shard",
        "KB a shard",
        "manifest B a shard",
    ]
    print_table(heads, rows)


if __name__ == "__main__":
    main()
