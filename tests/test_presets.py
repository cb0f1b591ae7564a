"""The points are values; here they are built, without any memory for their weights."""

import tomllib

import pytest
import torch

from polyseme.config import build, to_toml
from polyseme.encoders.encoder import NoContextualizerConfig
from polyseme.model import LanguageModel, ModelConfig, count_parameters
from polyseme.presets import PRESETS

every_point = pytest.mark.parametrize("name", sorted(PRESETS))


def network(name: str) -> LanguageModel:
    model = PRESETS[name].model
    num_chars = {"none": 0, "bytes": 262, "unicode": 200}[model.vocabulary.characters]
    with torch.device("meta"):
        return LanguageModel(model, vocab_size=model.vocabulary.size, num_chars=num_chars)


@every_point
def test_every_point_can_be_built(name: str) -> None:
    assert count_parameters(network(name)) > 1_000_000
    assert PRESETS[name].about.endswith(".")


@every_point
def test_a_points_settings_survive_a_file(name: str) -> None:
    model = PRESETS[name].model
    assert build(ModelConfig, tomllib.loads(to_toml(model=model))["model"]) == model


def test_the_four_names_stand_where_the_design_puts_them() -> None:
    places = {
        "word2vec": ("none", "forward", "word2vec"),
        "elmo-mini": ("lstm", "separate", "bidirectional"),
        "gpt-mini": ("transformer", "forward", "causal"),
        "bert-mini": ("transformer", "joint", "masked"),
    }
    for name, place in places.items():
        encoder, objective = PRESETS[name].model.encoder, PRESETS[name].model.objective
        assert (encoder.contextualizer.kind, encoder.direction, objective.kind) == place


def test_the_small_ones_differ_only_in_encoder_and_objective() -> None:
    small = [
        PRESETS[name].model for name in ("elmo-mini", "elmo-transformer", "gpt-mini", "bert-mini")
    ]
    assert len({model.vocabulary for model in small}) == 1
    assert len({model.encoder.input for model in small}) == 1
    assert len({model.objective.softmax for model in small}) == 1
    assert len({model.encoder.contextualizer.dim for model in small}) == 1


def test_static_vectors_are_one_table() -> None:
    model = PRESETS["word2vec"].model
    assert isinstance(model.encoder.contextualizer, NoContextualizerConfig)
    names = [name for name, _ in network("word2vec").encoder.named_parameters()]
    assert names == ["inputs.word_embedding.weight"]
