"""PDF: pages become paragraphs, in a process that a hostile file cannot escape."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from polyseme.processes import python_process
from polyseme.text import records as limited
from polyseme.text.formats import pdf, pdf_child
from polyseme.text.formats.pdf import normalize_letters
from polyseme.text.records import Rejected
from text.documents import lock_pdf, make_pdf
from text.making import make_config, num_blank, read_all, reasons, records, texts

LONG = "This line is as long as the page is wide and goes"


def read(folder: Path, *pages: list[str]) -> list[str]:
    return texts(read_all(folder, make_pdf(pages), "pdf"))


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        ([["Chapter One", LONG, "on here.", "Another paragraph begins and is as wide as", "that."]],
         ["Chapter One", f"{LONG} on here.", "Another paragraph begins and is as wide as that."]),
        ([["The sentence on this line has been some-", "thing, and here is the well-known Anglo-",
           "American war that took place from 1914-", "1918."]],
         [("The sentence on this line has been something, and here is the well-known Anglo- "
           "American war that took place from 1914- 1918.")]),
        ([[LONG], ["on overleaf.", LONG + "."], ["Not a part of it."]],
         [f"{LONG} on overleaf.", LONG + ".", "Not a part of it."]),
        ([[LONG], ["THE BOOK 2", f"{LONG} on."]], [LONG, "THE BOOK 2", f"{LONG} on."]),
    ],
)  # fmt: skip
def test_lines_are_joined_to_paragraphs(
    tmp_path: Path, pages: list[list[str]], expected: list[str]
) -> None:
    assert read(tmp_path, *pages) == expected


def test_chinese_lines_are_joined_without_a_space(tmp_path: Path) -> None:
    page = ["春眠不觉晓处处闻啼鸟夜来风雨声", "花落知多少春眠不觉晓处处闻啼鸟", "。"]
    assert read(tmp_path, page) == ["".join(page)]


def test_ligatures_and_radicals_are_the_letters_they_stand_for(tmp_path: Path) -> None:
    assert read(tmp_path, ["The ﬁrst ﬂower, ⾏⻓⻔. ① stays"]) == [
        "The first flower, 行长门. ① stays"
    ]
    radicals = "".join(map(chr, range(0x2F00, 0x2FD6)))
    assert all("\u4e00" <= letter <= "\u9fff" for letter in normalize_letters(radicals))


def test_the_description_gives_the_metadata(tmp_path: Path) -> None:
    info = "/Title (Emma) /Author (Jane Austen) /CreationDate (D:18151223000000Z)"
    data = make_pdf([["Text."]], info=info)
    (record,) = records(
        read_all(tmp_path, data, "pdf", make_config(meta=("title", "author", "date", "genre")))
    )
    assert record.meta == ("Emma", "Jane Austen", "1815-12-23", None)


def test_a_scan_is_named_so(tmp_path: Path) -> None:
    (item,) = read_all(tmp_path, make_pdf([[], []]), "pdf")
    assert isinstance(item, Rejected)
    assert (item.reason, item.units) == ("no-text-layer", 2)
    assert "OCR" in item.detail


def test_a_blank_page_is_counted_and_a_password_told(tmp_path: Path) -> None:
    items = read_all(tmp_path, make_pdf([["One."], [], ["Two."]]), "pdf")
    assert (texts(items), num_blank(items)) == (["One.", "Two."], 1)
    assert texts(read_all(tmp_path, lock_pdf(make_pdf([["Open."]]), ""), "pdf")) == ["Open."]
    locked = read_all(tmp_path, lock_pdf(make_pdf([["Secret."]]), "xyz"), "pdf")
    assert (texts(locked), reasons(locked)) == ([], ["encrypted"])


def test_a_page_that_takes_too_long_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "PATIENCE", 0.01)
    items = read_all(tmp_path, make_pdf([["One."]]), "pdf")
    assert reasons(items) == ["broken-file"]
    assert isinstance(items[0], Rejected)
    assert "seconds" in items[0].detail


def test_a_process_that_dies_is_a_broken_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "python_process", lambda *_: python_process("os", "abort"))
    assert reasons(read_all(tmp_path, make_pdf([["One."]]), "pdf")) == ["broken-file"]


def test_a_reader_that_is_left_early_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(make_pdf([["One."], ["Two."]]))
    answers = pdf._answers(tmp_path / "a.pdf")
    assert next(answers)[0] == "info"
    answers.close()  # type: ignore[attr-defined]  # waits for the process; a ResourceWarning would fail the test


def test_a_paragraph_over_many_pages_is_held_to_the_limit_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited, "LONGEST_LINE", 200)
    joiner = pdf._PageJoiner()
    for _ in range(100):
        assert joiner.add_page("so it goes on and on and on\n" * 3) == []
    [text] = joiner.finish()
    assert 200 < len(text) < 300


def test_the_text_of_a_page_is_cut_where_it_is_too_long_for_a_paragraph(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pdf_child, "LONGEST_LINE", 10)
    page = SimpleNamespace(extract_text=lambda: "x" * 1_000)
    pdf_child._tell_pages(SimpleNamespace(is_encrypted=False, metadata={}, pages=[page]))
    assert '{"page": "xxxxxxxxxxx"}\n' in capsys.readouterr().out
