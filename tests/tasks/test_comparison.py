"""Ways of feeding one task, and what they are held against."""

from pathlib import Path

import pytest

from polyseme.config import build
from polyseme.errors import ConfigError
from polyseme.tasks.comparison import Row, feed_in
from polyseme.tasks.settings import TaskConfig
from polyseme.transfer.finetuned import FineTunedConfig
from polyseme.transfer.frozen import FrozenConfig

BOTH = {
    "data": {"train": "train", "reader": {"kind": "columns"}},
    "feed": {
        "words": {"vectors": {"kind": "model", "model": "static"}, "spelling": {}, "dropout": 0.2},
        "model": {"kind": "frozen", "model": "elmo", "cache": {"folder": "here"}},
        "place": "both",
    },
    "network": {"kind": "tagging"},
}


def test_ways_differ_in_what_is_fed_and_in_nothing_else() -> None:
    config = build(TaskConfig, BOTH)
    ways = {way: feed_in(config, way) for way in ("none", "static", "frozen", "finetuned")}
    assert ways["frozen"].feed == config.feed
    assert ways["static"].feed.model is None
    assert ways["static"].feed.words == config.feed.words
    none = ways["none"].feed
    assert none.model is None
    assert none.words is not None
    assert none.words.vectors is not None
    assert (none.words.vectors.kind, none.words.trained, none.words.dropout) == ("new", True, 0.2)
    assert isinstance(ways["finetuned"].feed.model, FineTunedConfig)
    assert ways["finetuned"].feed.model.model == Path("elmo")
    for fed in ways.values():
        assert fed.network == config.network
        assert fed.training == config.training
        assert fed.words_like == Path("elmo")  # the same words, whatever feeds the task


def test_a_way_keeps_its_own_settings_where_the_task_has_them() -> None:
    values = {**BOTH, "feed": {"model": {"kind": "finetuned", "model": "elmo", "rate": 0.5}}}
    config = build(TaskConfig, values)
    tuned = feed_in(config, "finetuned").feed.model
    assert isinstance(tuned, FineTunedConfig)
    assert tuned.rate == 0.5
    assert feed_in(config, "frozen").feed.model == FrozenConfig(model=Path("elmo"))


def test_a_way_that_needs_what_the_task_lacks_is_refused() -> None:
    without_words = build(TaskConfig, {**BOTH, "feed": {"model": BOTH["feed"]["model"]}})  # type: ignore[index]
    with pytest.raises(ConfigError, match=r"feed\.words"):
        feed_in(without_words, "static")
    without_model = build(TaskConfig, {**BOTH, "feed": {"words": BOTH["feed"]["words"]}})  # type: ignore[index]
    with pytest.raises(ConfigError, match=r"feed\.model"):
        feed_in(without_model, "finetuned")


def test_a_task_on_characters_learned_alone_has_no_words() -> None:
    units = {"words_like": "elmo"}
    config = build(TaskConfig, {**BOTH, "feed": {**BOTH["feed"], "units": units}})  # type: ignore[dict-item]
    none = feed_in(config, "none").feed
    assert (none.words, none.model, none.units) == (None, None, config.feed.units)
    assert feed_in(config, "static").feed.units == config.feed.units


def test_error_reduction_is_the_part_of_errors_that_is_gone() -> None:
    first, second = Row("static", [0.8, 0.8], [], None), Row("frozen", [0.84, 0.86], [], None)
    assert second.error_reduction(first) == pytest.approx(0.25)
    assert str(second.spread) == "85.00 ± 1.41"
