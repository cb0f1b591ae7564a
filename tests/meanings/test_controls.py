"""Control words: their null is uniform, they are measured once, and the verdict is by them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from pretraining.making import tiny_model
from scipy.stats import kstest

from meanings.making import make_corpus
from meanings.test_use_index import make_index
from polyseme.meanings.change.measure import (
    SENTENCES,
    AgainstControls,
    Change,
    Side,
    measure_change,
)
from polyseme.meanings.change.sides import (
    Controls,
    FrequencyBand,
    Sides,
    TwoSides,
    band_of,
    controls_of,
    own_side_share,
)
from polyseme.meanings.concordance.conditions import parse_where
from polyseme.meanings.concordance.search import CorpusColumns
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.features.use_features import UseEncoder, UseFeatures
from polyseme.meanings.index.use_index import load_encoder
from polyseme.text.corpus import Corpus

NUM_USES = 40


def features_of(generator: np.random.Generator, *, is_shifted: float = 0.0) -> UseFeatures:
    """20 uses before and 20 after; of those after, a share stands where no other does."""
    context = generator.normal(size=(NUM_USES, 12)).astype(np.float32)
    shifted = NUM_USES // 2 + np.arange(round(is_shifted * NUM_USES / 2))
    context[shifted] += 4.0
    return UseFeatures(context, np.zeros((NUM_USES, 1), np.float32), None)


def sides_of(number: int = NUM_USES) -> tuple[Any, Any]:
    return np.arange(number // 2), np.arange(number // 2, number)


def some_controls(number: int = 60, seed: int = 0) -> Controls:
    generator = np.random.default_rng(seed)
    shares = {f"w{n}": own_side_share(features_of(generator), 20) for n in range(number)}
    return Controls(False, {20: shares})


def rank(controls: Controls, features: UseFeatures) -> AgainstControls:
    found = controls.rank(features, sides_of(), ["d"] * NUM_USES)
    assert found is not None
    return found


def test_a_word_like_its_controls_has_a_uniform_p() -> None:
    generator = np.random.default_rng(1)
    p_values = [
        rank(some_controls(39, seed), features_of(generator)).p_value for seed in range(200)
    ]
    # Ranks among 40 are steps of 1/40: spread evenly over them.
    spread = np.array(p_values) - generator.random(len(p_values)) / 40
    assert kstest(spread, "uniform").pvalue > 0.01


def test_a_word_that_moved_is_beyond_nearly_all_of_them() -> None:
    found = rank(some_controls(), features_of(np.random.default_rng(9), is_shifted=0.5))
    assert found.below >= 59
    assert found.is_beyond
    assert found.p_value == pytest.approx((61 - found.below) / 61)


def test_the_share_is_that_of_neighbours_counted_one_by_one() -> None:
    generator = np.random.default_rng(2)
    substitutes = np.stack([generator.permutation(60)[:12] for _ in range(30)]).astype(np.int32)
    documents = [n % 6 for n in range(30)]
    empty = np.zeros((30, 1), np.float32)
    found = own_side_share(UseFeatures(empty, empty, substitutes), 12, documents)
    weight = np.log(31 / (1 + np.bincount(substitutes.ravel(), minlength=60))) + 1
    vectors = np.zeros((30, 60))
    for row, words in enumerate(substitutes):
        vectors[row, words] = weight[words]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    own = []
    for row in range(30):
        others = [n for n in range(30) if documents[n] != documents[row]]
        nearest = sorted(others, key=lambda n: -(vectors[row] @ vectors[n]))[:10]
        own += [(n < 12) == (row < 12) for n in nearest]
    assert found == pytest.approx(np.mean(own))


def test_its_own_form_is_no_control_of_a_word() -> None:
    controls = some_controls()
    without = controls.rank(
        features_of(np.random.default_rng(3)), sides_of(), ["d"] * NUM_USES, words=["W7"]
    )
    assert without is not None
    assert without.number == 59


@pytest.mark.parametrize(
    ("counts", "uses"),
    [((19, 500), None), ((20, 500), 20), ((500, 79), 40), ((80, 80), 80), ((9_000, 9_000), 120)],
)
def test_a_band_is_that_of_the_side_where_a_word_is_rarer(
    counts: tuple[int, int], uses: int | None
) -> None:
    band = band_of(counts)
    assert (band and band.uses) == uses
    assert not isinstance(band, FrequencyBand) or band.least <= min(counts) < band.most


def change(groups_before: str, groups_after: str, below: int | None) -> Change:
    generator = np.random.default_rng(0)
    sides = [
        Side(generator.normal(size=(len(groups), 4)), None, groups)
        for groups in (groups_before, groups_after)
    ]
    found = measure_change(*sides, permutations=19)
    beside = None if below is None else AgainstControls(below, 60, 20, 0.6)
    return replace(found, controls=beside, p_value=0.5)


@pytest.mark.parametrize(
    ("after", "below", "verdict", "told"),
    [
        ("a" * 10 + "b" * 40, 58, "changed", "“x” changed more than 58 of 60 words"),
        ("a" * 40 + "b" * 10, 58, "apart", "but no group’s share moved beyond its interval"),
        ("a" * 10 + "b" * 40, 53, "alike", "differ as much as those of ordinary words do"),
        ("a" * 10 + "b" * 40, None, "alike", "Chance alone could explain this difference"),
    ],
)
def test_a_word_changed_if_it_is_beyond_its_controls_and_a_group_moved(
    after: str, below: int | None, verdict: str, told: str
) -> None:
    found = change("a" * 40 + "b" * 10, after, below)
    assert found.verdict == verdict
    key, values = found.sentence("x")
    assert told in SENTENCES[key].format(**values)
    assert json.loads(json.dumps(found.to_json()))["verdict"] == verdict


def two_sides(**metadata: list[str]) -> TwoSides:
    uses = Uses.of([["a", "word"]] * NUM_USES, [(1, 2)] * NUM_USES, metadata)
    return TwoSides(uses, features_of(np.random.default_rng(0)), sides_of(), some_controls())


def test_an_author_of_one_side_is_a_rival_and_a_year_or_period_is_none() -> None:
    authors = ["A", "B", "C", "D", "E"] * 4 + ["Wells"] * 12 + ["A", "B"] * 4
    genres = ["novel"] * NUM_USES
    years = ["1850"] * 20 + ["1900"] * 20
    periods = ["1840–1859"] * 20 + ["1900–1920"] * 20
    found = two_sides(author=authors, genre=genres, year=years, period=periods)
    [rival] = found.rivals(change("ab", "ab", 10))
    assert (rival.side, rival.column, rival.value) == ("after", "author", "Wells")
    assert str(rival) == "60% of the uses after are of one author, Wells."
    by_author = replace(found, told_apart_by=frozenset({"author"}))
    assert by_author.rivals(change("ab", "ab", 10)) == ()


def test_what_is_found_without_a_rival_is_told() -> None:
    """All that moved is of one author: without his uses there is nothing left."""
    parts = [
        features_of(np.random.default_rng(5), is_shifted=1.0),
        features_of(np.random.default_rng(6)),
    ]
    halves = [each.context[:20] for each in parts] + [each.context[20:] for each in parts]
    features = UseFeatures(np.concatenate(halves), np.zeros((80, 1), np.float32), None)
    author = [f"A{n % 5}" for n in range(40)] + ["Wells"] * 20 + [f"A{n % 5}" for n in range(20)]
    uses = Uses.of([["a", "word"]] * 80, [(1, 2)] * 80, {"author": author})
    two = TwoSides(uses, features, sides_of(80), some_controls())
    found = two.measure(["g"] * 80)
    assert found.verdict == "apart"
    [rival] = two.rivals(found)
    assert rival.without is not None
    assert not rival.without.is_beyond
    assert "Without them the uses differ as much as those of ordinary words do." in str(rival)


class ByForm:
    """Describes uses by their sentence, and counts how often it is asked."""

    words: Sequence[str] = ()
    fingerprint = "f" * 64
    layer = None

    def __init__(self) -> None:
        self.described = 0

    def without_syntax(self, features: UseFeatures) -> UseFeatures:
        return features

    def encode(self, uses: Uses, on_use: Callable[[int], None] = print) -> UseFeatures:
        self.described += len(uses)
        context = np.random.default_rng(0).normal(size=(len(uses), 6)).astype(np.float32)
        return UseFeatures(context, context, None)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """30 words, each 25 times a side, in six documents of either; and one that is rarer."""
    words = [f"{a}{b}rd" for a in "bcdfgh" for b in "aeiou"]
    texts = []
    for number in range(12):
        lines = [f"the {word} is {word} ." for word in words for _ in range(2 + (number % 6 == 0))]
        texts.append((" ".join(lines) + " the seldom .", {"year": 1850 + 10 * number}))
    return make_corpus(tmp_path_factory.mktemp("controls"), texts, meta=["year"])


def kept_of(corpus: Corpus) -> set[Path]:
    return set(Path(f"{corpus.folder}.calibration").glob("change-*.json"))


def sides(corpus: Corpus, *, turned: bool = False) -> Sides:
    columns = CorpusColumns(corpus)
    pair = [parse_where(text, columns) for text in ("year<1910", "year>=1910")]
    return Sides(*(reversed(pair) if turned else pair))


def test_control_words_are_measured_once_for_two_sides(corpus: Corpus) -> None:
    encoder = ByForm()
    asked = cast(UseEncoder, encoder)
    found = controls_of(corpus, asked, sides(corpus), (26, 30))
    assert found is not None
    assert found.by_document
    [(uses, shares)] = found.own_side.items()
    assert (uses, len(shares)) == (20, 30)
    assert "seldom" not in shares
    assert encoder.described == 30 * 40
    again = controls_of(corpus, asked, sides(corpus, turned=True), (30, 26))
    assert again == found
    assert encoder.described == 30 * 40
    assert len(kept_of(corpus)) == 1


def test_a_word_as_frequent_as_no_other_has_no_controls(corpus: Corpus) -> None:
    encoder = ByForm()
    asked = cast(UseEncoder, encoder)
    assert controls_of(corpus, asked, sides(corpus), (400, 400)) is None
    assert controls_of(corpus, asked, sides(corpus), (5, 400)) is None
    assert encoder.described == 0


def test_an_index_gives_the_controls_that_its_model_gives(corpus: Corpus, tmp_path: Path) -> None:
    torch.manual_seed(1)
    tiny_model(corpus).save(tmp_path / "model", card="A model for tests.")
    words = [f"{a}{b}rd" for a in "bcdfgh" for b in "aeiou"]
    index = make_index(tmp_path / "model", corpus, tmp_path / "index", index={"words": words})
    kept_before = kept_of(corpus)
    by_index = controls_of(corpus, index.find(corpus, "bard"), sides(corpus), (26, 30))
    assert by_index is not None
    [kept] = kept_of(corpus) - kept_before
    kept.unlink()
    encoder = load_encoder(str(tmp_path / "model"), corpus)
    assert controls_of(corpus, encoder, sides(corpus), (26, 30)) == by_index
    kept.unlink()
    few = make_index(tmp_path / "model", corpus, tmp_path / "few", index={"words": words[:9]})
    assert controls_of(corpus, few.find(corpus, "bard"), sides(corpus), (26, 30)) is None
    assert not kept.exists()  # a model may have more to say
