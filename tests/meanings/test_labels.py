"""Labels learned from a few: accuracy, calibration, what to label next, odd cases.

A user's labels, read from what the user has, and the rest of the uses labelled after them.
"""

import csv
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from meanings.making import make_corpus
from meanings.test_named_groups import bank_uses, encoder
from polyseme.errors import InputError
from polyseme.meanings.concordance.uses import find_uses
from polyseme.meanings.edits import LabelEdit, append_edit
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.groups.senses import use_ids
from polyseme.meanings.labels import (
    LabelledUses,
    LearnedLabels,
    draw_together,
    first_to_label,
    label_uses,
    labels_when_left_out,
    learn_labels,
    read_labels,
)

Values = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]


def made_up(
    seed: int, *, apart: float, senses: int = 2, uses: int = 300, topics: float = 0.15
) -> tuple[Values, Integers]:
    """Uses of some senses, with differences of topic that have nothing to do with them."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(senses, 64)) * apart
    true = generator.integers(senses, size=uses)
    topic = generator.normal(size=(uses, 8)) @ generator.normal(size=(8, 64)) * topics
    rows = centres[true] + topic + generator.normal(size=(uses, 64)) * 0.5 + 0.3
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32), true


def some_labels(true: Integers, each: int) -> dict[int, str]:
    """The first few uses of every sense."""
    chosen = [np.flatnonzero(true == sense)[:each] for sense in range(true.max() + 1)]
    return {int(number): f"sense {true[number]}" for number in np.concatenate(chosen)}


def accuracy(found: LearnedLabels, true: Integers) -> float:
    others = [number for number in range(len(true)) if number not in found.given]
    return float(np.mean([found.labels[number] == f"sense {true[number]}" for number in others]))


@pytest.mark.parametrize("each", [1, 4, 12])
def test_senses_that_are_far_apart_are_learned(each: int) -> None:
    features, true = made_up(0, apart=1.0, senses=3)
    assert accuracy(learn_labels(features, some_labels(true, each)), true) > 0.95


def test_of_two_labels_the_nearer_one_is_given() -> None:
    features = np.array([[1.0, 0], [0.8, 0.6], [0, 1.0], [-1.0, 0], [0, -1.0]])
    found = learn_labels(features, {0: "east", 3: "west"})
    # Less the mean (0.16, 0.12), the others point to (0.64, 0.48), (-0.16, 0.88), (-0.16, -1.12).
    assert found.labels == ("east", "east", "west", "west", "west")


def test_a_label_that_few_uses_have_takes_little_more_than_its_own() -> None:
    """By the nearest mean, three uses in ten would get the label that one in ten should have."""
    random = np.random.default_rng(2)
    true = (np.arange(300) < 30).astype(int)
    centres = np.eye(40)[:2]
    features = centres[true] + random.normal(size=(300, 40)) * 0.2
    found = learn_labels(features, {0: "sense 1", **dict.fromkeys(range(40, 52), "sense 0")})
    assert accuracy(found, true) > 0.95


@pytest.mark.parametrize("each", [2, 8])
def test_a_users_own_labels_stay_as_they_are(each: int) -> None:
    features, true = made_up(1, apart=0.5)
    given = some_labels(true, each)
    wrong = next(iter(given))
    given[wrong] = "sense 0" if given[wrong] == "sense 1" else "sense 1"
    found = learn_labels(features, given)
    assert all(found.labels[number] == label for number, label in given.items())
    assert all(found.confidence[number] == 1.0 for number in given)


def test_labels_are_right_as_often_as_confidence_says_or_oftener() -> None:
    said, right = [], []
    for seed in range(12):
        features, true = made_up(seed, apart=0.25)
        found = learn_labels(features, some_labels(true, 10))
        others = [number for number in range(len(true)) if number not in found.given]
        said += [float(found.confidence[number]) for number in others]
        right += [found.labels[number] == f"sense {true[number]}" for number in others]
    confidence, is_right = np.array(said), np.array(right)
    before = 0.5
    for low, high in ((0.5, 0.7), (0.7, 0.9), (0.9, 1.0)):
        inside = (confidence >= low) & (confidence < high)
        assert inside.sum() > 200
        assert is_right[inside].mean() > max(before, confidence[inside].mean() - 0.02)
        before = is_right[inside].mean()


def test_regression_leaves_topic_aside_that_misleads_means() -> None:
    gains = []
    for seed in range(6):
        features, true = made_up(seed, apart=0.25, topics=0.3)
        few = learn_labels(features, some_labels(true, 20))
        means = [
            features[[n for n in few.given if true[n] == sense]].mean(axis=0) for sense in (0, 1)
        ]
        lengths = np.linalg.norm(means, axis=1)
        nearest = (features @ np.array(means).T / lengths).argmax(axis=1)
        others = [number for number in range(len(true)) if number not in few.given]
        gains.append(accuracy(few, true) - np.mean(nearest[others] == true[others]))
    assert np.mean(gains) > 0.03


def test_the_order_of_labels_changes_nothing() -> None:
    features, true = made_up(2, apart=0.3)
    given = some_labels(true, 5)
    turned = dict(reversed(given.items()))
    assert learn_labels(features, given).to_json() == learn_labels(features, turned).to_json()


def test_a_use_between_two_labels_is_next_and_not_its_double() -> None:
    angles = np.radians([0, 180, 90, 91, 170, 10, 270])
    features = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    chosen = learn_labels(features, {0: "east", 1: "west"}).next_to_label(2)
    assert 6 in chosen  # the one below
    assert len({2, 3} & set(chosen)) == 1  # one of the two above


def test_uncertain_uses_teach_more_than_random_ones() -> None:
    reached: dict[str, list[float]] = {"uncertain": [], "random": []}
    for seed in range(6):
        features, true = made_up(seed, apart=0.3)
        for how, scores in reached.items():
            given = some_labels(true, 2)
            while len(given) < 29:
                found = learn_labels(features, given)
                chosen = found.next_to_label(5, how=how, seed=len(given))  # type: ignore[arg-type]
                given |= {number: f"sense {true[number]}" for number in chosen}
            right = np.array(learn_labels(features, given).labels) == [f"sense {s}" for s in true]
            scores.append(float(right.mean()))
    assert np.mean(reached["uncertain"]) > np.mean(reached["random"])


def test_a_result_is_plain_json_and_a_page_that_obeys_no_label() -> None:
    features, _ = made_up(0, apart=1.0, uses=10)
    found = learn_labels(features, {0: "<b>a", 1: "b"})
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert told["given"] == {"0": "<b>a", "1": "b"}
    assert len(told["labels"]) == len(told["confidence"]) == 10
    assert "<b>a" not in found._repr_html_()
    assert "2 labelled by hand" in repr(found)


def test_left_out_labels_are_found_from_the_others_where_they_mean_something() -> None:
    random = np.random.default_rng(0)
    own = random.integers(2, size=60)
    features = np.eye(2)[own] + 0.1 * random.normal(size=(60, 2))
    labels = {number: f"sense {own[number]}" for number in range(0, 60, 3)}
    assert labels_when_left_out(features, labels) == labels
    mixed = dict(zip(labels, random.permutation([*labels.values()]).tolist(), strict=True))
    again = labels_when_left_out(features, mixed)
    assert sum(again[n] == mixed[n] for n in mixed) < 16


def test_uses_drawn_together_are_between_themselves_and_those_nearest() -> None:
    random = np.random.default_rng(0)
    true = np.arange(60) % 2
    features = (np.eye(2, 8)[true] + 0.3 * random.normal(size=(60, 8))).astype(np.float32)
    drawn = draw_together(features)
    assert np.allclose(np.linalg.norm(drawn, axis=1), 1, atol=1e-5)

    def spread(rows: npt.NDArray[np.float32]) -> float:
        """Of how unlike its own kind a use is, beside the other kind."""
        same = rows @ rows.T
        inside = same[true[:, None] == true].mean()
        return float(inside - same[true[:, None] != true].mean())

    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    assert spread(drawn) > spread(unit - unit.mean(axis=0)) + 0.1


@pytest.mark.parametrize("uses", [1, 2, 7, 600])
def test_any_number_of_uses_is_drawn_together(uses: int) -> None:
    features = np.random.default_rng(0).normal(size=(uses, 5)).astype(np.float32)
    drawn = draw_together(features)
    assert drawn.shape == features.shape
    assert np.isfinite(drawn).all()


def test_what_is_drawn_together_does_not_depend_on_the_order_of_uses() -> None:
    features = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    turned = np.random.default_rng(1).permutation(40)
    assert np.allclose(draw_together(features)[turned], draw_together(features[turned]), atol=1e-5)


def test_the_first_lines_to_label_are_of_every_sense() -> None:
    features, true = made_up(0, apart=1.0, senses=4)
    first = first_to_label(features, 6)
    assert len(set(first)) == 6
    assert set(true[first]) == {0, 1, 2, 3}
    assert first_to_label(features, 6) == first


def test_of_copies_one_line_is_offered() -> None:
    features = np.repeat(np.eye(3, dtype=np.float32), 10, axis=0)
    assert len(first_to_label(features, 6)) == 3
    assert first_to_label(np.empty((0, 3), np.float32), 6) == []


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
