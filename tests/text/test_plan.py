"""Large files are cut, small ones gathered; a cut changes no row."""

import json
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polyseme.text import plan
from polyseme.text.plan import plan_shards
from polyseme.text.settings import InputFormat
from polyseme.text.sources import Compression, Source
from text.making import PreparedShards, make_config, make_source, prepare_all

SMALLEST = 4096  # bytes; the least the setting allows
LARGEST = 1 << 30


def prepare_both(
    folder: Path, data: bytes, kind: InputFormat = "text", **values: Any
) -> tuple[PreparedShards, PreparedShards]:
    """The same bytes prepared in small shards and in one."""
    source = make_source(folder, data, kind)
    small = make_config(shard_bytes=SMALLEST, held_out=0.3, **values)
    large = small.model_copy(update={"shard_bytes": LARGEST})
    return prepare_all([source], small, folder / "small"), prepare_all(
        [source], large, folder / "large"
    )


def check_same(small: PreparedShards, large: PreparedShards) -> None:
    assert large.num_shards == 1
    assert small.rows == large.rows
    ids = [row["sentence_id"] for row in large.rows]
    assert len(set(ids)) == len(ids)
    assert small.quarantine == large.quarantine
    assert small.counts == large.counts


LINE = st.one_of(
    st.text(alphabet="ab .é中😀", max_size=30),
    st.sampled_from(["", "", " ", "\t", "\u3000", "x" * 700, "中 " * 300]),
)


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(LINE, max_size=60),
    line_end=st.sampled_from(["\n", "\r\n"]),
    bad=st.booleans(),
    copies=st.integers(1, 8),
)
@example(lines=["a", ""], line_end="\r\n", bad=False, copies=4000)
@example(lines=["a", "\u3000", "b", "\t"], line_end="\n", bad=True, copies=800)
def test_a_cut_changes_no_row_of_articles(
    lines: list[str], line_end: str, bad: bool, copies: int
) -> None:
    data = "".join(line + line_end for line in lines).encode() * copies
    data += b"\xff not text\n" * bad
    with tempfile.TemporaryDirectory() as folder:
        check_same(*prepare_both(Path(folder), data))


JSON = [json.dumps({"text": f"one {i}. two\nthree", "date": i}) for i in range(800)]
JSON[5:5] = ["", "not json", "[1]", '{"text": null}']
VERTICAL = (
    '<text id="{i}" date="1850">\n<s>\nOne\tCD\n<g/>\n.\tSENT\n</s>\nrest\n<text not a tag\n'
    "</text>\n"
)
WORD = "1\tOne\t_\t_\t_\t_\t_\t_\t_\t_\n"
CONLLU = (
    "# newdoc id = {i}\n# date = 1850\n" + WORD + "\n# newdocument = no\n" + WORD + "\n"
    "# author = N\n# newdoc\n" + WORD + "\n\n"
)


