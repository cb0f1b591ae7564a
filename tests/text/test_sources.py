"""Files, folders and globs become sources; what does not is named with the reason.

What the beginning of a file tells before work starts.

Values from file names and from a table beside the files.
"""

import gzip
import json
import os
import sys
import textwrap
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.errors import ConfigError, InputError
from polyseme.text.file_metadata import FileMetadata, MetadataTable, NamePattern
from polyseme.text.sampling import sniff
from polyseme.text.sources import LEAVES_FOLDER, Compression, FoundSources, Source, find_sources
from polyseme.text.streams import encoding_of, newline_in
from text.documents import make_docx, make_epub, make_pdf
from text.making import make_config, prepare_all


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.txt", "text"),
        ("a.TXT", "text"),
        ("a.jsonl", "jsonl"),
        ("a.ndjson", "jsonl"),
        ("a.csv", "csv"),
        ("a.tsv", "tsv"),
        ("a.parquet", "parquet"),
        ("a.conllu", "conllu"),
        ("a.vrt", "vertical"),
        ("a.xml", "tei"),
        ("a.html", "html"),
        ("a.HTM", "html"),
        ("a.epub", "epub"),
        ("a.docx", "docx"),
        ("a.pdf", "pdf"),
        ("vol. 2.old.txt", "text"),
        *((f"a.jsonl.{packed}", "jsonl") for packed in ("gz", "bz2", "xz", "zst")),
    ],
)
def test_the_format_is_told_from_the_name(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    (source,) = find_sources([str(tmp_path / name)], make_config()).sources
    packed = name.rpartition(".")[2]
    compression = packed if packed in get_args(Compression) else None
    assert (source.format, source.compression, source.bytes) == (kind, compression, 1)


@pytest.mark.parametrize("name", ["a", "a.txt", "a.bin", "a.html"])
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (make_pdf([["One."]]), "pdf"),
        (make_epub({"a": "<p/>"}), "epub"),
        (make_docx("<w:p/>"), "docx"),
        (b"PAR1", "parquet"),
        (b"\xef\xbb\xbf\n<!DOCTYPE html><p>One", "html"),
    ],
)
def test_a_file_with_a_wrong_name_or_none_is_known_by_its_first_bytes(
    tmp_path: Path, name: str, data: bytes, kind: str
) -> None:
    (tmp_path / name).write_bytes(data)
    (source,) = find_sources([str(tmp_path)], make_config()).sources
    assert source.format == kind


def test_what_is_stated_or_marked_up_in_another_way_is_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(b"<html><p>One</p></html>")
    (tmp_path / "b.conllu").write_bytes(b"<html>")
    kinds = [source.format for source in find_sources([str(tmp_path)], make_config()).sources]
    assert kinds == ["tei", "conllu"]
    stated = find_sources([str(tmp_path)], make_config(format="html"))
    assert {source.format for source in stated.sources} == {"html"}


@pytest.mark.parametrize(
    ("names", "given", "expected"),
    [
        ("b.txt a/z.txt a/b.txt", "", "a/b.txt a/z.txt b.txt"),
        ("2.txt 1.txt 1.md", "*.txt", "1.txt 2.txt"),
        ("a[1].txt a1.txt", "a[1].txt", "a[1].txt"),  # a file named like a glob is a file
    ],
)
def test_folders_and_globs_are_read_in_the_order_of_names(
    tmp_path: Path, names: str, given: str, expected: str
) -> None:
    for name in names.split():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    found = find_sources([str(tmp_path / given)], make_config())
    assert [source.name for source in found.sources] == expected.split()


def test_what_is_passed_over_is_named_with_the_reason(tmp_path: Path) -> None:
    for name in ("a.txt", "b.md", ".hidden.txt", "c.parquet.gz", "noending"):
        (tmp_path / name).write_bytes(b"x")
    found = find_sources([str(tmp_path)], make_config())
    assert [source.name for source in found.sources] == ["a.txt"]
    reasons = dict(found.passed_over)
    assert reasons.keys() == {"b.md", ".hidden.txt", "c.parquet.gz", "noending"}
    assert all(reasons.values())


