"""Inputs are read once, in however many shards: they may be large, and on a slow disk.

strace counts every byte that any process of a run reads of its inputs.
"""

import gzip
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from required import needs

from polyseme.text.corpus import Corpus
from reliability.traced import why_not

pytestmark = needs(why_not() is None, why_not() or "", only_on="linux")
_SLOW = (pytest.mark.slow, pytest.mark.timeout(3_600))
# A call that another process interrupts is told in two lines; the second has its result.
_READ = re.compile(r"\b(?:read|readv|pread64|preadv)(?:\(| resumed>).* = (\d+)$")


def make_packed(folder: Path, size: int, shards: int) -> None:
    """Lines of JSON in .gz files; most is noise in a field that nobody asks for: little work."""
    noise = random.Random(1)
    for number in range(shards):
        with gzip.open(folder / f"{number:02d}.jsonl.gz", "wt", compresslevel=0) as file:
            for _ in range(max(1, size // shards // 90_000)):
                letters = noise.randbytes(44_000).hex()
                file.write(f'{{"text": "a few words {number}", "noise": "{letters}"}}\n')


def make_parquet(folder: Path, size: int, shards: int) -> None:
    """A row group a shard; most words are noise of a thousand letters."""
    noise = random.Random(1)
    schema = pa.schema([("text", pa.string()), ("noise", pa.binary())])
    each = size // shards
    with pq.ParquetWriter(folder / "texts.parquet", schema, compression="none") as file:
        for _ in range(shards):
            text = min(each, 500_000)
            rows = [
                f"a few words {noise.randbytes(500).hex()} and a few more"
                for _ in range(text // 1_000)
            ]
            rest = [noise.randbytes((each - text) // len(rows)) for _ in rows]
            table = pa.Table.from_arrays([pa.array(rows), pa.array(rest)], schema=schema)
            file.write_table(table)


def bytes_read(folder: Path, out: Path, shard_bytes: int) -> int:
    """Of all files in a folder, by every process of a `prepare`."""
    paths = [option for path in folder.iterdir() for option in ("-P", str(path))]
    log = out.with_suffix(".strace")
    command = [
        *(
            "strace",
            "-f",
            "--seccomp-bpf",
            "-e",
            "trace=read,readv,pread64,preadv,mmap",
            "-o",
            str(log),
            *paths,
        ),
        *(sys.executable, "-m", "polyseme", "prepare", str(folder)),
        *("--language", "en", "--segmenter", "whitespace", "--workers", "2"),
        *("--shard-bytes", str(shard_bytes), "--out", str(out)),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    calls = log.read_text().splitlines()
    assert not any("mmap(" in call for call in calls), "what is mapped is not counted"
    return sum(int(found[1]) for call in calls if (found := _READ.search(call)))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("make", [make_packed, make_parquet])
@pytest.mark.parametrize(
    ("size", "shards"), [(12 << 20, 4), pytest.param(500 << 20, 20, marks=_SLOW)]
)
def test_a_byte_of_input_is_read_once(
    tmp_path: Path, make: Callable[[Path, int, int], None], size: int, shards: int
) -> None:
    texts, out = tmp_path / "texts", tmp_path / "corpus"
    texts.mkdir()
    make(texts, size, shards)
    total = sum(path.stat().st_size for path in texts.iterdir())
    read = {"fresh": bytes_read(texts, out, size // shards)}
    assert len(Corpus.open(out).shards) >= shards - 1
    before = {path.name: path.read_bytes() for path in Corpus.open(out).shards}
    read["nothing to do"] = bytes_read(texts, out, size // shards)
    for path in sorted((out / "receipts").iterdir())[::2]:
        path.unlink()
    read["half to do"] = bytes_read(texts, out, size // shards)
    print(f"{total:,} bytes of input; read: {read}")
    assert read["nothing to do"] < 0.03 * total  # how files begin, to plan
    assert all(number <= 1.1 * total for number in read.values()), (total, read)
    assert {path.name: path.read_bytes() for path in Corpus.open(out).shards} == before