@pytest.mark.parametrize(
    ("kind", "data", "values", "num_shards"),
    [
        # Every third document of 2,005 bytes is the first past 4,096.
        ("text", ("é" * 1000 + "\r\n \r\n").encode() * 20, {}, {7}),
        ("text", "中文 words.\n\n".encode() * 2000, {"layout": "lines"}, range(4, 99)),
        ("jsonl", "\n".join(JSON).encode(), {"meta": ("date",)}, range(4, 99)),
        ("jsonl", b'{"text": "one . two .", "id": "same"}\n' * 500, {"id_column": "id"},
         range(4, 99)),
        ("vertical", "".join(VERTICAL.format(i=i // 2) for i in range(500)).encode(),
         {"meta": ("date",)}, range(4, 99)),
        ("conllu", "".join(CONLLU.format(i=i // 2) for i in range(300)).encode(),
         {"meta": ("date", "author")}, range(4, 99)),
        ("text", "汉字编码，𠀀。\n\n".encode("gb18030") * 1000,
         {"encoding": "gb18030", "segmenter": "characters"}, range(4, 99)),
        # What has its line ends elsewhere, is not cut; U+008E is byte 0x0A in cp037.
        ("text", ("\ufeff" + "\u0a0a\u0a0a text\n\n" * 2000).encode("utf-16-le"), {}, {1}),
        ("text", ("text" + "\u008e" * 2 + "\n\n").encode("cp037") * 1000, {"encoding": "cp037"},
         {1}),
    ],
)  # fmt: skip
def test_a_cut_changes_no_row(
    tmp_path: Path, kind: InputFormat, data: bytes, values: dict[str, Any], num_shards: set[int]
) -> None:
    small, large = prepare_both(tmp_path, data, kind, **values)
    assert small.num_shards in num_shards
    check_same(small, large)
    assert kind == "jsonl" or small.counts["quarantined"] == 0


def test_a_cut_changes_no_row_of_parquet(tmp_path: Path) -> None:
    texts = [f"{i} " * 300 for i in range(40)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "input", row_group_size=2)
    source = Source(
        tmp_path / "input", "input", "parquet", None, (tmp_path / "input").stat().st_size
    )
    small = prepare_all([source], make_config(shard_bytes=SMALLEST), tmp_path / "small")
    large = prepare_all([source], make_config(shard_bytes=LARGEST), tmp_path / "large")
    assert small.num_shards > 1
    check_same(small, large)


def test_a_document_that_is_too_long_is_cut_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(shard_bytes=SMALLEST)
    monkeypatch.setattr(plan, "_WINDOW", 1000)
    source = make_source(tmp_path, (b"line\n" * 4000 + b"\n") * 3)
    whole = prepare_all([source], config, tmp_path / "whole").counts
    assert (whole["documents"], whole["documents_continued"]) == (3, 0)
    monkeypatch.setattr(plan, "_LONGEST_DOCUMENT", 8192)
    monkeypatch.setattr(plan, "_WINDOW", 4096)
    source = make_source(tmp_path, b"a line of words\n" * 4000)
    cut = prepare_all([source], config, tmp_path / "cut")
    assert [row["text"] for row in cut.rows] == ["a line of words"] * 4000
    assert cut.counts["documents_continued"] == cut.num_shards - 1 > 4


def test_a_blank_line_on_the_border_of_two_windows_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "_WINDOW", 16)
    for shift in range(16):
        data = b"x" * (SMALLEST + shift) + b"\n \t\r\n" + b"y" * 100
        source = make_source(tmp_path, data)
        first, second = plan_shards([source], make_config(shard_bytes=SMALLEST))
        assert first.pieces[0].stop == second.pieces[0].start == data.index(b"y")


def test_a_huge_line_is_planned_in_bounded_memory(tmp_path: Path) -> None:
    source = make_source(tmp_path, b"x" * 5000 + b"\n" + b"y" * (30 << 20))
    tracemalloc.start()
    try:
        plan_shards([source], make_config(shard_bytes=SMALLEST))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize(
    ("kind", "compression"), [("csv", None), ("tsv", None), ("tei", None), ("text", "gz")]
)
def test_what_cannot_be_cut_is_not(
    tmp_path: Path, kind: InputFormat, compression: Compression | None
) -> None:
    source = make_source(tmp_path, b"a\n\n" * 10_000, kind, compression)
    (batch,) = plan_shards([source], make_config(shard_bytes=SMALLEST))
    assert len(batch.pieces) == 1


def test_small_files_are_gathered_in_order(tmp_path: Path) -> None:
    sources = [make_source(tmp_path / str(i), b"x" * 1500) for i in range(5)]
    batches = plan_shards(sources, make_config(shard_bytes=SMALLEST))
    found = [[piece.source.path for piece in batch.pieces] for batch in batches]
    paths = [source.path for source in sources]
    assert found == [paths[:2], paths[2:4], paths[4:]]


def test_a_changed_byte_changes_the_digest_of_its_shard_alone(tmp_path: Path) -> None:
    data = b"some words\n\n" * 1000
    config = make_config(shard_bytes=SMALLEST)
    before = [b.digest() for b in plan_shards([make_source(tmp_path, data)], config)]
    changed = make_source(tmp_path, data[:-3] + b"S\n\n")
    after = [b.digest() for b in plan_shards([changed], config)]
    assert before[:-1] == after[:-1]
    assert before[-1] != after[-1]
