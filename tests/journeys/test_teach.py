"""Label uses with senses of your own by the command line: labels in a table, edits in a log."""

import csv
import json
from pathlib import Path

import pytest
from command_line import polyseme
from journeys.test_senses import corpus
from meanings.test_named_groups import MODEL

import polyseme as polyseme_api

__all__ = ["corpus"]


def fill_in(path: Path, *, every: int) -> None:
    """Label every so many rows as a person would, who looks at the year."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for number, row in enumerate(rows):
        own = "shore" if row["year"] == "1850" else "institution"
        row["label"] = own if number % every == 0 else ""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=[*rows[0]])
        writer.writeheader()
        writer.writerows(rows)


def test_from_a_table_with_labels_to_every_use_labelled(corpus: Path, tmp_path: Path) -> None:
    mine, out = tmp_path / "mine.csv", tmp_path / "labelled.csv"
    polyseme("uses", "bank", "--in", corpus, "--sample", "20", "--out", mine)
    fill_in(mine, every=1)
    ask = ("label", "bank", "--in", corpus, "--model", MODEL)
    shown = polyseme(*ask, "--labels", mine, "--next", "3", "--out", out).stdout
    assert "'bank': 84 uses labelled" in shown
    assert "are predicted correctly in" in shown
    assert "Look at these lines next:" in shown
    with out.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    right = sum((row["predicted"] == "shore") == (row["year"] == "1850") for row in rows)
    assert right > 78
    printed = polyseme(*ask, "--labels", mine, "--next", "3", "--json").stdout.splitlines()
    assert [json.loads(line)["predicted"] for line in printed] == [row["predicted"] for row in rows]
    found = polyseme_api.label(corpus, "bank", model=MODEL, labels=out, next=3)
    assert list(found.learned.labels) == [row["predicted"] for row in rows]
    assert len(found.learned.given) == 20


def test_edits_are_added_shown_done_again_and_taken_back(corpus: Path, tmp_path: Path) -> None:
    log = tmp_path / "bank.jsonl"
    ask = ("bank", "--in", corpus, "--model", MODEL, "--groups", "2", "--edits", log)
    shown = polyseme("edit", *ask, "--rename", "1", "--name", "side of a river").stdout
    assert "side of a river" in shown
    assert "Edit 1 was added" in shown
    polyseme("edit", *ask, "--split", "1", "--containing", "boat", "--name", "landing place")
    told = json.loads(polyseme("senses", *ask, "--json").stdout)
    assert {(group["group"], group["uses"]) for group in told["groups"]} >= {(3, 7)}
    assert "landing place" in {group["name"] for group in told["groups"]}
    found = polyseme_api.senses(corpus, "bank", model=MODEL, groups=2, edits=log)
    assert found.to_json() == told
    polyseme("edit", *ask, "--undo")
    after = json.loads(polyseme("senses", *ask, "--json").stdout)
    assert len(after["groups"]) == 2
    assert len(log.read_text(encoding="utf-8").splitlines()) == 3  # nothing is erased


def test_json_tells_which_edits_were_refused(corpus: Path, tmp_path: Path) -> None:
    log = tmp_path / "bank.jsonl"
    ask = ("bank", "--in", corpus, "--model", MODEL, "--groups", "2", "--edits", log)
    told = json.loads(polyseme("edit", *ask, "--rename", "1", "--name", "mine", "--json").stdout)
    assert told["edit"] == 1
    assert "mine" in {group["name"] for group in told["groups"]}
    gone = {"kind": "rename", "group": {"id": "9", "name": "gone"}, "name": "x"}
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(gone) + "\n" + "torn")
    shown = polyseme("senses", *ask)
    told = json.loads(polyseme("senses", *ask, "--json").stdout)
    for refused in ("Edit 2 was not applied: there is no group '9'", "Edit 3 was cut short"):
        assert any(refused in note for note in told["notes"])
        assert refused in " ".join(shown.stdout.split())


def test_a_label_in_the_log_is_learned_from(corpus: Path, tmp_path: Path) -> None:
    log = tmp_path / "bank.jsonl"
    ask = ("edit", "bank", "--in", corpus, "--model", MODEL, "--groups", "2", "--edits", log)
    polyseme(*ask, "--label", "shore", "--containing", "river|lake")
    polyseme(*ask, "--label", "institution", "--containing", "loan|account")
    found = polyseme_api.label(corpus, "bank", model=MODEL, labels=log)
    assert len(found.learned.given) == 35  # five templates of seven people each
    assert found.right_when_left_out == 1


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        ((), "Choose one edit", 2),
        (("--rename", "1"), "--name", 2),
        (("--merge", "1"), "two groups", 2),
        (("--merge", "1,2", "--undo"), "Choose one edit", 2),
        (("--undo",), "has no edit to undo", 2),
        (("--rename", "9", "--name", "x"), "There is no group '9'", 66),
        (("--split", "1", "--name", "x", "--containing", "."), "nothing would be left", 2),
    ],
)
def test_an_edit_that_cannot_be_made_leaves_no_entry(
    corpus: Path, tmp_path: Path, words: tuple[str, ...], said: str, code: int
) -> None:
    log = tmp_path / "bank.jsonl"
    ask = ("edit", "bank", "--in", corpus, "--model", MODEL, "--groups", "2", "--edits", log)
    assert said in " ".join(polyseme(*ask, *words, code=code).stderr.split())
    assert not log.exists()
