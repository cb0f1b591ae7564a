"""The learning rate over a run."""

import pytest

from polyseme.training.schedule import learning_rate_at
from training.toy import settings


def rates(**others: object) -> list[float]:
    config = settings(100, learning_rate=1.0, **others)
    return [learning_rate_at(step, config) for step in range(100)]


@pytest.mark.parametrize("decay", ["cosine", "linear", "none"])
def test_the_rate_rises_evenly_to_its_highest(decay: str) -> None:
    rising = rates(warmup_ratio=0.1, decay=decay)[:10]
    assert rising == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


def test_the_cosine_is_half_way_down_half_way_through() -> None:
    assert rates(warmup_ratio=0.0, decay="cosine")[50] == pytest.approx(0.5)
    assert 0 < rates(warmup_ratio=0.0, decay="cosine")[-1] < 0.001


def test_the_line_is_straight() -> None:
    assert rates(warmup_ratio=0.0, decay="linear")[25] == pytest.approx(0.75)


def test_without_decay_the_rate_stays() -> None:
    assert set(rates(warmup_ratio=0.0, decay="none")) == {1.0}


def test_a_run_may_be_all_warm_up() -> None:
    assert rates(warmup_ratio=1.0)[-1] == pytest.approx(1.0)
