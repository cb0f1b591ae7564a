"""The map of uses: neighbours stay neighbours, the same every time, any number of uses."""

import sys

import numpy as np
import pytest

from polyseme.meanings.groups.grouping import unit_length
from polyseme.meanings.use_map import Floats, lay_out, lay_out_aside


def planted(size: int, *, groups: int = 3, seed: int = 0) -> tuple[Floats, list[int]]:
    random = np.random.default_rng(seed)
    gold = random.integers(groups, size=size)
    points = 3 * random.normal(size=(groups, 60))
    noisy = points[gold] + random.normal(size=(size, 60))
    return unit_length(noisy.astype(np.float32)), gold.tolist()


def share_of_neighbours_in_the_same_group(places: Floats, gold: list[int]) -> float:
    apart = ((places[:, None] - places[None]) ** 2).sum(axis=2)
    np.fill_diagonal(apart, np.inf)
    nearest = apart.argmin(axis=1)
    return float(np.mean([gold[n] == gold[m] for n, m in enumerate(nearest)]))


@pytest.fixture(scope="module")
def places() -> Floats:
    return lay_out(planted(90)[0])


def test_neighbours_on_the_map_are_of_one_group(places: Floats) -> None:
    gold = planted(90)[1]
    assert places.shape == (90, 2)
    assert share_of_neighbours_in_the_same_group(places, gold) > 0.95


def test_shuffled_places_have_no_such_neighbours(places: Floats) -> None:
    """The control of the test above."""
    mixed = np.random.default_rng(0).permutation(places)
    assert share_of_neighbours_in_the_same_group(mixed, planted(90)[1]) < 0.6


def test_the_map_fills_the_square_from_minus_one_to_one(places: Floats) -> None:
    assert np.abs(places).max() == pytest.approx(1.0)
    assert np.allclose(places.max(axis=0), -places.min(axis=0), atol=1e-5)  # about the middle


def test_uses_beyond_the_limit_are_placed_among_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyseme.meanings.use_map.MAX_FITTED", 60)
    vectors, gold = planted(200)
    places = lay_out(vectors)
    assert np.isfinite(places).all()
    assert share_of_neighbours_in_the_same_group(places, gold) > 0.95


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 6])
def test_few_uses_have_places_too(size: int) -> None:
    places = lay_out(planted(size)[0])
    assert places.shape == (size, 2)
    assert np.isfinite(places).all()


def test_another_process_finds_the_same_places(
    places: Floats, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = planted(90)[0]
    with monkeypatch.context() as patched:
        patched.setattr("polyseme.meanings.use_map.lay_out", None)  # not in this one
        assert np.array_equal(lay_out_aside(vectors), places)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")  # where no process can be had
    assert np.array_equal(lay_out_aside(vectors), places)
