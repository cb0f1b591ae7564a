"""From examples to a finished folder, once.

A task's batches as the loop sees them: in another order in every epoch and with every seed.
"""

import itertools
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from polyseme.config import build, overlay
from polyseme.errors import ModelError, TrainingError
from polyseme.progress import NullProgress
from polyseme.storage.files import sha256_of
from polyseme.tasks.task import Task, TaskConfig, TaskTrainingConfig
from polyseme.tasks.training import Splits, TaskTraining, train_task, write_report
from polyseme.training.optimizer import Position
from polyseme.training.step import LossSpikeGuard
from tasks.making import config_of, examples_for

NAME = "names, frozen"


def splits() -> Splits:
    return Splits(examples_for(NAME), examples_for(NAME, 8, seed=9), {})


@pytest.fixture(scope="module")
def config(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> TaskConfig:
    return config_of(NAME, models, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def trained(config: TaskConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "task"
    train_task(config, splits(), folder, seed=1, progress=NullProgress())
    return folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return Path(shutil.copytree(trained, tmp_path / "task"))


def test_what_is_finished_is_not_done_again(config: TaskConfig, folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    again = train_task(config, splits(), folder, seed=1, progress=NullProgress())
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert again.metadata["seed"] == 1
    assert not (folder / "checkpoints").exists()


def test_other_data_or_another_seed_is_not_taken_for_the_same(
    config: TaskConfig, folder: Path
) -> None:
    other = Splits(examples_for(NAME, seed=6), splits().dev, {})
    with pytest.raises(ModelError, match="trained with other settings, data or words"):
        train_task(config, other, folder, seed=1, progress=NullProgress())
    with pytest.raises(ModelError, match="trained with other settings, data or words"):
        train_task(config, splits(), folder, seed=2, progress=NullProgress())


def test_two_seeds_learn_differently_and_one_seed_learns_the_same(
    config: TaskConfig, folder: Path, tmp_path: Path
) -> None:
    for seed in (1, 2):
        train_task(config, splits(), tmp_path / str(seed), seed=seed, progress=NullProgress())
    hashes = [
        sha256_of(path / "model.safetensors") for path in (folder, tmp_path / "1", tmp_path / "2")
    ]
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize(("every", "steps"), [(1.0, [5, 10]), (0.6, [3, 6, 9, 10]), (9.0, [10])])
def test_development_data_is_measured_as_often_as_asked_and_at_the_end(
    every: float, steps: list[int], models: dict[str, Path], tmp_path: Path
) -> None:
    config = config_of(NAME, models, tmp_path / "cache", measure_every=every)
    train_task(config, splits(), tmp_path / "task", seed=1, progress=NullProgress())
    lines = (tmp_path / "task" / "run.jsonl").read_text(encoding="utf-8").splitlines()
    told = [json.loads(line) for line in lines]
    assert [line["step"] for line in told if "measures" in line] == steps


def test_a_task_stopped_by_a_spike_goes_on_as_the_message_says(
    config: TaskConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []

    def fault(guard: LossSpikeGuard, loss: float, norm: float) -> str | None:
        del guard, loss, norm
        steps.append(1)
        return "the loss spiked" if len(steps) in (4, 5) else None

    monkeypatch.setattr(LossSpikeGuard, "_fault", fault)
    folder = tmp_path / "task"
    with pytest.raises(TrainingError, match="before step 4: the loss spiked") as stopped:
        train_task(config, splits(), folder, seed=1, progress=NullProgress())
    told = str(stopped.value)
    [assignment] = re.findall(r"--set (\S+)", told)
    [lowered] = re.findall(r"a lower training\.(\w+)", told)
    assert lowered in TaskTrainingConfig.model_fields
    changed = build(TaskConfig, overlay(config.model_dump(), assignment))
    task = train_task(changed, splits(), folder, seed=1, progress=NullProgress())
    assert len(steps) == 4 + 7  # ten steps in all, of which one was skipped and three not repeated
    assert task.metadata["epochs"] == 2


def test_a_task_refuses_another_model_than_its_own(folder: Path, models: dict[str, Path]) -> None:
    for other in (models["gpt"], folder / "nowhere"):
        with pytest.raises(ModelError, match=rf"{other} is not it.*--model"):
            Task.load(folder, model=other)


@pytest.mark.parametrize(
    "place",
    ["house/task/seed-1/model", "house/task/model", "house/{name}", "house/models/{name}"],
)
def test_a_task_and_its_model_can_be_moved_together(
    place: str, config: TaskConfig, folder: Path, tmp_path: Path
) -> None:
    assert config.embeddings.model is not None
    old = config.embeddings.model.model
    shutil.copytree(folder, tmp_path / "house/task/seed-1")
    model = tmp_path / place.format(name=old.name)
    shutil.copytree(old, model)
    hidden = old.rename(old.with_name("hidden"))
    try:
        task = Task.load(tmp_path / "house/task/seed-1")
    finally:
        hidden.rename(old)
    assert task.config.embeddings.model is not None
    assert task.config.embeddings.model.model == model


def test_a_model_of_the_right_name_and_other_content_is_not_taken(
    config: TaskConfig, folder: Path, models: dict[str, Path], tmp_path: Path
) -> None:
    assert config.embeddings.model is not None
    old = config.embeddings.model.model
    shutil.copytree(folder, tmp_path / "house/task")
    shutil.copytree(models["gpt"], tmp_path / "house" / old.name)
    hidden = old.rename(old.with_name("hidden"))
    try:
        with pytest.raises(ModelError, match=rf"it was at {old} and is not there now.*--model"):
            Task.load(tmp_path / "house/task")
    finally:
        hidden.rename(old)


@pytest.mark.parametrize("named", ["the same model", "another"])
def test_a_model_that_moved_is_found_where_its_tokenizer_is_used_too(
    named: str, config: TaskConfig, models: dict[str, Path], tmp_path: Path
) -> None:
    assert config.embeddings.model is not None
    old = config.embeddings.model.model
    tokenizer_from = old if named == "the same model" else models["gpt"]
    data = config.data.model_copy(update={"tokenizer_from": tokenizer_from})
    config = config.model_copy(update={"data": data})
    train_task(config, splits(), tmp_path / "task", seed=1, progress=NullProgress())
    moved = Path(shutil.copytree(old, tmp_path / "moved"))
    task = Task.load(tmp_path / "task", model=moved)
    assert task.config.embeddings.model is not None
    assert task.config.embeddings.model.model == moved
    assert task.config.tokenizer_from == (moved if tokenizer_from == old else tokenizer_from)


def test_a_damaged_file_is_refused_by_name(folder: Path) -> None:
    path = folder / "words.json"
    path.write_bytes(path.read_bytes().replace(b"ba", b"bo"))
    with pytest.raises(ModelError, match=r"words\.json is missing or not as it was written"):
        Task.load(folder)


def test_the_report_has_figures_and_pictures(config: TaskConfig, folder: Path) -> None:
    task = train_task(config, splits(), folder, seed=1, progress=NullProgress())
    assert write_report(task, folder, splits().dev) == []
    for name in ("curve.png", "layers.png", "confusion.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
    assert '"dev_by_label"' in (folder / "metrics.json").read_text(encoding="utf-8")
    mixes = task.metadata["mixes"]
    assert set(mixes) == {"input", "output"}
    assert mixes["input"] != mixes["output"]  # each end has learned its own
    assert all(sum(mix["weights"]) == pytest.approx(1.0) for mix in mixes.values())


class Rows:
    """Twelve rows in three batches; a batch is its rows and the number of the step."""

    def shuffled(self, size: int, random: np.random.Generator) -> list[tuple[int, ...]]:
        order = random.permutation(12).tolist()
        return [tuple(order[begin : begin + size]) for begin in range(0, 12, size)]

    def batch(self, chosen: tuple[int, ...], step: int) -> tuple[tuple[int, ...], int]:
        return chosen, step


def batches(position: Position, number: int, seed: int = 1) -> list[Any]:
    task: Any = SimpleNamespace(
        module=None, config=SimpleNamespace(training=SimpleNamespace(batch=4))
    )
    rows: Any = Rows()
    stream = TaskTraining(task, rows, rows, seed=seed).batches(position)
    return list(itertools.islice(stream, number))


def test_every_epoch_has_all_rows_in_an_order_of_its_own_and_of_its_seed() -> None:
    orders = set()
    for seed in (1, 2, 3):
        found = [chosen for (chosen, _), _ in batches({}, 9, seed)]
        for epoch in range(3):
            order = tuple(itertools.chain(*found[3 * epoch : 3 * epoch + 3]))
            assert sorted(order) == list(range(12))
            orders.add(order)
    assert len(orders) == 9


def test_batches_go_on_from_any_position_as_if_never_stopped() -> None:
    whole = batches({}, 8)
    for done in range(1, 8):
        assert batches(whole[done - 1][1], 8 - done) == whole[done:]
