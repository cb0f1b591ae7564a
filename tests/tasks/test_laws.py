"""What holds for every task, whatever its embeddings."""

import re
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from polyseme.embedding.embedder import Embedder
from polyseme.errors import InputError, TrainingError
from polyseme.progress import NullProgress
from polyseme.tasks import training as train_module_file
from polyseme.tasks.embeddings.finetuned import FineTunedConfig
from polyseme.tasks.families.family import Example
from polyseme.tasks.task import Task
from polyseme.tasks.texts import TextReader
from polyseme.tasks.training import Splits, TaskTraining, train_task
from polyseme.training import TrainingConfig
from polyseme.training.optimizer import build_optimizer
from tasks.making import TASKS, config_of, examples_for, task_of

NAMES = list(TASKS)
ONE_OF_EACH_FAMILY = [  # the first
    *{told["network"]["kind"]: name for name, told in reversed(TASKS.items())}.values()
]
each_task = pytest.mark.parametrize("name", NAMES)


def loss_of(task: Task, data: Any, chosen: list[int]) -> float:
    """What the first example of a batch loses."""
    batch = data.batch(np.array(chosen))
    with torch.no_grad():
        inputs = task.module.embeddings(batch.features)
        return float(task.module.network.losses(inputs, batch)[0])


def is_like(one: Any, other: Any) -> bool:
    """The same, but for the last digits of numbers."""
    if isinstance(one, float):
        return bool(one == pytest.approx(other, rel=1e-4, abs=1e-5))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_like(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_like, one, other))
    return bool(one == other)


@each_task
def test_what_is_found_for_an_example_does_not_depend_on_its_company(
    name: str, models: dict[str, Path], tmp_path: Path
) -> None:
    task, data = task_of(config_of(name, models, tmp_path), examples_for(name))
    task.module.eval()
    longest = int(data.lengths.argmax())
    for number in range(4):
        beside = loss_of(task, data, [number, longest, 7])
        assert loss_of(task, data, [number]) == pytest.approx(beside, rel=1e-4, abs=1e-5)
    for found, example in zip(task.decode(data), data.examples, strict=True):
        [alone] = task.decode(task.data([example]))
        assert is_like(found.as_json(), alone.as_json())


@pytest.mark.parametrize("name", ONE_OF_EACH_FAMILY)
def test_a_megabyte_is_read_in_bounded_parts_or_refused_and_so_is_nothing(
    name: str, models: dict[str, Path], tmp_path: Path
) -> None:
    task, _ = task_of(config_of(name, models, tmp_path), examples_for(name))
    family, reader = task.family, TextReader(Path("en"))
    others = {None: ("one", "two"), 1: (), 2: ("one",)}[family.num_texts]
    megabyte = "water flows on and on. " * ((1 << 20) // 23)
    found = read_or_refuse(family, (*others, megabyte), reader)
    if isinstance(found, str):
        assert re.search(r"words; up to [\d,]+ are labelled at once", found)
    else:
        rows = family.prepare(found, task.module.embeddings, use_cache=False).features.lengths
        assert rows.max() < 5_000
        assert rows.sum() < 20_000
    nothing = read_or_refuse(family, (*others, " \n "), reader)
    assert nothing == [] or "no word" in nothing


def read_or_refuse(family: Any, texts: tuple[str, ...], reader: TextReader) -> list[Example] | str:
    """The first examples of texts, or what is said against them."""
    try:
        return list(islice(family.of_texts(texts, reader), 8))
    except InputError as error:
        return str(error)


@each_task
def test_a_task_saved_and_loaded_finds_the_same(
    name: str, models: dict[str, Path], tmp_path: Path
) -> None:
    examples = examples_for(name)
    task, _ = task_of(config_of(name, models, tmp_path / "cache"), examples)
    task.module.eval()
    task.save(tmp_path / "task")
    loaded = Task.load(tmp_path / "task")
    assert loaded.config == task.config
    assert loaded.family == task.family
    kept = task.module.state_dict()
    assert all(torch.equal(kept[k], w) for k, w in loaded.module.state_dict().items())
    assert loaded.decode(loaded.data(examples)) == task.decode(task.data(examples))


@each_task
def test_all_that_is_trained_is_in_the_optimizer_and_in_the_file(
    name: str, models: dict[str, Path], tmp_path: Path
) -> None:
    task, data = task_of(config_of(name, models, tmp_path / "cache"), examples_for(name))
    train_module = TaskTraining(task, data, data, seed=1)
    optimizer = build_optimizer(task.module, TrainingConfig(steps=1), train_module.param_groups())
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    batch, _ = next(iter(train_module.batches({})))
    task.module(batch)["loss"].backward()
    task.save(tmp_path / "task")
    saved = load_file(tmp_path / "task" / "model.safetensors")
    moved = {n: p for n, p in task.module.named_parameters() if p.grad is not None}
    assert moved
    for parameter_name, parameter in moved.items():
        assert id(parameter) in held, parameter_name
        assert torch.equal(saved[parameter_name], parameter.detach()), parameter_name
    # A rate that names no parameter would be a rate that nobody follows.
    assert train_module.param_groups().keys() <= dict(task.module.named_parameters()).keys()


@each_task
def test_a_rule_is_learnt_by_heart(name: str, models: dict[str, Path], tmp_path: Path) -> None:
    config = config_of(name, models, tmp_path / "cache", epochs=60, patience=30)
    examples = examples_for(name)
    task = train_task(
        config, Splits(examples, examples, {}), tmp_path / "t", seed=1, progress=NullProgress()
    )
    assert task.metadata["dev"] >= 0.95


@pytest.mark.parametrize("name", ["names, frozen", "texts, frozen", "pairs, frozen"])
def test_a_frozen_model_stays_as_it_was_to_the_last_bit(
    name: str, models: dict[str, Path], tmp_path: Path
) -> None:
    examples = examples_for(name)
    config = config_of(name, models, tmp_path / "cache")
    before = load_file(models["elmo"] / "model.safetensors")
    task = train_task(
        config, Splits(examples, examples, {}), tmp_path / "t", seed=1, progress=NullProgress()
    )
    frozen = task.module.embeddings._frozen
    assert frozen is not None
    assert isinstance(frozen.embedder, Embedder)
    after = frozen.embedder.model.network.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(before[key], weight) for key, weight in after.items())
    assert not any(key.startswith("embeddings.finetuned") for key in task.module.state_dict())


