"""Models written as bilm-tf and AllenNLP read them: the same files again."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from legacy.bilm_files import HERE, OPTIONS, arrays_for, model_of, old_files, options_with
from polyseme.errors import ModelError
from polyseme.legacy.bilm import BilmOptions, export_bilm, read_bilm
from polyseme.legacy.old_model import parse, vocabulary_of
from polyseme.model import Model, ModelConfig


@given(old_files())
@settings(max_examples=60, deadline=None)
def test_there_and_back_is_the_same_bit_for_bit(old: tuple[dict[str, Any], Any]) -> None:
    values, arrays = old
    model = model_of(values, arrays)
    exported = export_bilm(model)
    assert {n: a.tobytes() for n, a in exported.arrays.items()} == {
        n: a.tobytes() for n, a in arrays.items()
    }
    assert {n: a.shape for n, a in exported.arrays.items()} == {
        n: a.shape for n, a in arrays.items()
    }
    again = model_of(exported.options, exported.arrays)
    assert again.config == model.config


def test_a_model_of_ours_comes_back_bit_for_bit_where_biases_are_near_one() -> None:
    model = model_of(OPTIONS, arrays_for(OPTIONS))
    for layer in model.network.encoder.contextualizer.layers:  # type: ignore[union-attr]
        layer.bias.data.view(2, 4, -1)[:, 1].uniform_(0.5, 2.0)
    exported = export_bilm(model)
    again = model_of(exported.options, exported.arrays).network.state_dict()
    for name, weight in model.network.state_dict().items():
        assert torch.equal(weight, again[name]), name
    assert exported.notes == ()


def test_a_forget_bias_that_rounds_is_told() -> None:
    model = model_of(OPTIONS, arrays_for(OPTIONS))
    bias = model.network.encoder.contextualizer.layers[0].bias.data  # type: ignore[union-attr, index]
    bias.view(2, 4, -1)[:, 1] = 1e-9
    exported = export_bilm(model)
    assert any("rounded, by up to 1.0e-09" in note for note in exported.notes)


@pytest.mark.parametrize("metadata", [{}, {"stored_forget_bias": "?"}, {"stored_forget_bias": 3}])
def test_a_model_that_does_not_tell_its_old_biases_is_written_all_the_same(metadata: Any) -> None:
    arrays = arrays_for(OPTIONS)
    exported = export_bilm(replace(model_of(OPTIONS, arrays), metadata=metadata))
    for name, array in exported.arrays.items():
        assert np.allclose(array, arrays[name], rtol=0, atol=5e-7), name


def test_words_are_listed_after_the_special_tokens_that_bilm_wants() -> None:
    options = parse(BilmOptions, OPTIONS, HERE)
    old = read_bilm(options, arrays_for(OPTIONS), path=HERE, words=["the", "水"])
    model = old.model(None, {})
    assert model.vocabulary.size == 7
    assert export_bilm(model).words == ["<S>", "</S>", "<UNK>", "the", "水"]
    assert "no list of words" not in " ".join(old.notes)


ENCODER: dict[str, Any] = {
    "input": {"kind": "characters", "dim": 4, "filters": [{"width": 2, "num_filters": 3}]},
    "contextualizer": {"kind": "lstm", "proj_size": 4, "hidden_size": 6},
}


@pytest.mark.parametrize(
    ("vocabulary", "encoder", "told"),
    [
        ({"characters": "none"}, {"input": {"kind": "word", "dim": 4}}, "input is 'word'"),
        ({"characters": "unicode"}, {}, "characters are 'unicode'"),
        ({}, {"direction": "joint"}, "direction is 'joint'"),
        ({}, {"direction": "forward"}, "direction is 'forward'"),
        ({}, {"contextualizer": {"kind": "none", "dim": 4}}, "contextualizer is 'none'"),
        ({}, {"input": {**ENCODER["input"], "dim": 5}}, "projected once more"),
        (
            {},
            {"contextualizer": {"kind": "lstm", "proj_size": 4, "output_clip": 3}},
            "clipped only then",
        ),
    ],
)
def test_what_old_files_have_no_word_for_is_refused_with_the_reason(
    vocabulary: dict[str, Any], encoder: dict[str, Any], told: str
) -> None:
    kind = {"characters": "bytes", **vocabulary}["characters"]
    config = ModelConfig.model_validate(
        {
            "vocabulary": {"characters": kind},
            "encoder": {**ENCODER, **encoder},
            "objective": {"kind": "encoder_only"},
        }
    )
    model = Model.new(
        config, vocabulary_of(["a"], kind=kind, max_characters=50, characters="a"), None
    )
    with pytest.raises(ModelError, match=told):
        export_bilm(model)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"dim": 4}, "AllenNLP cannot read it"),
        ({"filters": [[2, 4]]}, "AllenNLP cannot read it"),
        ({"dim": 3}, "bilm-tf cannot read it"),
        ({"max_characters_per_token": 30}, "AllenNLP reads 50"),
    ],
    ids=str,
)
def test_who_cannot_read_what_is_written_is_told(change: dict[str, Any], told: str) -> None:
    values = options_with(**change)
    [note] = export_bilm(model_of(values, arrays_for(values))).notes
    assert told in note
