"""Labels and their numbers."""

import pytest

from polyseme.errors import InputError
from polyseme.tasks.families.classification import (
    Classification,
    ClassificationConfig,
    Classified,
)
from polyseme.tasks.families.labels import MAX_LABELS, Labels

FAMILY = Classification(ClassificationConfig())


def test_names_and_numbers_are_each_other_s_reverse() -> None:
    labels = FAMILY.fit([Classified(("a",), name) for name in ("good", "bad", "good")]).labels
    assert labels.names == ("bad", "good")
    assert labels.encode(["good", "bad"]).tolist() == [1, 0]
    assert labels.decode([1, 0]) == ("good", "bad")


def test_labels_of_a_folder_are_names_and_not_too_many() -> None:
    with pytest.raises(ValueError, match="not text"):
        Labels.from_json(["a", 1])  # type: ignore[list-item]
    with pytest.raises(InputError, match=r"65,537 labels"):
        Labels.from_json([str(number) for number in range(MAX_LABELS + 1)])


def test_a_label_of_a_text_is_no_span_whatever_it_looks_like() -> None:
    examples = [Classified(("a",), "I-x"), Classified(("b",), "O")]
    family = FAMILY.fit(examples)
    assert family.labels.names == ("I-x", "O")
    predicted = [family.predicted(example, 0) for example in examples]
    assert [each.label for each in predicted] == ["I-x", "I-x"]
    assert family.score(examples, predicted).value("accuracy") == 0.5


def test_probabilities_are_told_by_name_and_shown_beside_the_label() -> None:
    examples = [Classified(("a", "b"), "good"), Classified(("c",), "bad")]
    family = FAMILY.fit(examples)
    found = family.with_probabilities(family.predicted(examples[0], 1), {1: 0.875, 0: 0.125})
    assert found.as_json() == {
        "texts": ["a b"],
        "label": "good",
        "probabilities": {"good": 0.875, "bad": 0.125},
    }
    assert "good 0.88" in repr(found)
    assert "0.88" in found._repr_html_()
    assert str(found.__rich__()) == "good 0.88  a b"
    assert "probabilities" not in family.predicted(examples[0], 1).as_json()
