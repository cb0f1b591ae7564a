"""Options of old files: what is taken, what is passed over, what is refused."""

import contextlib
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legacy.bilm_files import HERE, OPTIONS, arrays_for, model_of, options_with
from polyseme.errors import ModelError
from polyseme.legacy.bilm import BilmOptions, read_bilm, shapes_of
from polyseme.legacy.old_model import parse, read_json


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
