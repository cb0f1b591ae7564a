"""What the beginning of a file tells before work starts."""

import gzip
import textwrap
from pathlib import Path

import pytest

from polyseme.errors import InputError
from polyseme.text.sampling import sniff
from polyseme.text.sources import FoundSources, find_sources
from text.making import make_config, prepare_all

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
