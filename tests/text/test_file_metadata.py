"""Values from file names and from a table beside the files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.errors import ConfigError, InputError
from polyseme.text.file_metadata import FileMetadata, MetadataTable, NamePattern
from polyseme.text.sources import Source


def source(name: str) -> Source:
    return Source(Path("/nowhere") / name, name, "text", None, 0)


@pytest.mark.parametrize(
    ("pattern", "name", "values"),
    [
        ("{year}_{author}_{title}", "1815_Austen_Emma.txt", ("1815", "Austen", "Emma")),
        ("{year}_{author}_{title}", "1815_Austen_A_B.txt.gz", ("1815", "Austen", "A_B")),
        ("{year}_{author}_{title}.txt", "1815_Austen_Emma.txt", ("1815", "Austen", "Emma")),
        ("{author} - {title} ({year})", "a/b/Austen - Emma (1815).pdf", ("Austen", "Emma", "1815")),
        ("{author}/{year}-{title}", "x/Austen/1815-Emma.epub", ("Austen", "1815", "Emma")),
        ("《{title}》{author}", "《红楼梦》曹雪芹.txt", ("红楼梦", "曹雪芹")),
        ("vol. {n}", "vol. 2.html", ("2",)),
    ],
)  # fmt: skip
def test_a_name_has_the_values_that_its_pattern_names(
    pattern: str, name: str, values: tuple[str, ...]
) -> None:
    parsed = NamePattern.parse(pattern)
    assert parsed.values_in(name) == dict(zip(parsed.fields, values, strict=True))


@pytest.mark.parametrize("name", ["Emma.txt", "_Austen.txt", "1815_.txt", "1815.txt", "x/1815"])
def test_a_name_of_another_form_has_none(name: str) -> None:
    assert NamePattern.parse("{year}_{author}").values_in(name) is None


@pytest.mark.parametrize("pattern", ["", "year", "{}", "{a}{b}", "{a}_{a}", "{a", "{a}_}", "{a b}"])
def test_a_pattern_that_is_not_clear_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="name-pattern"):
        NamePattern.parse(pattern)


@given(st.lists(st.text("ab 中", min_size=1).filter(str.strip), min_size=2, max_size=5))
def test_values_without_the_separator_come_back_as_they_were(values: list[str]) -> None:
    pattern = NamePattern.parse("_".join(f"{{f{i}}}" for i in range(len(values))))
    found = pattern.values_in("_".join(values) + ".txt")
    assert found == {f"f{i}": value.strip() for i, value in enumerate(values)}


@pytest.mark.parametrize(
    "text",
    [
        "file,author,year\na.txt,Austen,1815\nb/c.txt,\"Eliot, G.\",\n",
        "file;author;year\r\na.txt;Austen;1815\r\nb/c.txt;Eliot, G.;\r\n",
        "\ufefffile\tauthor\tyear\na.txt\tAusten\t1815\n\nb/c.txt\tEliot, G.\t",
        "author,file,year\nAusten,a,1815\n\"Eliot, G.\",c.txt,\n",
    ],
)  # fmt: skip
def test_a_table_is_read_whatever_separates_its_columns(tmp_path: Path, text: str) -> None:
    (tmp_path / "table.csv").write_text(text, encoding="utf-8")
    table = MetadataTable.read(tmp_path / "table.csv")
    assert table.columns == ("author", "year")
    done, notices = FileMetadata(table=table).add_to([source("a.txt"), source("b/c.txt")])
    assert [dict(each.outside) for each in done] == [
        {"author": "Austen", "year": "1815"},
        {"author": "Eliot, G.", "year": None},
    ]
    assert notices == []


def test_a_table_may_have_the_encoding_of_the_texts(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes("file,作者\na.txt,鲁迅\n".encode("gb18030"))
    table = MetadataTable.read(tmp_path / "table.csv", "gb18030")
    assert table.rows == {"a.txt": {"作者": "鲁迅"}}
    with pytest.raises(InputError, match="not utf-8"):
        MetadataTable.read(tmp_path / "table.csv")


@pytest.mark.parametrize(
    "text",
    ["", "author,year\nx,y\n", "file,file\na,b\n", "file,\na,b\n", "file,a\nx\n",
     "file,a\nx,1\nx,2\n", 'file,a\nx,"never closed\n'],
)  # fmt: skip
def test_a_table_that_is_not_clear_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "table.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"table\.csv"):
        MetadataTable.read(tmp_path / "table.csv")


def test_files_without_a_row_and_rows_without_a_file_are_counted_and_told() -> None:
    table = MetadataTable(("year",), {"a.txt": {"year": "1"}, "x.txt": {}, "y.txt": {}})
    pattern = NamePattern.parse("{who}-{year}")
    sources = [source("a.txt"), source("b.txt"), source("ann-1800.txt")]
    done, notices = FileMetadata(pattern, table).add_to(sources)
    assert [dict(each.outside)["year"] for each in done] == ["1", None, "1800"]
    assert notices[0].startswith("2 of 3 files (a.txt, …) are not named like {who}-{year}")
    assert notices[1].startswith("2 of 3 files (b.txt, …) are not in the table")
    assert notices[2].startswith("2 rows of metadata fit no file (x.txt, …)")


def test_only_line_ends_part_the_rows_of_a_table(tmp_path: Path) -> None:
    text = "file,title\r\na.txt,one\x0btwo\u2028three\rb.txt,four\x85five\n"
    (tmp_path / "table.csv").write_text(text, encoding="utf-8", newline="")
    rows = MetadataTable.read(tmp_path / "table.csv").rows
    assert rows == {
        "a.txt": {"title": "one\x0btwo\u2028three"},
        "b.txt": {"title": "four\x85five"},
    }
