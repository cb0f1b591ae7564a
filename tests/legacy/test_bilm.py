"""Weights of bilm-tf and AllenNLP give the numbers of those programs.

Options of old files: what is taken, what is passed over, what is refused.
"""

import contextlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from legacy.bilm_files import HERE, OPTIONS, arrays_for, model_of, old_files, options_with
from legacy.plain_bilm import layers_of
from legacy.published import (
    SETS,
    TOLERANCE,
    Published,
    each_mistake,
    each_set,
    furthest,
    read_arrays,
)
from polyseme.data.batch import BOS, EOS
from polyseme.errors import ModelError
from polyseme.legacy.bilm import BilmOptions, read_bilm, shapes_of
from polyseme.legacy.old_model import parse, read_json
from polyseme.legacy.weight_files import Floats
from polyseme.model import Model

SENTENCE = ["The", "naïve", "cat", "水水" * 30, "."]


def layers_from_zero(model: Model, sentence: list[str]) -> Any:
    with torch.inference_mode():
        return model.network.encoder(model.vocabulary.batch([sentence])).layers[:, 0, 1:-1].numpy()


def tops_from_zero(model: Model, sentences: list[list[str]]) -> list[Floats]:
    with torch.inference_mode():
        top = model.network.encoder(model.vocabulary.batch(sentences)).top
    return [top[n, 1 : 1 + len(sentence)].numpy() for n, sentence in enumerate(sentences)]


def gap(model: Model, published: Published) -> float:
    """How far the first batch, through the ordinary encoder, is from what was published."""
    found = tops_from_zero(model, published.batches[0])
    return max(map(furthest, found, published.tops[0]))


@each_set
def test_the_first_batch_is_as_published_from_a_state_of_zeros(published: Published) -> None:
    assert gap(published.model(), published) <= TOLERANCE


@each_set
@each_mistake
def test_a_mistake_in_reading_would_be_seen(published: Published, mistake: Any) -> None:
    assert gap(mistake(published.model()), published) > 1e-3


def test_layer_0_of_all_words_is_as_published() -> None:
    published = SETS["allennlp"]
    words = (published.folder / "vocab_test.txt").read_text(encoding="utf-8").split("\n")
    expected = read_arrays(published.folder / "elmo_token_embeddings.hdf5")["embedding"]
    model = published.model()
    batch = model.vocabulary.batch([words])
    with torch.inference_mode():
        distinct = model.network.encoder.inputs(batch.ids, batch.char_ids)
    found = distinct[batch.words[0, 1:-1]]
    # There, a word written like a special token is that token; here it is a word like any other.
    found[words.index("<S>")], found[words.index("</S>")] = distinct[BOS], distinct[EOS]
    assert expected.shape == (458, 16)
    assert furthest(found.numpy(), expected) <= TOLERANCE


@given(old_files())
@settings(max_examples=40, deadline=None)
def test_any_old_model_gives_the_numbers_of_its_formulas(old: tuple[dict[str, Any], Any]) -> None:
    values, arrays = old
    expected = layers_of(values, arrays, SENTENCE)
    found = layers_from_zero(model_of(values, arrays), SENTENCE)
    assert found.shape == expected.shape
    rms = np.sqrt(np.mean(expected**2)) + 1
    assert np.abs(found - expected).max() <= 1e-4 * rms


def test_a_softmax_in_the_file_is_not_used_and_told() -> None:
    arrays = {**arrays_for(OPTIONS), "softmax/W": np.zeros((9, 4), "f4")}
    old = read_bilm(parse(BilmOptions, OPTIONS, HERE), arrays, path=HERE)
    assert "in the file but not used" in old.notes[0]
    assert old.weights.keys() == model_of(OPTIONS, arrays).network.state_dict().keys()


