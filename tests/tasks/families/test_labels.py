"""Labels and their numbers.

What layers must not do: look at padding.

Two texts, each read in the light of the other.
"""

import pytest
import torch

from polyseme.errors import InputError
from polyseme.tasks.families.classification import (
    Classification,
    ClassificationConfig,
    Classified,
    attend,
)
from polyseme.tasks.families.labels import MAX_LABELS, Attention, Labels, pool

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


def test_padding_is_neither_pooled_nor_attended_to() -> None:
    torch.manual_seed(1)
    vectors = torch.randn(2, 5, 3)
    mask = torch.tensor([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1]]).bool()
    spoilt = vectors.masked_fill(~mask[..., None], 1e6)
    attention = Attention(3)
    for ask in (pool, attention):
        assert torch.equal(ask(vectors * mask[..., None], mask), ask(spoilt, mask))
    assert pool(vectors, mask)[0].tolist() == pytest.approx(
        [*vectors[0, :2].amax(0).tolist(), *vectors[0, :2].mean(0).tolist()]
    )


def test_a_word_finds_its_like_in_the_other_sentence() -> None:
    words = 20 * torch.eye(4)
    first, second = words[[0, 1, 2]], words[[2, 0, 3]]
    vectors, mask = torch.stack([first, second]), torch.ones(2, 3, dtype=torch.bool)
    found = attend(vectors, mask)
    assert torch.allclose(found[0, 0], words[0])  # word 0 stands in the other sentence too
    assert torch.allclose(found[1, 0], words[2])
    assert torch.allclose(found[0, 1], second.mean(0))  # nothing is like word 1
    mask[1, 2] = False
    assert torch.allclose(attend(vectors, mask)[0, 1], second[:2].mean(0))
