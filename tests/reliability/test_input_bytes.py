"""Inputs are read once, in however many shards: they may be large, and on a slow disk.

strace counts every byte that any process of a run reads of its inputs.
"""

import gzip
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from required import needs

from polyseme.text.corpus import Corpus
from reliability.traced import why_not

pytestmark = needs(why_not() is None, why_not() or "", only_on="linux")
SHARDS = 20
_READ = re.compile(r"(?:read|readv|pread64|preadv)\(.* = (\d+)$")


def make_packed(folder: Path, size: int) -> None:
    """Lines of JSON in .gz files; noise, so that they hardly get smaller, most in a field that
    nobody asks for, so that there is little work."""
    noise = random.Random(1)
    for number in range(SHARDS):
        with gzip.open(folder / f"{number:02d}.jsonl.gz", "wt", compresslevel=1) as file:
            for _ in range(max(1, size // SHARDS // 50_000)):
                letters = noise.randbytes(44_000).hex()
                file.write(f'{{"text": "a few words {number}", "noise": "{letters}"}}\n')


def make_parquet(folder: Path, size: int) -> None:
    """A row group a shard; most words are noise of a thousand letters."""
    noise = random.Random(1)
    schema = pa.schema([("text", pa.string()), ("noise", pa.binary())])
    each = size // SHARDS
    with pq.ParquetWriter(folder / "texts.parquet", schema, compression="none") as file:
        for _ in range(SHARDS):
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
        *("strace", "-f", "-e", "trace=read,readv,pread64,preadv,mmap", "-o", str(log), *paths),
        *("polyseme", "prepare", str(folder), "--language", "en", "--workers", "2"),
        *("--shard-bytes", str(shard_bytes), "--out", str(out)),
    ]
    subprocess.run(command, check=True, capture_output=True)
    calls = log.read_text().splitlines()
    assert not any("mmap(" in call for call in calls), "what is mapped is not counted"
    return sum(int(found[1]) for call in calls if (found := _READ.search(call)))


@pytest.mark.parametrize("make", [make_packed, make_parquet])
@pytest.mark.parametrize("size", [12 << 20, pytest.param(500 << 20, marks=pytest.mark.slow)])
def test_a_byte_of_input_is_read_once(
    tmp_path: Path, make: Callable[[Path, int], None], size: int
) -> None:
    texts, out = tmp_path / "texts", tmp_path / "corpus"
    texts.mkdir()
    make(texts, size)
    total = sum(path.stat().st_size for path in texts.iterdir())
    read = {"fresh": bytes_read(texts, out, size // SHARDS)}
    assert len(Corpus.open(out).shards) >= SHARDS - 2
    before = {path.name: path.read_bytes() for path in Corpus.open(out).shards}
    read["nothing to do"] = bytes_read(texts, out, size // SHARDS)
    for path in sorted((out / "receipts").iterdir())[::2]:
        path.unlink()
    read["half to do"] = bytes_read(texts, out, size // SHARDS)
    print(f"{total:,} bytes of input; read: {read}")
    assert all(number <= 1.1 * total for number in read.values()), (total, read)
    assert {path.name: path.read_bytes() for path in Corpus.open(out).shards} == before
