"""The words expected in the place of a word, and which word is meant."""

import numpy as np
import pytest
import torch
from embedding.making import reading, tiny
from laws.cases import WORDS, make
from pretraining.making import rule_text

from polyseme.data.batch import FIRST_WORD
from polyseme.embedding.embedder import Embedder
from polyseme.errors import InputError, ModelError
from polyseme.meanings.concordance.marked_use import MarkedUse, read_marked
from polyseme.meanings.substitutes import find_substitutes
from polyseme.objectives.bidirectional import Causal


@pytest.fixture(scope="module")
def english() -> Embedder:
    return reading(rule_text(), language="en")


def test_the_word_between_asterisks_is_meant(english: Embedder) -> None:
    use = read_marked(english, "It rains. The old *cat* purrs.")
    assert use == MarkedUse(("The", "old", "cat", "purrs", "."), 2, 3)
    assert use.form == "cat"


def test_several_words_may_be_marked(english: Embedder) -> None:
    assert read_marked(english, "The *old cat* purrs.") == MarkedUse(
        ("The", "old", "cat", "purrs", "."), 1, 3
    )


def test_a_word_may_be_named_instead(english: Embedder) -> None:
    use = read_marked(english, "The old cat purrs and concatenates.", "Cat")
    assert (use.begin, use.end) == (2, 3)


def test_chinese_has_no_spaces_around_what_is_marked() -> None:
    chinese = reading("我 吃 苹果", language="zh", segmenter="characters")
    assert read_marked(chinese, "我吃*苹果*。") == MarkedUse(("我", "吃", "苹", "果", "。"), 2, 4)
    assert read_marked(chinese, "我吃苹果。", "苹果") == MarkedUse(
        ("我", "吃", "苹", "果", "。"), 2, 4
    )


@pytest.mark.parametrize(
    ("text", "word", "said"),
    [
        ("The cat purrs.", "", "none is marked"),
        ("The *cat* and the *dog*.", "", "2 are marked"),
        ("The cat and the cat.", "cat", "occurs 2 times"),
        ("The cat.", "dog", "occurs 0 times"),
    ],
)
def test_what_is_not_clear_is_asked_for(english: Embedder, text: str, word: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_marked(english, text, word)


def test_probabilities_of_all_words_sum_to_one_and_fall(english: Embedder) -> None:
    use = read_marked(english, "The old *cat* purrs.")
    found = find_substitutes(english, use, 10_000)
    probabilities = [probability for _, probability in found.words]
    assert sum(probabilities) == pytest.approx(1, abs=1e-6)
    assert probabilities == sorted(probabilities, reverse=True)
    rank, own = found.own or (0, 0.0)
    word, probability = found.words[rank - 1]
    assert word == "cat"
    assert probability == pytest.approx(own)


def test_the_word_itself_changes_nothing(english: Embedder) -> None:
    one = find_substitutes(english, read_marked(english, "The old *cat* purrs."), 3)
    two = find_substitutes(english, read_marked(english, "The old *zzz* purrs."), 3)
    assert [word for word, _ in one.words] == [word for word, _ in two.words]
    assert np.allclose([p for _, p in one.words], [p for _, p in two.words], atol=1e-6)
    assert two.own is None  # no word of the model's


def test_from_one_side_it_is_the_softmax_of_that_side() -> None:
    embedder = tiny("lstm forward")
    model = embedder.model
    objective = model.network.objective
    assert isinstance(objective, Causal)
    words = tuple(model.vocabulary.words.to_pylist()[:4])
    found = find_substitutes(embedder, MarkedUse(words, 3, 4), 3)
    with torch.no_grad():
        top = model.network.encoder(model.vocabulary.batch([words])).top[:, 3]
        everything = objective.softmax.top_k(top, 9, table=model.network.word_embeddings)
    first = model.vocabulary.size - len(model.vocabulary.words)
    ids = [number - first for number in everything[1][0].tolist() if number >= first][:3]
    known = model.vocabulary.words.to_pylist()
    assert [word for word, _ in found.words] == [known[number] for number in ids]


def test_a_model_that_sees_the_word_is_refused() -> None:
    with pytest.raises(ModelError, match="has seen the word"):
        find_substitutes(tiny("bert"), MarkedUse(("a", "b"), 0, 1))


def test_with_a_cloze_head_its_probabilities_are_told() -> None:
    """Found another way: the network predicts the whole sentence, the word among the others."""
    embedder = Embedder(make("lstm", "separate", "cloze", "word", "full").model(), device="cpu")
    model, words = embedder.model, tuple(WORDS[:4])
    found = find_substitutes(embedder, MarkedUse(words, 1, 2), number=3)
    objective = model.network.objective
    targets = objective.make_targets(
        model.vocabulary.batch([words]), model.vocabulary, np.random.default_rng(0)
    )
    with torch.no_grad():
        prediction = objective.predict(model.network.encoder, targets)["cloze"]
        vector = prediction.vectors[1:2]
        logits = prediction.head.logits(vector, torch.arange(model.vocabulary.size), table=None)
    shares = logits[0, FIRST_WORD:].double().softmax(dim=0)
    best = shares.topk(3)
    assert [word for word, _ in found.words] == [WORDS[index] for index in best.indices.tolist()]
    assert [share for _, share in found.words] == pytest.approx(best.values.tolist(), rel=1e-4)
    assert found.own is not None
    assert found.own[1] == pytest.approx(float(shares[1]), rel=1e-4)
