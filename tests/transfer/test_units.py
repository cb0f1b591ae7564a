"""Labels at characters, vectors at words."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from vectors.bulk_cases import Case, make_case

from polyseme.config import build
from polyseme.errors import ModelError
from polyseme.files import canonical_json
from polyseme.transfer.feed import Feed, FeedConfig, load_model
from polyseme.transfer.sentences import Sentences
from polyseme.transfer.units import UnitsConfig, WordFinder

UNITS = [list("word1 word2"), list("word3")]


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A model whose words stand between spaces."""
    return make_case(tmp_path_factory.mktemp("units"))


def feed_of(case: Case, cache: Path, kind: str) -> Feed:
    model: dict[str, Any] = {"kind": kind, "model": case.model}
    if kind == "frozen":
        model["cache"] = {"folder": cache}
    torch.manual_seed(5)
    values = {
        "units": {"words_like": case.model, "width": 5},
        "words": {"vectors": {"kind": "model", "model": case.model}},
        "model": model,
        "mix": {"dropout": 0},
    }
    return Feed.new(build(FeedConfig, values), {u for s in UNITS for u in s}, device="cpu").eval()


def test_words_are_found_in_joined_characters(case: Case) -> None:
    finder = WordFinder(UnitsConfig(words_like=case.model))
    spread = finder.find(Sentences(UNITS))
    assert spread.sentences.words == [["word1", "word2"], ["word3"]]
    # The space, in no word, goes with the one before it.
    assert spread.places(np.array([0])).tolist() == [[0] * 6 + [1] * 5]
    assert spread.places(np.array([1, 0]))[0].tolist() == [0] * 11


def test_models_and_vectors_may_be_moved(case: Case, tmp_path: Path) -> None:
    told = feed_of(case, tmp_path, "frozen").fingerprint()
    moved = replace(case, model=Path(shutil.copytree(case.model, tmp_path / "moved")))
    assert feed_of(moved, tmp_path, "frozen").fingerprint() == told
    assert str(case.model) not in canonical_json(told)
    assert told["words_found"]["settings"]["language"] == "en"


def test_a_sentence_of_spaces_is_its_own_words(case: Case) -> None:
    spread = WordFinder(UnitsConfig(words_like=case.model)).find(Sentences([[" ", "\u3000"]]))
    assert spread.sentences.words == [[" ", "\u3000"]]
    assert spread.places(np.array([0])).tolist() == [[0, 1]]


@pytest.mark.parametrize("kind", ["frozen", "finetuned"])
def test_a_character_has_its_word_s_vectors_and_its_own(
    case: Case, tmp_path: Path, kind: str
) -> None:
    feed = feed_of(case, tmp_path, kind)
    without = build(FeedConfig, {**feed.config.model_dump(), "units": None})
    words = Feed.new(without, device="cpu").eval()
    with torch.no_grad():
        fed = feed(feed.prepare(UNITS).gather([1, 0]))
        expected = words(words.prepare([["word1", "word2"], ["word3"]]).gather([1, 0]))
    assert fed.mask.sum(dim=1).tolist() == [5, 11]
    own, taken = fed.first.split([5, fed.first.shape[-1] - 5], dim=-1)
    assert torch.allclose(taken[1, :6], expected.first[1, 0].expand(6, -1), atol=1e-5)
    assert torch.allclose(taken[1, 6:], expected.first[1, 1].expand(5, -1), atol=1e-5)
    assert torch.allclose(taken[0, :5], expected.first[0, 0].expand(5, -1), atol=1e-5)
    assert not fed.first[0, 5:].any()
    assert torch.equal(own[1, 0], own[0, 0])  # both are a w
    assert not torch.allclose(own[1, 0], own[1, 1])


def test_a_share_of_a_batch_is_as_if_gathered_alone(case: Case, tmp_path: Path) -> None:
    for kind in ("frozen", "finetuned"):
        feed = feed_of(case, tmp_path, kind)
        supply = feed.prepare(UNITS)
        with torch.no_grad():
            part = feed(supply.gather([0, 1]).select(torch.tensor([1])))
            alone = feed(supply.gather([1]))
        assert torch.allclose(part.first, alone.first, atol=1e-5)


def test_what_is_kept_rebuilds_the_table_of_characters(case: Case, tmp_path: Path) -> None:
    feed = feed_of(case, tmp_path, "frozen")
    again = Feed.of(feed.config, feed.known, load_model(feed.config, "cpu"))
    again.load_state_dict(feed.state_dict())
    with torch.no_grad():
        fed = [each.eval()(each.prepare(UNITS).gather([0])) for each in (feed, again)]
    assert torch.equal(fed[0].first, fed[1].first)


def test_a_model_that_cannot_split_text_is_refused(models: dict[str, Path]) -> None:
    with pytest.raises(ModelError, match=r"feed\.units\.words_like"):
        WordFinder(UnitsConfig(words_like=models["elmo"]))
