"""A word by its meanings, through the command line: from a corpus to groups with names."""

import csv
import json
from pathlib import Path

import pytest
from command_line import polyseme
from meanings.test_named_groups import MODEL, bank_uses

import polyseme as polyseme_api


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(tmp_path_factory.mktemp("senses"))
    uses, is_river = bank_uses()
    lines = [
        json.dumps({"text": " ".join(words), "year": 1850 if river else 1950})
        for words, river in zip(uses.sentences(), is_river, strict=True)
    ]
    (folder / "texts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    polyseme(*("prepare", folder / "texts.jsonl", "--language", "en", "--meta", "year"),
             *("--workers", "1", "--out", folder / "corpus"))  # fmt: skip
    return folder / "corpus"


def test_groups_are_shown_with_figures_and_lines_and_go_into_a_table_and_a_page(
    corpus: Path, tmp_path: Path
) -> None:
    out, page = tmp_path / "bank.csv", tmp_path / "bank.html"
    words = ("bank", "--in", corpus, "--model", MODEL, "--groups", "2")
    shown = polyseme("senses", *words, "--out", out, "--report", page).stdout
    assert "'bank': 84 uses in 2 groups" in shown
    assert "river" in shown
    assert "account" in shown
    assert "50%" in shown
    assert "84 uses are few" in shown
    assert shown.count("Group ") == 2
    with out.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 84
    assert len({(row["group"], row["year"]) for row in rows}) == 2
    assert "To read in a browser" in shown
    text = page.read_text(encoding="utf-8")
    assert "<h1>bank</h1>" in text
    assert "84 documents" in text.replace("<b>", "").replace("</b>", "")


def test_json_is_what_python_gives(corpus: Path) -> None:
    words = ("senses", "bank", "--in", corpus, "--model", MODEL, "--finer", "1", "--json")
    told = json.loads(polyseme(*words).stdout)
    found = polyseme_api.senses(corpus, "bank", model=MODEL, finer=1)
    assert told == found.to_json()


def test_one_layer_can_be_asked(corpus: Path) -> None:
    words = ("senses", "bank", "--in", corpus, "--model", MODEL, "--groups", "2", "--json")
    told = json.loads(polyseme(*words, "--layer", "2").stdout)
    assert [group["substitutes"] for group in told["groups"]] == [[], []]
    assert sum(group["uses"] for group in told["groups"]) == 84
    refused = polyseme(*words, "--layer", "0", code=66).stderr
    assert "In layer 0 all 84 uses are the same" in " ".join(refused.split())
    assert "layers 0 to 2" in polyseme(*words, "--layer", "7", code=2).stderr


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (("bank", "--report", "bank.pdf"), "does not end in .html", 2),
        (("bridge",), "Too few uses to group: 7.", 66),
        (("bonk",), "has no use of 'bonk'", 66),
        (("bank", "--groups", "3", "--finer", "1"), "not both", 2),
        (("bank", "--out", "bank.pdf"), "bank.pdf", 2),
        (("bank", "--groups", "0"), "--groups", 2),
    ],
)
def test_what_cannot_be_done_is_said(
    corpus: Path, words: tuple[str, ...], said: str, code: int
) -> None:
    told = polyseme("senses", *words, "--in", corpus, "--model", MODEL, code=code)
    assert said in " ".join(told.stderr.split())


def test_substitutes_are_shown_and_the_same_in_python() -> None:
    text = "He sat on the *bank* of the river ."
    shown = polyseme("substitutes", text, "--model", MODEL, "--top", "5").stdout
    found = polyseme_api.substitutes(text, model=MODEL, top=5)
    assert len(found.words) == 5
    assert all(word in shown for word, _ in found.words)
    told = json.loads(polyseme("substitutes", text, "--model", MODEL, "--json").stdout)
    assert found.own is not None
    assert told["rank_of_word"] == found.own[0]


def test_a_word_that_moved_from_rivers_to_money_has_changed(corpus: Path, tmp_path: Path) -> None:
    sides = ("--before", "year<1900", "--after", "year>=1900")
    words = ("bank", "--in", corpus, "--model", MODEL, "--report", tmp_path / "c.html")
    shown = polyseme("change", *words, *sides).stdout
    assert "year&lt;1900" in (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "The sides differ by more than chance explains" in shown
    assert "vanished" in shown
    found = polyseme_api.change(corpus, "bank", model=MODEL, before="year<1900", after="year>=1900")
    assert found.change.p_value < 0.05
    assert found.change.jsd == pytest.approx(1, abs=0.2)
    assert found.num_before == 42


def test_words_of_a_whole_vocabulary_are_compared(corpus: Path, tmp_path: Path) -> None:
    sides = ("--before", "year<1900", "--after", "year>=1900", "--min-uses", "20")
    few = ("--permutations", "199", "--max-uses", "20", "--out", tmp_path / "all.csv")
    ask = ("change", "--all", "--in", corpus, "--model", MODEL, *sides, *few)
    shown = " ".join(polyseme(*ask).stdout.split())
    assert "words differ by more than chance" in shown
    assert "with documents assigned to the sides at random" in shown
    with (tmp_path / "all.csv").open(encoding="utf-8-sig", newline="") as file:
        words = [row["word"] for row in csv.DictReader(file)]
    assert set(words) == {"bank", "of"}  # `the` is too frequent
    assert not list(tmp_path.glob("*.jsonl"))  # nothing is unfinished
    found = polyseme_api.vocabulary_change(
        corpus, model=MODEL, before="year<1900", after="year>=1900", words=["bank"], min_uses=20
    )
    assert [each.change.word for each in found.significant] == ["bank"]
    told = polyseme("change", "bank", *ask[1:], code=2)
    assert "Choose one" in told.stderr


@pytest.mark.parametrize(
    ("sides", "said", "code"),
    [
        (("--before", "year<1900", "--after", "year<1950"), "The sides share 42 uses.", 66),
        (("--before", "year<1800", "--after", "year>1900"), "The side 'before' has 0 uses", 66),
        (("--before", "decade<1800", "--after", "year>1900"), "There is no column decade.", 2),
        (
            ("--before", "1800", "--after", "year>1900"),
            "Expected one of < <= > >= = != ~ after 1800.",
            2,
        ),
    ],
)
def test_sides_that_cannot_be_compared_are_named(
    corpus: Path, sides: tuple[str, ...], said: str, code: int
) -> None:
    told = polyseme("change", "bank", "--in", corpus, "--model", MODEL, *sides, code=code)
    assert said in " ".join(told.stderr.split())
