"""BLEU and chrF from sums of n-grams, against sacrebleu's own for a whole corpus."""

from collections import Counter

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from polyseme.tasks.measures import Tokenize, score_texts

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "dog", "ran", "far"]
CHARACTERS = "天地玄黄宇宙洪荒日月，。"


def texts(random: np.random.Generator, number: int, tokenize: Tokenize) -> list[str]:
    known = WORDS if tokenize == "none" else list(CHARACTERS)
    joined = " " if tokenize == "none" else ""
    return [
        joined.join(random.choice(known, size=random.integers(0, 12)).tolist())
        for _ in range(number)
    ]


@pytest.mark.parametrize("tokenize", ["none", "zh"])
@pytest.mark.parametrize("seed", range(8))
def test_both_are_those_of_sacrebleu_for_the_corpus(tokenize: Tokenize, seed: int) -> None:
    random = np.random.default_rng(seed)
    gold = texts(random, 15, tokenize)
    found = [
        wanted if random.random() < 0.5 else other
        for wanted, other in zip(gold, texts(random, 15, tokenize), strict=True)
    ]
    scores = score_texts(gold, found, tokenize)
    bleu = BLEU(tokenize=tokenize, force=True).corpus_score(found, [gold]).score
    assert scores.value("bleu") == pytest.approx(bleu / 100)
    assert scores.value("chrf") == pytest.approx(CHRF().corpus_score(found, [gold]).score / 100)


def test_a_case_worked_out_by_hand() -> None:
    scores = score_texts(["the cat sat on a mat"], ["the cat sat on the mat"], "none")
    # 5 of 6 words, 3 of 5 pairs, 2 of 4 triples, 1 of 3 of four words; as long as the gold.
    expected = (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** (1 / 4)
    assert scores.value("bleu") == pytest.approx(expected)
    same = Counter("abc") & Counter("abx")
    letters = score_texts(["abc"], ["abx"], "none")
    assert letters.characters[0, 0].tolist() == [3, 3, same.total()]
    # chrF: precision = recall over the three orders that there are: 2/3, 1/2, 0.
    assert letters.value("chrf") == pytest.approx((2 / 3 + 1 / 2) / 3)


def test_scores_follow_each_other_and_other_examples_are_noticed() -> None:
    both = score_texts(["a b c", "d"], ["a b", "d"], "none")
    one, two = score_texts(["a b c"], ["a b"], "none"), score_texts(["d"], ["d"], "none")
    joined = one.concat([two])
    assert joined.value("bleu") == both.value("bleu")
    assert joined.has_examples_of(both)
    assert not one.has_examples_of(two)
    assert both.tables()["by_measure"][0]["length"] == pytest.approx(3 / 4)
