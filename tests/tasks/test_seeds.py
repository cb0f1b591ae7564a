"""Tasks trained with several seeds, found in their folder."""

from dataclasses import replace
from pathlib import Path

import pytest

from polyseme.errors import ModelError
from polyseme.tasks.folder import best_in, is_task, trained_in
from polyseme.tasks.seeds import MeanStd, seed_folder
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
    with pytest.raises(ModelError, match=r"stopped before its end.*a task was expected"):
        best_in(tmp_path)


def test_a_standard_deviation_needs_two_seeds() -> None:
    assert str(MeanStd.of([0.5])) == "50.00"
    assert str(MeanStd.of([0.5, 0.52])) == "51.00 ± 1.41"