@pytest.mark.parametrize("name", ["names, finetuned", "sequences, gpt", "sequence pairs, bert"])
def test_a_fine_tuned_model_moves_and_its_folder_does_not(
    name: str, models: dict[str, Path], tmp_path: Path
) -> None:
    examples = examples_for(name)
    config = config_of(name, models, tmp_path / "cache")
    assert isinstance(config.embeddings.model, FineTunedConfig)
    path = config.embeddings.model.model / "model.safetensors"
    content, before = path.read_bytes(), load_file(path)
    task = train_task(
        config, Splits(examples, examples, {}), tmp_path / "t", seed=1, progress=NullProgress()
    )
    finetuned = task.module.embeddings.finetuned
    assert finetuned is not None
    still = [
        key
        for key, weight in finetuned.encoder.state_dict(prefix="encoder.").items()
        if torch.equal(before[key], weight)
    ]
    assert still == []
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "name", ["names, frozen", "senses", "pairs, static", "sequence pairs, bert"]
)
def test_stopped_and_continued_ends_with_the_same_bits(
    name: str, models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = examples_for(name)
    splits = Splits(examples, examples, {})
    config = config_of(name, models, tmp_path / "cache", save_minutes=1e-9, epochs=3)
    if name == "senses":  # which layers learn depends on the step
        told = {"unfreeze_after": 1, "unfreeze_every": 5}
        assert isinstance(config.embeddings.model, FineTunedConfig)
        model = config.embeddings.model.model_copy(update=told)
        embeddings = config.embeddings.model_copy(update={"model": model})
        config = config.model_copy(update={"embeddings": embeddings})

    def run(folder: str) -> dict[str, Tensor]:
        task = train_task(config, splits, tmp_path / folder, seed=1, progress=NullProgress())
        return task.module.state_dict()

    whole = run("whole")
    batches = train_module_file.TaskTraining._batches

    def dying(self: TaskTraining, position: Any) -> Any:
        for number, item in enumerate(batches(self, position)):
            if number == 7:
                raise TrainingError("The machine stopped.")
            yield item

    monkeypatch.setattr(train_module_file.TaskTraining, "_batches", dying)
    with pytest.raises(TrainingError, match="The machine stopped"):
        run("cut")
    monkeypatch.undo()
    found = run("cut")
    assert all(torch.equal(weight, found[key]) for key, weight in whole.items())


@each_task
def test_shares_of_a_batch_lose_as_much_as_the_whole(
    name: str, models: dict[str, Path], tmp_path: Path
) -> None:
    task, data = task_of(config_of(name, models, tmp_path / "cache"), examples_for(name))
    task.module.eval()
    batch = data.batch(np.arange(5), step=0)
    with torch.no_grad():
        whole = task.module(batch)["loss"]
        parts = [task.module(batch.shard(number, 3))["loss"] for number in range(3)]
    assert float(torch.stack(parts).sum()) == pytest.approx(float(whole), rel=1e-4)
    assert sum(len(batch.shard(number, 3)) for number in range(3)) == 5
