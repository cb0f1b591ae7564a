"""Weights with outputs of the programs that made them, and how far ours are from those."""

import functools
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from required import need_package

from polyseme.encoders.lstm import LstmConfig
from polyseme.legacy.bilm import BilmOptions, read_bilm
from polyseme.legacy.old_model import parse, read_json
from polyseme.legacy.opening import read_old
from polyseme.legacy.weight_files import Floats
from polyseme.model import Model, build_network

GOLDEN = Path(__file__).parents[1] / "golden"
MANYLANGS = GOLDEN / "elmoformanylangs"
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Published:
    """One set: weights, 3 lists of 10 sentences, and the top layer of each of them."""

    folder: Path
    sentences_file: str

    @property
    def arrays(self) -> dict[str, Floats]:
        return read_arrays(self.folder / "lm_weights.hdf5")

    @property
    def options(self) -> BilmOptions:
        path = self.folder / "options.json"
        return parse(BilmOptions, read_json(path), path)

    def model(self) -> Model:
        return read_bilm(self.options, self.arrays, path=self.folder).model(None, {})

    @functools.cached_property
    def batches(self) -> list[list[list[str]]]:
        """Ten batches of three sentences, one from each list."""
        text = (self.folder / self.sentences_file).read_text(encoding="utf-8")
        return [[text.split() for text in row] for row in zip(*json.loads(text), strict=True)]

    @functools.cached_property
    def tops(self) -> list[list[Floats]]:
        """For each batch, the top layer (T, D) of its three sentences."""
        lists = [read_arrays(self.folder / f"lm_embeddings_{n}.hdf5") for n in range(3)]
        return [[np.concatenate(each[str(n)], axis=-1) for each in lists] for n in range(10)]


SETS = {
    "allennlp": Published(GOLDEN / "allennlp", "sentences.json"),
    "bilm-tf": Published(GOLDEN / "bilm-tf", "lm_embeddings_sentences.json"),
}
each_set = pytest.mark.parametrize("published", SETS.values(), ids=SETS)


def read_arrays(path: Path) -> dict[str, Floats]:
    """Read by h5py alone, another way than ours."""
    h5py = need_package("h5py")
    found: dict[str, Floats] = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, item: found.update({name: item[...]}) if hasattr(item, "dtype") else None
        )
    return found


@functools.cache
def read_manylangs_fixture() -> Model:
    with tempfile.TemporaryDirectory() as scratch:
        return read_old(MANYLANGS / "model", scratch=Path(scratch))[0].model(None, {})


def furthest(found: Any, expected: Any) -> float:
    """The largest difference; relative where the number is larger than one.

    In the first set numbers reach 4.5, and exact arithmetic is itself 1.14e-6 from what its
    program wrote in float32: no reader can be nearer than that in absolute terms.
    """
    difference = np.abs(np.asarray(found, np.float64) - expected)
    return float((difference / np.maximum(1, np.abs(expected))).max())


Change = Callable[[dict[str, torch.Tensor]], None]


def changed(model: Model, change: Change) -> Model:
    """The same model with weights changed in place by `change`."""
    weights = {name: each.clone() for name, each in model.network.state_dict().items()}
    change(weights)
    return _with(model, model.config.encoder.contextualizer, weights)


def with_skip_inverted(model: Model) -> Model:
    contextualizer = model.config.encoder.contextualizer
    assert isinstance(contextualizer, LstmConfig)
    inverted = contextualizer.model_copy(update={"residual": not contextualizer.residual})
    return _with(model, inverted, model.network.state_dict())


def _with(model: Model, contextualizer: Any, weights: Any) -> Model:
    encoder = model.config.encoder.model_copy(update={"contextualizer": contextualizer})
    config = model.config.model_copy(update={"encoder": encoder})
    network = build_network(config, model.vocabulary)
    network.load_state_dict(weights)
    return replace(model, config=config, network=network.eval())


def without_forget_bias(weights: dict[str, torch.Tensor]) -> None:
    for name, weight in weights.items():
        if name.startswith("encoder.contextualizer") and name.endswith("bias"):
            weight.view(2, 4, -1)[:, 1] -= 1


def with_gates_out_of_order(weights: dict[str, torch.Tensor]) -> None:
    """As if the file's order were input, forget, candidate, output: torch's own."""
    for name, weight in weights.items():
        if name.endswith(("weight_ih", "weight_hh")) or (".layers." in name and "bias" in name):
            input_gate, forget, output, candidate = weight.clone().chunk(4, dim=-1)
            weight.copy_(torch.cat([input_gate, candidate, output, forget], dim=-1))


def with_highway_sign_turned(weights: dict[str, torch.Tensor]) -> None:
    for name, weight in weights.items():
        if "highways" in name:
            weight[len(weight) // 2 :] *= -1


WRONG: dict[str, Callable[[Model], Model]] = {
    "no forget bias": lambda model: changed(model, without_forget_bias),
    "gate order": lambda model: changed(model, with_gates_out_of_order),
    "highway sign": lambda model: changed(model, with_highway_sign_turned),
    "skip inverted": with_skip_inverted,
}
each_mistake = pytest.mark.parametrize("mistake", WRONG.values(), ids=WRONG)
