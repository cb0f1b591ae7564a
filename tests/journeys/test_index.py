"""An index through the command line: made, read by senses and nearest, refused when it is stale."""

import csv
import json
from pathlib import Path

import pytest
from command_line import polyseme
from meanings.test_named_groups import MODEL, bank_uses

import polyseme as polyseme_api
from polyseme.explorer.view import GroupingKey, View
from polyseme.explorer.workspace import Workspace
from polyseme.meanings.index.use_index import UseIndex
from polyseme.text.corpus import Corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A treebank of 84 sentences, its corpus, and the index of `bank`."""
    made = Path(tmp_path_factory.mktemp("index"))
    uses, is_river = bank_uses()
    blocks = []
    for number, (words, river) in enumerate(zip(uses.sentences(), is_river, strict=True)):
        lines = [f"# newdoc id = d{number}", f"# year = {1850 if river else 1950}"]
        for place, word in enumerate(words, start=1):
            tag = ("NOUN" if river else "PROPN") if word == "bank" else "X"
            lines.append("\t".join([str(place), word, "_", tag, *["_"] * 6]))
        blocks.append("\n".join(lines))
    (made / "bank.conllu").write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    polyseme(*("prepare", made / "bank.conllu", "--language", "en", "--meta", "year"),
             *("--word-attributes", "upos"),
             *("--workers", "1", "--out", made / "corpus"))  # fmt: skip
    shown = polyseme(*("index", "--model", MODEL, made / "corpus", "--words", "bank,river"),
                     *("--workers", "1", "--out", made / "index")).stdout  # fmt: skip
    assert "bytes per use" in shown
    assert "84 of 84" in shown
    return made


def test_senses_by_an_index_are_those_by_the_model(folder: Path) -> None:
    words = ("senses", "bank", "--in", folder / "corpus", "--groups", "2", "--json")
    quick = json.loads(polyseme(*words, "--index", folder / "index").stdout)
    slow = json.loads(polyseme(*words, "--model", MODEL).stdout)
    for one, two in zip(quick["groups"], slow["groups"], strict=True):
        assert one["uses"] == two["uses"] == 42
        assert one["substitutes"] == two["substitutes"]
        assert one["collocates"] == two["collocates"]
    found = polyseme_api.senses(
        folder / "corpus", "bank", index=folder / "index", where=("year<1900",)
    )
    assert len(found.uses) == 42
    assert found.notes == ["42 uses are few: below 150, groups are often due to chance."]


def test_the_explorer_groups_by_an_index_as_senses_does(folder: Path, tmp_path: Path) -> None:
    corpus, index = Corpus.open(folder / "corpus"), UseIndex.open(folder / "index")
    workspace = Workspace(corpus, "no model", tmp_path / "notes", index=index)
    word = workspace.word(View(q="bank"))
    assert word.senses(GroupingKey(0, None)) is None
    assert word.job is not None
    assert word.job.ended.wait(120)
    found = word.senses(GroupingKey(0, None))
    assert found is not None, word.job.error
    told = polyseme_api.senses(folder / "corpus", "bank", index=folder / "index")
    assert found.labels == told.labels
    assert found.groups == told.groups
    # The control: of a word that is not in it, the model is asked.
    other = workspace.word(View(q="the"))
    assert other.senses(GroupingKey(0, None)) is None
    assert other.job is not None
    assert other.job.ended.wait(120)
    assert other.job.state == "failed"
    assert "The model cannot be used" in str(other.job.error)
    workspace.close()


def test_the_explorer_refuses_an_index_of_another_corpus_as_senses_does(
    folder: Path, tmp_path: Path
) -> None:
    polyseme(*("prepare", folder / "bank.conllu", "--language", "en"),
             *("--workers", "1", "--out", tmp_path / "other"))  # fmt: skip
    by = ("--model", MODEL, "--index", folder / "index")
    told = polyseme("explore", tmp_path / "other", *by, "--no-browser", code=65).stderr
    assert told == polyseme("senses", "bank", "--in", tmp_path / "other", *by, code=65).stderr
    assert "is not an index of" in " ".join(told.split())


def test_change_by_an_index_is_that_by_the_model(folder: Path) -> None:
    words = ("change", "bank", "--in", folder / "corpus", "--json")
    sides = ("--before", "year<1900", "--after", "year>=1900")
    quick = json.loads(polyseme(*words, *sides, "--index", folder / "index").stdout)
    slow = json.loads(polyseme(*words, *sides, "--model", MODEL).stdout)
    assert quick["change"]["apd"] == pytest.approx(slow["change"]["apd"], abs=1e-3)  # float16
    assert quick["change"]["p_value"] == slow["change"]["p_value"] < 0.01


def test_labels_are_learned_by_an_index(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    polyseme("uses", "bank", "--in", folder / "corpus", "--out", table)
    rows = list(csv.DictReader(table.read_text(encoding="utf-8-sig").splitlines()))
    senses = [{"1850": "river", "1950": "money"}[row["year"]] for row in rows]
    for row, sense in zip(rows[::4], senses[::4], strict=True):
        row["label"] = sense
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    found = polyseme_api.label(folder / "corpus", "bank", index=folder / "index", labels=table)
    right = [own == sense for own, sense in zip(found.learned.labels, senses, strict=True)]
    assert sum(right) >= 80


def test_the_same_command_again_finds_it_done(folder: Path) -> None:
    again = (
        "index",
        "--model",
        MODEL,
        folder / "corpus",
        "--words",
        "bank,river",
        "--out",
        folder / "index",
    )
    assert "The index was already there" in polyseme(*again).stdout
    told = polyseme(*again, "--max-uses", "9", code=65).stderr
    assert "--replace" in " ".join(told.split())


def test_uses_of_the_same_meaning_are_nearest_with_and_without_an_index(folder: Path) -> None:
    text = "The children played on the *bank* of the river ."
    words = ("nearest", text, "--in", folder / "corpus", "--model", MODEL, "--top", "20")
    shown = polyseme(*words, "--index", folder / "index").stdout
    assert "The nearest of 84 uses" in shown
    assert "Parts of speech: 100% NOUN." in shown
    assert "Static neighbours of 'bank'" in shown
    slow = polyseme_api.nearest(folder / "corpus", text, model=MODEL, top=20)
    quick = polyseme_api.nearest(
        folder / "corpus", text, model=MODEL, top=20, index=folder / "index"
    )
    assert {use.metadata["year"] for use, _ in slow} == {"1850"}
    assert slow.similarities == pytest.approx(quick.similarities, abs=2e-3)
    assert list(slow.similarities) == sorted(slow.similarities, reverse=True)
    static = [word for word, _ in slow.static]
    assert len(static) == 20
    assert not {"bank", "Bank"} & set(static)
    assert slow.to_json()["searched"] == 84


def test_the_sentence_itself_is_not_among_the_nearest(folder: Path) -> None:
    own = polyseme_api.uses(folder / "corpus", "bank")[3]
    marked = " ".join([*own.words[: own.begin], "*bank*", *own.words[own.end :]])
    found = polyseme_api.nearest(folder / "corpus", marked, model=MODEL, top=100)
    assert len(found.uses) == 83
    assert own.text not in [use.text for use in found.uses]


def test_same_tells_how_alike_two_uses_are() -> None:
    texts = ("He sat on the *bank* of the river .", "The *bank* lent him money .")
    told = json.loads(polyseme("same", *texts, "--model", MODEL, "--json").stdout)
    found = polyseme_api.same(*texts, model=MODEL)
    assert told == found.to_json()
    assert told["probability"] is None
    assert polyseme_api.same(texts[0], texts[0], model=MODEL).similarity == pytest.approx(
        1, abs=1e-5
    )


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (("senses", "lake", "--in", "{corpus}", "--index", "{index}"), "made for other words", 66),
        (("senses", "bank", "--in", "{corpus}", "--index", "{corpus}"), "holds a corpus", 65),
        (("change", "--all", "--in", "{corpus}", "--index", "{index}", "--before", "year<1900",
          "--after", "year>=1900"), "--index is for one word", 2),
        (("index", "{corpus}", "--model", "{model}", "--words", "bnak", "--out", "{new}"),
         "'bnak'", 66),
        (("nearest", "no mark", "--in", "{corpus}", "--model", "{model}"), "asterisks", 66),
        (("same", "one *bank*", "--model", "{model}"), "Two sentences", 2),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(
    folder: Path, words: tuple[str, ...], said: str, code: int
) -> None:
    places = {"corpus": folder / "corpus", "index": folder / "index", "model": MODEL,
              "new": folder / "new"}  # fmt: skip
    told = polyseme(*(word.format(**places) for word in words), code=code)
    assert said in " ".join(told.stderr.split())
