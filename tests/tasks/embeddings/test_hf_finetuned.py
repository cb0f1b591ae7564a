"""An encoder of Hugging Face that is fine-tuned: what it reads, and every family of tasks on it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from embedding.hf_making import KINDS, SENTENCES, embedder_of, long_sentence, make_folder

from polyseme.config import build
from polyseme.errors import InputError
from polyseme.progress import NullProgress
from polyseme.tasks.embeddings.features import Sentences, SubwordInput
from polyseme.tasks.embeddings.finetuned import FineTuned, FineTunedConfig, layer_parameters
from polyseme.tasks.task import Task
from polyseme.tasks.training import Splits, train_task
from tasks.making import TASKS, config_of, examples_for

LONG = [*SENTENCES, long_sentence(70)]
FAMILIES = {told["network"]["kind"]: name for name, told in reversed(TASKS.items())}
"""A task of each family, by the kind of its network."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("hf")
    return {kind: make_folder(kind, root / kind) for kind in KINDS}


def finetuned(folder: Path, **values: Any) -> FineTuned:
    return FineTuned.load(build(FineTunedConfig, {"model": f"hf:{folder}", **values})).eval()


def gathered(module: FineTuned, sentences: list[list[str]]) -> SubwordInput:
    found = module.source(Sentences(sentences)).gather(np.arange(len(sentences)))
    assert isinstance(found, SubwordInput)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_before_training_words_have_the_vectors_of_the_embedder(
    kind: str, folders: dict[str, Path]
) -> None:
    module = finetuned(folders[kind])
    given = gathered(module, LONG)
    order = torch.tensor([5, 1])
    some = given.select(order, torch.tensor([len(LONG[5]), len(LONG[1])]))
    assert len(some.ids) < len(given.ids)
    with torch.no_grad():
        layers, chosen = module(given), module(some)
    for row, expected in enumerate(embedder_of(folders[kind]).stream(LONG)):
        found = layers[:, row, : len(LONG[row])].numpy()
        assert np.allclose(found, expected, atol=1e-5)
    for number, row in enumerate(order.tolist()):
        words = len(LONG[row])
        assert torch.allclose(chosen[:, number, :words], layers[:, row, :words], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_belongs_to_a_layer_and_only_those_chosen_get_a_gradient(
    kind: str, folders: dict[str, Path]
) -> None:
    module = finetuned(folders[kind], layers=[1], unfreeze_after=3)
    layers = {name: layer for layer, name, _ in layer_parameters(module.encoder)}
    assert set(layers.values()) == {0, 1, 2}
    assert all(name.startswith("network.embeddings") for name, n in layers.items() if n == 0)
    for step in (2, 3):
        module.zero_grad()
        found = module(gathered(module, LONG), step=step).square().sum()
        if step == 3:
            found.backward()
        moved = {name for name, each in module.encoder.named_parameters() if each.grad is not None}
        assert {layers[name] for name in moved} == ({1} if step == 3 else set())


def test_a_pair_is_read_with_the_tokens_between_and_cut_where_it_is_too_long(
    folders: dict[str, Path],
) -> None:
    module = finetuned(folders["bert"])
    source = module.sequences([[["rain"], ["it", "rains"]], [LONG[5], ["rain"]]])
    given = source.gather(np.array([0, 1]))
    assert isinstance(given, SubwordInput)
    cls, sep = given.ids[0, 0], given.ids[0, 2]
    assert (given.ids[0] == cls).nonzero().flatten().tolist() == [0]
    assert (given.ids[0] == sep).nonzero().flatten().tolist() == [2, int(source.lengths[0]) - 1]
    assert given.segments is not None
    assert set(given.segments[0, : source.lengths[0]].tolist()) == {0, 1}
    assert source.lengths[1] <= 24
    assert source.num_truncated > 40
    with pytest.raises(InputError, match="Row 0 has 3 sentences"):
        module.sequences([[["a"], ["b"], ["c"]]])


@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_every_family_is_trained_on_it_saved_and_loaded(
    kind: str, folders: dict[str, Path], models: dict[str, Path], tmp_path: Path
) -> None:
    name = FAMILIES[kind]
    config = config_of(name, models, tmp_path / "cache", epochs=1)
    model = FineTunedConfig(model=Path(f"hf:{folders['bert']}"), lr_scale=1.0, layer_lr_decay=1.0)
    told = {"model": model, "words": None, "insert_at": "input"}
    embeddings = config.embeddings.model_copy(update=told)
    config = config.model_copy(update={"embeddings": embeddings})
    examples = examples_for(name, 8)
    splits = Splits(examples, examples, {})
    train_task(config, splits, tmp_path / "task", seed=1, progress=NullProgress())
    task = Task.load(tmp_path / "task")
    again = task.decode(task.data(examples))
    before = Task.new(config, examples, [])
    assert len(again) == len(examples)
    old, new = (each.module.embeddings.finetuned for each in (before, task))
    assert old is not None
    assert new is not None
    weights = new.encoder.state_dict()
    assert any(not torch.equal(weights[n], old.encoder.state_dict()[n]) for n in weights)
