"""The Python snippets of the corpus format's page, run on a small corpus."""

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from corpora import prepared
from required import need_package

from polyseme.text.records import ReadStats
from polyseme.text.shards import shard_schema
from polyseme.text.word_counts import VOCABULARY_SCHEMA

PAGE = (Path(__file__).parents[2] / "docs/reference/corpus-format.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
TEXT = "We sat on the bank .\n\nThe bank was closed . Nobody came .\n"


def snippet(word: str) -> str:
    found: list[str] = [code for code in SNIPPETS if word in code]
    assert len(found) == 1, word
    return found[0]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small corpus in `corpus`, as the snippets expect it."""
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text(TEXT, encoding="utf-8")
    prepared(Path("a.txt"), Path("corpus"), segmenter="whitespace", held_out=0.0)
    return tmp_path


def execute(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(code, "snippet", "exec"), names)
    return names


@pytest.mark.usefixtures("folder")
def test_the_duckdb_snippet_finds_the_sentences_with_a_word() -> None:
    rows = execute(snippet("duckdb"))["sentences"]
    assert [(sentence_id.split(":")[0], text) for sentence_id, _, text in rows] == [
        ("a.txt", "We sat on the bank ."),
        ("a.txt", "The bank was closed ."),
    ]


@pytest.mark.usefixtures("folder")
def test_the_pyarrow_snippet_counts_all_words() -> None:
    names = execute(snippet("pyarrow"))
    assert names["number_of_words"] == len(TEXT.split())
    assert set(names["distinct"].to_pylist()) == set(TEXT.split())


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("package", "name", "rows"), [("pandas", "table", 3), ("polars", "longest", 1)]
)
def test_snippets_of_other_packages_run(package: str, name: str, rows: int) -> None:
    need_package(package)
    assert len(execute(snippet(package))[name]) == rows


def test_the_page_lists_the_columns_of_a_shard(folder: Path) -> None:
    schema = pq.read_schema(folder / "corpus/shards/part-00000.parquet")
    assert schema.names == shard_schema(()).names
    own = ["one for each `--meta`", "one for each `--word-attributes`"]
    assert table_of("shards/part-NNNNN.parquet") == [*schema.names, *own]


def test_the_page_lists_the_columns_of_the_vocabulary() -> None:
    assert table_of("vocabulary.parquet") == VOCABULARY_SCHEMA.names


def test_the_page_lists_every_count_of_the_read_statistics() -> None:
    counted = {*ReadStats().as_json(), "distinct_words"}
    assert set(table_of("read_stats")) == counted


def table_of(heading: str) -> list[str]:
    """The first column of the first table under a heading."""
    text = re.split(rf"^#+ {re.escape(heading)}$", PAGE, flags=re.MULTILINE)[1]
    lines = text[text.index("|---") :].splitlines()[1:]
    cells = [line.split("|")[1].strip() for line in lines[: lines.index("")]]
    return [cell.strip("`") if cell.count("`") == 2 and cell[0] == "`" else cell for cell in cells]
