"""A model that is trained along."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from polyseme.config import build
from polyseme.errors import ConfigError
from polyseme.model import Model
from polyseme.transfer.feed import Feed
from polyseme.transfer.finetuned import FineTuned, FineTunedConfig
from polyseme.transfer.layers import LayerTrainingConfig, layer_parameters, lowest_awake
from polyseme.transfer.sentences import Sentences
from polyseme.vectors.embedder import Embedder
from transfer.making import MODELS, SENTENCES, feed_of
from transfer.test_feed import train_a_little

LONG = [*SENTENCES, [SENTENCES[1][n % 9] for n in range(90)]]
every_model = pytest.mark.parametrize("name", MODELS)


def tuned(folder: Path, **values: Any) -> FineTuned:
    return FineTuned.load(build(FineTunedConfig, {"model": folder, **values})).eval()


def weights_of(feed: Feed) -> dict[int, dict[str, Tensor]]:
    """Copies of the encoder's parameters, by layer."""
    assert feed.tuned is not None
    found: dict[int, dict[str, Tensor]] = {}
    for layer, name, parameter in layer_parameters(feed.tuned.encoder):
        found.setdefault(layer, {})[name] = parameter.detach().clone()
    return found


def moved(before: dict[int, dict[str, Tensor]], after: dict[int, dict[str, Tensor]]) -> set[int]:
    """Layers in which any bit has changed."""
    return {
        layer
        for layer, weights in before.items()
        if any(not torch.equal(weight, after[layer][name]) for name, weight in weights.items())
    }


@every_model
def test_before_training_it_gives_what_the_embedder_gives(
    name: str, models: dict[str, Path]
) -> None:
    module = tuned(models[name])
    sentences = Sentences(LONG)
    reading = module.source(sentences).gather(np.arange(len(LONG)))
    with torch.no_grad():
        layers = module(reading)
    for row, expected in enumerate(Embedder.load(models[name], device="cpu").stream(LONG)):
        found = layers[:, row, : len(LONG[row])].numpy()
        assert np.allclose(found, expected, atol=1e-5)


def test_a_sentence_longer_than_it_learned_is_read_in_pieces(models: dict[str, Path]) -> None:
    module = tuned(models["gpt"])  # has places for 38 words and their marks
    reading = module.source(Sentences(LONG)).gather(np.array([4, 0]))
    assert reading.batch.lengths.tolist() == [32, 32, 32, 5]
    alone = reading.select(torch.tensor([1]), torch.tensor([3]))
    assert alone.batch.lengths.tolist() == [5]


def test_selected_sentences_bring_no_others_along(models: dict[str, Path]) -> None:
    reading = tuned(models["elmo"]).source(Sentences(SENTENCES)).gather(np.arange(4))
    some = reading.select(torch.tensor([2, 3]), torch.tensor([1, 7]))
    assert some.batch.lengths.tolist() == [3, 9]


@every_model
def test_every_parameter_belongs_to_a_layer(name: str, models: dict[str, Path]) -> None:
    encoder = Model.load(models[name]).network.encoder
    found = list(layer_parameters(encoder))
    assert len(found) == len(list(encoder.parameters()))
    assert {layer for layer, _, _ in found} == set(range(encoder.config.num_layers))


@pytest.mark.parametrize("name", ["elmo", "lstm together", "elmo of transformers", "gpt"])
@pytest.mark.parametrize("layers", [(0,), (1,), (2,), (0, 2)])
def test_only_chosen_layers_move(
    name: str, layers: tuple[int, ...], models: dict[str, Path], tmp_path: Path
) -> None:
    values = {"model": {"kind": "finetuned", "model": name, "layers": layers}}
    feed = feed_of(values, models, tmp_path)
    before = weights_of(feed)
    train_a_little(feed)
    assert moved(before, weights_of(feed)) == set(layers)


def test_what_has_moved_is_in_the_saved_state_and_in_the_model(
    models: dict[str, Path], tmp_path: Path
) -> None:
    feed = feed_of({"model": {"kind": "finetuned", "model": "elmo"}}, models, tmp_path)
    train_a_little(feed)
    assert feed.tuned is not None
    feed.tuned.model.save(tmp_path / "tuned", card="Fine-tuned.")
    again = Model.load(tmp_path / "tuned").network.encoder.state_dict()
    state = feed.state_dict()
    original = Model.load(models["elmo"]).network.encoder.state_dict()
    for name, weight in again.items():
        assert torch.equal(weight, state[f"tuned.encoder.{name}"])
        assert not torch.equal(weight, original[name])


def test_layers_wake_from_the_top() -> None:
    config = LayerTrainingConfig(wakes_at=10, wakes_every=5)
    woken = [lowest_awake(step, config, 3) for step in (0, 9, 10, 14, 15, 19, 20, 500)]
    assert woken == [3, 3, 2, 2, 1, 1, 0, 0]
    at_once = LayerTrainingConfig(wakes_at=10)
    assert [lowest_awake(step, at_once, 3) for step in (9, 10)] == [3, 0]
    assert lowest_awake(0, LayerTrainingConfig(), 3) == 0


@pytest.mark.parametrize("name", ["elmo", "bert"])
def test_layers_that_sleep_do_not_move(name: str, models: dict[str, Path], tmp_path: Path) -> None:
    values = {"model": {"kind": "finetuned", "model": name, "wakes_at": 1, "wakes_every": 1}}
    for steps, expected in [(1, set()), (2, {2}), (3, {1, 2}), (4, {0, 1, 2})]:
        feed = feed_of(values, models, tmp_path)
        before = weights_of(feed)
        train_a_little(feed, steps)
        assert moved(before, weights_of(feed)) == expected


def test_who_sleeps_depends_on_the_step_alone(models: dict[str, Path]) -> None:
    module = tuned(models["elmo"], wakes_every=3)
    reading = module.source(Sentences(LONG)).gather(np.array([0, 1]))

    def learning(step: int | None) -> list[bool]:
        module.zero_grad()
        module(reading, step=step).sum().backward()
        assert all(parameter.requires_grad for parameter in module.parameters())
        return [parameter.grad is not None for parameter in module.parameters()]

    first = learning(4)
    assert sum(first) == 8  # of two layers, each with four parameters
    assert all(learning(100))
    assert all(learning(None))
    assert learning(4) == first


def test_layers_that_sleep_give_the_same_vectors(models: dict[str, Path]) -> None:
    module = tuned(models["bert"], wakes_at=5)
    reading = module.source(Sentences(LONG)).gather(np.array([0, 1]))
    assert torch.equal(module(reading, step=0), module(reading))


def test_lower_layers_learn_more_slowly(models: dict[str, Path]) -> None:
    module = tuned(models["elmo"], rate=0.5, rate_below=0.1)
    by_layer = {
        layer: module.param_groups()[f"encoder.{name}"].lr_scale
        for layer, name, _ in layer_parameters(module.encoder)
    }
    assert by_layer == pytest.approx({0: 0.005, 1: 0.05, 2: 0.5})
    assert not module.param_groups()["encoder.inputs.table.weight"].weight_decay


def test_layers_that_are_not_there_are_refused(models: dict[str, Path]) -> None:
    for layers in [(3,), (-1,), ()]:
        with pytest.raises(ConfigError, match="layers 0 to 2"):
            tuned(models["elmo"], layers=layers)
