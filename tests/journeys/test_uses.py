"""Finding uses through the command line and from Python."""

import csv
from pathlib import Path

import pytest
from command_line import polyseme as command
from meanings.making import make_corpus, make_novels
from rich.cells import cell_len

import polyseme


@pytest.fixture(scope="module")
def novels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_novels(tmp_path_factory.mktemp("novels")).folder


def shown(*words: str | Path, code: int = 0) -> str:
    result = command("uses", *words, code=code)
    return result.stdout + result.stderr


def test_lines_are_cut_aloud_and_the_table_is_complete(novels: Path, tmp_path: Path) -> None:
    table = tmp_path / "uses.csv"
    text = shown("bank", "--in", novels, "--lines", "2", "--sort", "year", "--out", table)
    first, second, how_many, *_ = text.splitlines()
    assert first.index("bank") == second.index("Bank")
    assert how_many == "2 of 6 lines."
    assert f"6 uses written to {table}." in " ".join(text.split())
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["year"] for row in rows] == ["1850", "1850", "1861", "1861", "1861", "1900"]


def test_conditions_may_be_given_several_times_and_have_commas(tmp_path: Path) -> None:
    documents = [("bank a", {"author": "Dickens, Charles", "year": 1850}),
                 ("bank b", {"author": "Dickens, Charles", "year": 1900}),
                 ("bank c", {"author": "Charles", "year": 1850})]  # fmt: skip
    folder = make_corpus(tmp_path, documents, meta=["author", "year"]).folder
    conditions = ("--where", "author=Dickens, Charles", "--where", "year<1900")
    text = shown("bank", "--in", folder, *conditions)
    assert "1 of 1 line." in text
    assert "bank a" in text


def test_one_condition_may_say_what_several_say(tmp_path: Path) -> None:
    documents = [(f"bank {name}", {"author": author, "year": year}) for name, author, year in (
        ("a", "Dickens, Charles", 1850), ("b", "Dickens, Charles", 1900), ("c", "Austen", 1811),
        ("d", None, 1850))]  # fmt: skip
    folder = make_corpus(tmp_path, documents, meta=["author", "year"]).folder
    either = "(year<1860 and author~dickens) or author="
    text = shown("bank", "--in", folder, "--where", either)
    assert [line.split()[1] for line in text.splitlines()[:2]] == ["a", "d"]
    text = shown("bank", "--in", folder, "--where", "not author~dickens", "--where", "year>1820")
    assert [line.split()[1] for line in text.splitlines()[:1]] == ["d"]


def test_a_caret_stands_below_the_place_that_was_not_understood(novels: Path) -> None:
    text = shown("bank", "--in", novels, "--where", "year<1861 and  author~Dickns", code=2)
    *_, condition, caret = text.splitlines()
    assert condition == "  year<1861 and  author~Dickns"
    assert caret == " " * condition.index("Dickns") + "^"


def test_frequencies_and_dispersion_are_shown(novels: Path) -> None:
    text = shown("--regex", "banks?", "--in", novels, "--by", "author", "--lines", "0")
    assert "0 of 7 lines" in text
    assert "│    4 │    12 │         333,333.3" in text  # Dickens
    assert "(no value)" in text
    assert "Gries 2008" in text


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("bnak",), 66, "bank"),
        (("bank", "--where", "date<1860"), 2, "document, year, author"),
        (("bank", "--where", "1860"), 2, "Expected one of < <= > >= = != ~ after 1860."),
        (("bank", "--where", "author=Dickns"), 2, "Did you mean author=Dickens?"),
        (("bank", "--where", "author=Dickens and yer<1860"), 2, "Did you mean year?"),
        (("bank", "--sort", "up"), 2, "left, right"),
        (("bank", "--by", "up"), 2, "document, year, author"),
        (("bank", "--out", "uses.doc"), 2, ".csv, .tsv, .xlsx"),
        (("bank", "--regex", "b.*"), 2, "pattern"),
        (("--regex", "("), 2, "regular expression"),
        ((), 2, "Nothing to look for"),
    ],
)
def test_mistakes_are_told(novels: Path, words: tuple[str, ...], code: int, told: str) -> None:
    text = shown(*words, "--in", novels, code=code)
    assert told in " ".join(text.split())
    assert "Traceback" not in text


def test_hostile_text_is_shown_and_lines_stay_aligned(tmp_path: Path) -> None:
    texts = ["a \x1b[2J\u202e kw b", "[bold red]x[/] kw", "银行 很 大 kw 银行"]
    meta = {"m": "\x1b]0;x\x07"}
    corpus = make_corpus(tmp_path, [(text, meta) for text in texts], meta=["m"])
    text = shown("kw", "--in", corpus.folder, "--by", "m", "--sort", "m")
    assert not set("\x1b\x07\u202e") & set(text)
    assert "[bold red]x[/]" in text
    begins = [cell_len(line[: line.index(" kw")]) for line in text.splitlines()[:3]]
    assert len(set(begins)) == 1


def test_the_same_from_python(novels: Path) -> None:
    uses = polyseme.uses(novels, "banks", forms=["river bank"], where=["year!=1850"])
    assert [use.form for use in uses] == ["river bank", "banks"]
    assert len(polyseme.uses(polyseme.Corpus.open(novels), regex="BANK", case_sensitive=True)) == 1
