"""Files of bilm-tf as these tests make them: options and arrays of small models."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from polyseme.legacy.bilm import BilmOptions, read_bilm, shapes_of
from polyseme.legacy.old_model import parse
from polyseme.legacy.weight_files import Floats
from polyseme.model import Model

HERE = Path("somewhere")
OPTIONS: dict[str, Any] = {
    "lstm": {
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 6,
        "projection_dim": 4,
        "n_layers": 2,
        "use_skip_connections": True,
    },
    "char_cnn": {
        "activation": "relu",
        "embedding": {"dim": 3},
        "filters": [[1, 2], [3, 3]],
        "max_characters_per_token": 50,
        "n_characters": 262,
        "n_highway": 1,
    },
}


def options_with(**changes: Any) -> dict[str, Any]:
    """The options above with some keys of `lstm` or `char_cnn` changed."""
    found: dict[str, Any] = json.loads(json.dumps(OPTIONS))
    for name, value in changes.items():
        part = "lstm" if name in OPTIONS["lstm"] else "char_cnn"
        found[part][name] = value
    return found


def arrays_for(values: dict[str, Any], *, seed: int = 0, names: Any = ()) -> dict[str, Floats]:
    random = np.random.default_rng(seed)
    shapes = shapes_of(parse(BilmOptions, values, HERE), names)
    return {name: random.normal(size=shape).astype("f4") for name, shape in shapes.items()}


def model_of(values: dict[str, Any], arrays: dict[str, Floats]) -> Model:
    return read_bilm(parse(BilmOptions, values, HERE), arrays, path=HERE).model(None, {})


@st.composite
def old_files(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Floats]]:
    """Options and arrays of any small model, with every projection that can be left out or not."""
    pair = st.tuples(st.integers(1, 7), st.integers(1, 3))
    clip = st.sampled_from([None, 0, False, 3, 0.25])
    width = draw(st.integers(1, 5))
    values = options_with(
        cell_clip=draw(clip),
        proj_clip=draw(clip),
        projection_dim=width,
        dim=draw(st.sampled_from([width, width + 3, max(1, width - 1)])),
        n_layers=draw(st.integers(1, 3)),
        use_skip_connections=draw(st.booleans()),
        activation=draw(st.sampled_from(["relu", "tanh"])),
        filters=draw(st.one_of(st.lists(pair, min_size=1, max_size=3), st.just([(2, width)]))),
        n_highway=draw(st.integers(0, 2)),
        n_characters=draw(st.sampled_from([261, 262])),
        max_characters_per_token=draw(st.sampled_from([8, 50])),
    )
    all_names = ["CNN_proj/W_proj", "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_P_0"]
    names = draw(st.lists(st.sampled_from(all_names), unique=True))
    arrays = arrays_for(values, seed=draw(st.integers(0, 2**32)), names=names)
    special = st.sampled_from([1e-9, -1e-9, -1.0, -0.0, 3e-39, 0.1, 1e7, -1e7, 16_777_217.5])
    for name, array in arrays.items():
        if name.endswith("/B"):
            array[draw(st.integers(0, array.size - 1))] = draw(special)
    return values, arrays
