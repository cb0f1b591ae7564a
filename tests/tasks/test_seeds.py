"""Tasks trained with several seeds, found in their folder."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from polyseme.errors import ModelError
from polyseme.tasks import seeds
from polyseme.tasks.seeds import SeedComparison, seed_folder
from polyseme.tasks.task import best_in, is_task, trained_in
from tasks.making import config_of, examples_for, task_of


def save_seeds(folder: Path, models: dict[str, Path], *dev: float) -> None:
    """Untrained tasks that say they are so good on the development data."""
    task, _ = task_of(config_of("pairs, static", models, folder / "cache"), examples_for("pairs"))
    for seed, value in enumerate(dev, start=1):
        replace(task, metadata={"dev": value}).save(seed_folder(folder, seed))


def test_the_best_is_that_with_the_highest_measure(models: dict[str, Path], tmp_path: Path) -> None:
    save_seeds(tmp_path, models, 0.25, 0.75, 0.5)
    assert best_in(tmp_path) == tmp_path / "seed-2"
    assert best_in(tmp_path / "seed-3") == tmp_path / "seed-3"


def test_seeds_come_in_the_order_of_their_numbers(models: dict[str, Path], tmp_path: Path) -> None:
    save_seeds(tmp_path, models, *[0.5] * 11)
    assert [path.name for path in trained_in(tmp_path)] == [f"seed-{k}" for k in range(1, 12)]
    assert best_in(tmp_path) == tmp_path / "seed-1"


def test_a_folder_without_a_finished_task_is_told(tmp_path: Path) -> None:
    (tmp_path / "seed-1").mkdir()
    assert not is_task(tmp_path)
    with pytest.raises(ModelError, match=r"was interrupted.*a task was expected"):
        best_in(tmp_path)


def test_seeds_are_compared_by_all_ways_to_deal_them() -> None:
    found = SeedComparison.of([0.50, 0.52, 0.51], [0.60, 0.61, 0.59])
    assert found is not None
    assert found.difference == pytest.approx(0.09)
    assert found.standard_error == pytest.approx(0.01 * (2 / 3) ** 0.5)
    assert found.p_value == pytest.approx(2 / 20)  # of 20 ways, this one and its mirror
    assert SeedComparison.of([0.5], [0.6, 0.7]) is None
    same = SeedComparison.of([0.5, 0.5], [0.5, 0.5])
    assert same is not None
    assert same.p_value == 1.0


def test_equal_variants_are_told_apart_as_rarely_as_p_says() -> None:
    random = np.random.default_rng(1)
    found = [SeedComparison.of(*random.normal(size=(2, 5)).tolist()) for _ in range(200)]
    share = np.mean([each is not None and each.p_value <= 0.05 for each in found])
    assert 0.01 <= share <= 0.1


def test_of_very_many_ways_a_sample_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = [0.1, 0.2, 0.3, 0.4, 0.5], [0.3, 0.4, 0.5, 0.6, 0.7]
    exact = SeedComparison.of(first, second)
    monkeypatch.setattr(seeds, "_WAYS", 200)
    drawn = SeedComparison.of(first, second)
    assert exact is not None
    assert drawn is not None
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.25)
    assert drawn.p_value >= 1 / 21
