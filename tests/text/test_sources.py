"""Files, folders and globs become sources; what does not is named with the reason."""

import os
import sys
from pathlib import Path
from typing import get_args

import pytest

from polyseme.errors import InputError
from polyseme.text.sources import LEAVES_FOLDER, Compression, find_sources
from polyseme.text.streams import encoding_of, newline_in
from text.documents import make_docx, make_epub, make_pdf
from text.making import make_config


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
    for given in (str(folder), f"{folder}/*"):
        found = find_sources([given], make_config())
        assert [source.name for source in found.sources] == ["good.txt", "linked.txt"]
        reasons = dict(found.passed_over)
        assert reasons["dangling.txt"] == reasons["loop.txt"] == "link that leads to no file"
        assert reasons["pipe.txt"] == "neither a file nor a folder"
        assert ("more" in reasons) == (given == str(folder))


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
    for given in (str(folder), f"{folder}/*.txt"):
        found = find_sources([given], make_config())
        assert found.passed_over == [("x.txt", LEAVES_FOLDER)]
        assert [source.name for source in found.sources] == ["good.txt"]
    [named] = find_sources([str(folder / "x.txt")], make_config()).sources
    assert named.name == "x.txt"


def test_a_folder_that_is_linked_into_a_glob_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.txt").write_text("a secret")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "more").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "texts" / "good.txt").write_text("a text")
    found = find_sources([f"{tmp_path}/texts/**/*.txt"], make_config())
    assert [source.name for source in found.sources] == ["good.txt"]