@pytest.mark.parametrize(
    ("name", "array", "told"),
    [
        ("char_embed", np.zeros((262, 3), "f4"), r"char_embed has shape \(262, 3\), .*\(261, 3\)"),
        ("CNN/W_cnn_1", np.zeros((1, 3, 3, 4), "f4"), r"W_cnn_1 has shape .*expected \(1, 3, 3, 3"),
        ("CNN_high_0/b_carry", None, r"CNN_high_0/b_carry is missing, expected with shape \(5,\)"),
        ("CNN_proj/W_proj", None, r"CNN_proj/W_proj is missing, expected with shape \(5, 4\)"),
        ("CNN_high_1/b_carry", np.zeros(5, "f4"), r"shape \(5,\) is a tensor that no such model"),
        ("CNN/b_cnn_0", np.array([0, np.nan], "f4"), r"b_cnn_0 holds numbers that are not finite"),
        ("CNN/b_cnn_0", np.array([0, -np.inf], "f4"), r"b_cnn_0 holds numbers that are not finite"),
    ],
)
def test_what_does_not_fit_is_named_with_both_shapes(name: str, array: Any, told: str) -> None:
    arrays = {**arrays_for(OPTIONS), name: array}
    if array is None:
        del arrays[name]
    with pytest.raises(ModelError, match=told):
        model_of(OPTIONS, arrays)


def test_training_keys_are_passed_over_and_unknown_keys_are_told() -> None:
    values = {**options_with(), "n_epochs": 10, "dropout": 0.1, "unroll_steps": 20, "colour": 1}
    values["lstm"]["layer_norm"] = True
    old = read_bilm(parse(BilmOptions, values, HERE), arrays_for(OPTIONS), path=HERE)
    assert "ignored: colour, lstm.layer_norm." in " ".join(old.notes)
    assert "n_epochs" not in " ".join(old.notes)


@pytest.mark.parametrize(
    "change",
    [
        {"n_characters": 260},
        {"filters": [[8, 2]]},
        {"filters": []},
        {"n_layers": 10**9},
        {"dim": 10**12},
        {"n_highway": 10**9},
        {"cell_clip": -1},
        {"proj_clip": float("inf")},
        {"activation": "gelu"},
        {"projection_dim": "wide"},
        {"embedding": {}},
    ],
    ids=str,
)
def test_options_no_such_model_has_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=f"somewhere.*{next(iter(change))}"):
        parse(BilmOptions, options_with(**change), HERE)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.sampled_from(["lstm", "char_cnn"]), st.integers(0, 6), JSON)
@settings(max_examples=150, deadline=None)
def test_any_other_value_in_options_is_taken_or_refused_in_words(
    part: str, index: int, value: Any
) -> None:
    values = options_with()
    keys = [*OPTIONS[part], "", part]
    target = values if keys[index % len(keys)] == part else values[part]
    target[keys[index % len(keys)]] = value
    with contextlib.suppress(ModelError):
        options = parse(BilmOptions, values, HERE)
        read_bilm(options, arrays_for(OPTIONS), path=HERE)


def test_filters_wider_than_a_word_are_refused() -> None:
    values = options_with(max_characters_per_token=5, filters=[[7, 2]])
    with pytest.raises(ModelError, match="a filter 7 characters wide"):
        model_of(values, arrays_for(values))


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, '{"a": "' + "x" * (1 << 20) + '"}'])
def test_a_file_that_holds_no_options_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "options.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ModelError, match=r"options\.json"):
        read_json(path)


@pytest.mark.parametrize(
    ("hidden_size", "proj_size", "highways", "published"),
    [(1024, 128, 1, 13_593_296), (2048, 256, 1, 28_027_728), (4096, 512, 2, 93_600_848)],
)
def test_real_sizes_have_the_published_number_of_parameters(
    hidden_size: int, proj_size: int, highways: int, published: int
) -> None:
    filters = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
    sizes = {
        "dim": hidden_size,
        "projection_dim": proj_size,
        "n_highway": highways,
        "filters": filters,
    }
    values = options_with(**sizes, embedding={"dim": 16})
    shapes = shapes_of(parse(BilmOptions, values, HERE))
    assert sum(map(math.prod, shapes.values())) == published