def test_nothing_to_read_is_an_error_that_lists_the_endings(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_bytes(b"x")
    with pytest.raises(InputError, match=r"b\.md.*unknown kind(.|\n)*\.jsonl"):
        find_sources([str(tmp_path)], make_config())


def test_an_input_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        find_sources([str(tmp_path / "nowhere")], make_config())


def test_two_inputs_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_bytes(b"x")
    with pytest.raises(InputError, match=r"same name: x\.txt"):
        find_sources([str(tmp_path / "a"), str(tmp_path / "b")], make_config())


def test_the_summary_adds_up_files_and_bytes_by_kind(tmp_path: Path) -> None:
    for name, size in (("a.txt", 3), ("b.txt", 4), ("c.txt.gz", 5)):
        (tmp_path / name).write_bytes(b"x" * size)
    found = find_sources([str(tmp_path)], make_config())
    assert found.summary() == [("text", 2, 7), ("text, gz", 1, 5)]


@pytest.mark.skipif(sys.platform != "linux", reason="only there may a name be any bytes")
def test_a_file_name_that_is_not_text_gets_one_that_is(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    with open(path, "wb") as file:  # noqa: PTH123  # pathlib takes no bytes
        file.write(b"x")
    (source,) = find_sources([str(tmp_path)], make_config()).sources
    assert source.name.encode("utf-8").startswith(b"caf")


@pytest.mark.parametrize(
    "encoding", ["utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
)
def test_a_byte_order_mark_overrules_the_stated_encoding(encoding: str) -> None:
    mark = "\ufeff".encode(encoding.removesuffix("-sig"))
    found, length = encoding_of(mark + "x".encode(encoding), "latin-1")
    assert (found, length) == (encoding.removesuffix("-sig"), len(mark))


@pytest.mark.parametrize(
    ("stated", "used"),
    [("utf-16", "utf-16-le"), ("utf-32", "utf-32-le"), ("utf-8-sig", "utf-8"), ("big5", "big5")],
)
def test_without_a_mark_the_stated_encoding_is_used(stated: str, used: str) -> None:
    assert encoding_of(b"abcd", stated) == (used, 0)


def test_a_line_end_has_the_width_of_the_encoding() -> None:
    assert [newline_in(name) for name in ("utf-8", "utf-16-be", "utf-32-le")] == [
        b"\n",
        b"\0\n",
        b"\n\0\0\0",
    ]


def test_what_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "good.txt").write_text("a text")
    (folder / "linked.txt").symlink_to(folder / "good.txt")
    (folder / "dangling.txt").symlink_to(tmp_path / "not-there")
    (folder / "loop.txt").symlink_to(folder / "loop.txt")
    (folder / "more").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(folder / "pipe.txt")
    for named in (str(folder), f"{folder}/*"):
        found = find_sources([named], make_config())
        assert [source.name for source in found.sources] == ["good.txt", "linked.txt"]
        reasons = dict(found.passed_over)
        assert reasons["dangling.txt"] == reasons["loop.txt"] == "link that leads to no file"
        assert reasons["pipe.txt"] == "neither a file nor a folder"
        assert ("more" in reasons) == (named == str(folder))


def test_a_link_that_leads_nowhere_is_told_when_it_is_all_that_was_named(tmp_path: Path) -> None:
    (tmp_path / "dangling.txt").symlink_to(tmp_path / "not-there")
    with pytest.raises(InputError, match=r"dangling\.txt: link that leads to no file"):
        find_sources([str(tmp_path / "dangling.txt")], make_config())


def test_a_name_that_is_no_text_can_be_told_when_it_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("a text")
    (tmp_path / os.fsdecode(b"bad-\xff.zip")).write_text("x")
    [(name, _)] = find_sources([str(tmp_path)], make_config()).passed_over
    assert name.encode("utf-8") == b"bad-\\udcff.zip"


def test_a_link_out_of_the_folder_is_passed_over_unless_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("a secret")
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "good.txt").write_text("a text")
    (folder / "x.txt").symlink_to(tmp_path / "secret.txt")
    for named in (str(folder), f"{folder}/*.txt"):
        found = find_sources([named], make_config())
        assert found.passed_over == [("x.txt", LEAVES_FOLDER)]
        assert [source.name for source in found.sources] == ["good.txt"]
    [alone] = find_sources([str(folder / "x.txt")], make_config()).sources
    assert alone.name == "x.txt"


def test_a_folder_that_is_linked_into_a_glob_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.txt").write_text("a secret")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "more").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "texts" / "good.txt").write_text("a text")
    found = find_sources([f"{tmp_path}/texts/**/*.txt"], make_config())
    assert [source.name for source in found.sources] == ["good.txt"]


SENTENCE = "It was a bright cold day in April, and the clocks were striking thirteen; nobody knew. "
ANOTHER = "Mr Smith, who had a weak heart, went slowly up the stairs. "
PARAGRAPH = (SENTENCE + ANOTHER) * 4
HAN = "今天天气很好，我们去公园玩，公园里有很多人。" * 30


def wrapped(width: int, paragraphs: int = 6) -> str:
    return "\n\n".join(textwrap.fill(PARAGRAPH, width) for _ in range(paragraphs)) + "\n"


def look(
    folder: Path, text: str | bytes, name: str = "a.txt", **values: object
) -> tuple[FoundSources, str]:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    config = make_config(**{"layout": "auto", **values})
    found, notices = sniff(find_sources([str(folder)], config), config)
    return found, "\n".join(notices)


@pytest.mark.parametrize("is_ascii", [True, False])
def test_chinese_in_json_is_chinese_also_where_it_is_escaped(
    tmp_path: Path, is_ascii: bool
) -> None:
    text = json.dumps({"text": HAN}, ensure_ascii=is_ascii)
    assert "Chinese" not in look(tmp_path, text, "a.jsonl", language="zh")[1]
    assert "mostly Chinese" in look(tmp_path, text, "a.jsonl", language="en")[1]


@pytest.mark.parametrize(
    ("text", "values", "layout", "said"),
    [
        *((wrapped(width), {}, "wrapped", "has hard-wrapped lines") for width in (45, 55, 72, 95)),
        ("\n\n".join(textwrap.fill(HAN, 35) for _ in range(4)),
         {"language": "zh", "segmenter": "characters"}, "wrapped", "--layout unwrapped"),
        (wrapped(70), {"layout": "articles"}, "articles", "--layout wrapped joins them"),
        (f"{PARAGRAPH}\n{PARAGRAPH}\n\n" * 20, {}, "unwrapped", "--layout articles"),
    ],
)  # fmt: skip
def test_the_layout_is_found_or_its_harm_said(
    tmp_path: Path, text: str, values: dict[str, str], layout: str, said: str
) -> None:
    found, told = look(tmp_path, text, **values)
    assert found.sources[0].layout == layout
    assert said in told


def test_a_packed_file_is_looked_into(tmp_path: Path) -> None:
    found, _ = look(tmp_path, gzip.compress(wrapped(70, 500).encode()), "a.txt.gz")
    assert found.sources[0].layout == "wrapped"


@pytest.mark.parametrize(
    "text",
    [
        f"{PARAGRAPH}\n" * 40,  # a paragraph a line
        f"{PARAGRAPH}\n\n" * 40,  # the same, set apart
        f"{PARAGRAPH}\n{PARAGRAPH}\n\n" * 20,  # articles
        f"{SENTENCE}\n" * 200,  # a sentence a line
        "Yes.\nNo.\n\n" * 100,  # a dialogue
        "red\ngreen\nblue\n\n" * 100,  # a list
        "How doth the little crocodile\nImprove his shining tail,\n\n" * 50,  # verse
        "",
        "one line",
    ],
)
def test_other_texts_are_not_taken_for_wrapped(tmp_path: Path, text: str) -> None:
    found, said = look(tmp_path, text)
    assert found.sources[0].layout == "unwrapped"
    assert "wrapped lines" not in said


def test_each_file_is_judged_by_itself(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text(f"{PARAGRAPH}\n" * 20)
    found, said = look(tmp_path, wrapped(70))
    assert [source.layout for source in found.sources] == ["wrapped", "unwrapped"]
    assert "1 of 2 files (a.txt) has hard-wrapped lines" in said


def test_a_wrapped_novel_keeps_its_sentences_and_is_one_document(tmp_path: Path) -> None:
    found, _ = look(tmp_path, wrapped(60))
    config = make_config(layout="auto", segmenter="spacy", held_out=0.5)
    prepared = prepare_all(found.sources, config, tmp_path / "out")
    assert prepared.counts["documents"] == 1
    assert {row["text"] for row in prepared.rows} == {SENTENCE.strip(), ANOTHER.strip()}


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"PK\x03\x04\x14\x00", "zip"),
        (b"{\\rtf1\\ansi", "RTF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "Word"),
    ],
)
def test_what_is_no_text_is_passed_over_by_name(tmp_path: Path, data: bytes, word: str) -> None:
    (tmp_path / "b.txt").write_text("text\n")
    found, _ = look(tmp_path, data)
    assert [source.name for source in found.sources] == ["b.txt"]
    assert [(name, word in reason) for name, reason in found.passed_over] == [("a.txt", True)]


def test_empty_files_are_counted_and_named(tmp_path: Path) -> None:
    (tmp_path / "b.txt").touch()
    found, said = look(tmp_path, SENTENCE)
    assert "1 of 2 files is empty (b.txt)." in said
    assert len(found.sources) == 2
    (tmp_path / "b.txt").write_text(ANOTHER, encoding="utf-8")
    assert "empty" not in look(tmp_path, SENTENCE)[1]


def test_nothing_but_a_pdf_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.txt: not text but rich text"):
        look(tmp_path, b"{\\rtf1\\ansi")


@pytest.mark.parametrize(
    ("text", "language", "is_said"),
    [
        (HAN, "en", True),
        (HAN, "zh", False),
        (HAN, "ja", False),
        (PARAGRAPH, "zh", True),
        (PARAGRAPH, "en", False),
        (PARAGRAPH + "东西", "en", False),
        ("12 34\n", "zh", False),
    ],
)
def test_text_in_another_script_than_the_language_is_said(
    tmp_path: Path, text: str, language: str, is_said: bool
) -> None:
    _, said = look(tmp_path, text, language=language)
    assert (f"but --language is {language}" in said) == is_said


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
