"""A little file that unpacks to a huge one is refused at once, in little memory."""

import bz2
import gzip
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from slack import allowed
from text.making import make_config

from polyseme.text import streams
from polyseme.text.plan import plan_shards
from polyseme.text.prepare import prepare_shard
from polyseme.text.segmenters import load_segmenter
from polyseme.text.sources import Compression, Source

COMPRESSIONS: list[Compression] = ["gz", "bz2", "xz", "zst"]
FILLINGS = {
    "zeros": bytes(1 << 20),
    "lines": (b"again-and-" * 100 + b"\n") * 1047,
    "short lines": b"again and again and once more\n" * 34_952,
}
SECONDS = 2.0
MEMORY = 300 << 20
# Above what `make check` needs a bomb is only larger, not other.
REDUCED, FULL = 1 << 30, 10 << 30


def make_bomb(path: Path, compression: Compression, filling: str, size: int) -> Source:
    """Many copies of one packed stream: `size` bytes when unpacked, made in a moment."""
    part = FILLINGS[filling] * (16 if size > REDUCED else 4)
    packed = _pack_hard(part, compression)
    with path.open("wb") as file:
        for _ in range(size // len(part) + 1):
            file.write(packed)
    return Source(path, "bomb", "text", compression, path.stat().st_size)


def _pack_hard(data: bytes, compression: Compression) -> bytes:
    match compression:
        case "gz":
            return gzip.compress(data, 9, mtime=0)
        case "bz2":
            return bz2.compress(data)
        case "xz":
            return lzma.compress(data)
        case "zst":
            packed: bytes = pa.Codec("zstd", 19).compress(data).to_pybytes()
            return packed


def main(folder: str) -> None:
    """Prepare each bomb in a folder, and tell the time it took and the most memory there was."""
    config = make_config()
    load_segmenter("whitespace", "en")
    for path in sorted(Path(folder).iterdir()):
        compression: Any = path.suffix[1:]
        source = Source(path, "bomb", "text", compression, path.stat().st_size)
        (batch,) = plan_shards([source], config)
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins again
        began = time.process_time()
        with tempfile.TemporaryDirectory() as out:
            counts, _ = prepare_shard(config, batch, Path(out))
        seconds = time.process_time() - began
        # Not `ru_maxrss`: a new process begins with that of the one that started it.
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        peak = 1024 * next(int(line.split()[1]) for line in status.split("\n") if "VmHWM" in line)
        print(json.dumps([path.name, counts["quarantine_reasons"], seconds, peak]), flush=True)


@pytest.mark.skipif(sys.platform != "linux", reason="memory as Linux counts it")
@pytest.mark.parametrize("size", [REDUCED, pytest.param(FULL, marks=pytest.mark.slow)])
def test_a_bomb_is_refused(tmp_path: Path, size: int) -> None:
    """The promise: refused by name, soon, and small."""
    names = [f"{filling}.{each}" for filling in FILLINGS for each in COMPRESSIONS]
    for filling in FILLINGS:
        for compression in COMPRESSIONS:
            make_bomb(tmp_path / f"{filling}.{compression}", compression, filling, size)
    program = "import sys; from reliability.test_bombs import main; main(*sys.argv[1:])"
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=280,
    )
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, f"died after {found[-1:]}: {ran.stderr}"
    assert sorted(names) == [name for name, *_ in found]
    for name, reasons, seconds, peak in found:
        assert reasons.get("broken-file") == 1, name
        assert seconds <= allowed(SECONDS), name
        assert peak <= MEMORY, name


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_without_the_limit_the_bomb_would_go_off(
    tmp_path: Path, compression: Compression, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "LARGEST_RATIO", 1 << 40)
    source = make_bomb(tmp_path / "bomb", compression, "zeros", 32 << 20)
    blocks = streams.read_blocks(source, 0, source.bytes)
    assert sum(len(block) for block in blocks) >= 32 << 20
