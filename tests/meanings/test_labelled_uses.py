"""A user's labels, read from what the user has, and the rest of the uses labelled after them."""

import csv
from pathlib import Path

import numpy as np
import pytest

from meanings.making import make_corpus
from meanings.test_named_groups import bank_uses, encoder
from polyseme.errors import InputError
from polyseme.meanings.concordance.uses import find_uses
from polyseme.meanings.edits import LabelEdit, append_edit
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.groups.senses import use_ids
from polyseme.meanings.labels import LabelledUses, label_uses, read_labels

__all__ = ["encoder"]


def own_labels(number: int) -> dict[int, str]:
    """So many of each sense, in the user's words."""
    is_river = bank_uses()[1]
    by_sense = {True: "shore", False: "institution"}
    found: dict[int, str] = {}
    for wanted in (True, False):
        members = [n for n, river in enumerate(is_river) if river is wanted][::4]
        found |= dict.fromkeys(members[:number], by_sense[wanted])
    return found


@pytest.fixture(scope="module")
def labelled(encoder: ModelUseEncoder) -> LabelledUses:
    return label_uses(bank_uses()[0], own_labels(6), encoder, num_next=5)


def test_the_rest_is_labelled_after_a_dozen_lines(labelled: LabelledUses) -> None:
    gold = ["shore" if river else "institution" for river in bank_uses()[1]]
    right = np.mean([a == b for a, b in zip(labelled.learned.labels, gold, strict=True)])
    assert right > 0.95
    assert labelled.right_when_left_out > 0.9


def test_labels_that_mean_nothing_are_not_found_again(encoder: ModelUseEncoder) -> None:
    """The control: labels dealt at random."""
    random = np.random.default_rng(0)
    mixed = dict(zip(own_labels(8), random.permutation([*own_labels(8).values()]), strict=True))
    found = label_uses(bank_uses()[0], {n: str(v) for n, v in mixed.items()}, encoder)
    assert found.right_when_left_out < 0.75


def test_the_table_can_be_filled_in_and_given_in_again(
    labelled: LabelledUses, tmp_path: Path
) -> None:
    labelled.to_csv(tmp_path / "l.csv")
    with (tmp_path / "l.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 84
    assert sorted(row["look_next"] for row in rows if row["look_next"]) == list("12345")
    asked = [n for n, row in enumerate(rows) if row["look_next"] == "1"]
    assert asked == [labelled.next[0]]
    assert not rows[asked[0]]["label"]
    assert read_labels(tmp_path / "l.csv", labelled.uses) == own_labels(6)


@pytest.mark.parametrize(("delimiter", "encoding"), [(";", "utf-8-sig"), ("\t", "utf-8")])
def test_tables_of_other_spreadsheets_are_read(
    tmp_path: Path, delimiter: str, encoding: str
) -> None:
    path = tmp_path / "mine.csv"
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["sentence_id", "begin", "note, of mine", "label"])
        for number in (3, 50):
            use = bank_uses()[0][number]
            writer.writerow([use.sentence_id, use.starts[use.begin], 'a "b"', f" sense{number} "])
        writer.writerow(["0", "0", "", ""])  # a row nobody labelled, whatever it is
    assert read_labels(path, bank_uses()[0]) == {3: "sense3", 50: "sense50"}


def test_ids_that_look_like_a_formula_are_found(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, [("a bank", {}), ("the bank", {})], id_column="id")
    uses = find_uses(corpus, "bank")
    uses.to_csv(tmp_path / "u.csv")
    lines = (tmp_path / "u.csv").read_text(encoding="utf-8-sig").splitlines()
    mine = "\n".join([lines[0] + ",label", lines[1] + ",x", lines[2] + ","])
    (tmp_path / "mine.csv").write_text(mine, encoding="utf-8")
    assert read_labels(tmp_path / "mine.csv", uses) == {0: "x"}


def test_labels_of_a_log_of_edits_are_read(tmp_path: Path) -> None:
    uses = bank_uses()[0]
    ids = use_ids(uses)
    append_edit(tmp_path / "e.jsonl", LabelEdit(uses=(ids[2], ids[9]), label="shore"))
    append_edit(tmp_path / "e.jsonl", LabelEdit(uses=(ids[9],), label="ford"))
    assert read_labels(tmp_path / "e.jsonl", uses) == {2: "shore", 9: "ford"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sentence_id,begin\n1,2\n", "lacks the column label"),
        ("text,label\nx,y\n", "begin, sentence_id"),
        ("sentence_id,begin,label\n0,0,\n", "is empty"),
        ("sentence_id,begin,label\nnone,7,x\n", "1 of 1 labels"),
        ("sentence_id,begin,label\n0,5,x\n0,5,y\n", "calls a use 'y' that is 'x' above"),
        ("", "lacks the column"),
        ("\xff", "cannot be read"),
    ],
)
def test_a_table_that_cannot_be_used_says_why(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=said):
        read_labels(path, bank_uses()[0])
