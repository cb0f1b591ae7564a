"""The golden vectors that `polyseme doctor` compares with, worked out by another road."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from embedding.making import tiny
from polyseme.embedding import loading
from polyseme.embedding.loading import GOLDEN, TOLERANCE, check_vectors, largest_difference
from polyseme.errors import ModelError
from polyseme.model import Model
from polyseme.storage.installed import MODELS

ROOT = Path(__file__).parents[2]


def in_float64(name: str) -> torch.Tensor:
    """(T, D) by the layers that train: nothing packed, nothing cached, no kernel."""
    model = Model.load(ROOT / "models" / name)
    encoder = model.network.encoder.double().eval()
    encoded = encoder(model.vocabulary.batch([GOLDEN[name].words]))  # gradients are on
    assert encoded.top.dtype == torch.float64
    top: torch.Tensor = encoded.top[0, 1:-1].detach()  # without the special tokens
    return top


@pytest.mark.parametrize("name", list(GOLDEN))
def test_golden_vectors_are_those_of_the_training_layers_in_float64(name: str) -> None:
    vector = in_float64(name)[GOLDEN[name].position]
    values = {at: round(float(vector[at]), 6) for at in GOLDEN[name].values}
    assert values == pytest.approx(GOLDEN[name].values, abs=2e-6)


@pytest.mark.parametrize("name", list(GOLDEN))
def test_this_machine_gives_the_golden_vectors(name: str) -> None:
    assert largest_difference(name) < TOLERANCE / 10


def test_another_word_is_not_taken_for_the_golden_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the word beside it is far off."""
    beside = replace(GOLDEN["en-mini"], position=GOLDEN["en-mini"].position + 1)
    monkeypatch.setitem(loading.GOLDEN, "en-mini", beside)
    assert largest_difference("en-mini") > 100 * TOLERANCE


def test_a_small_model_with_a_published_name_is_refused() -> None:
    with pytest.raises(ModelError, match="not named like a published model"):
        check_vectors(tiny("elmo"), "models/en-base")


def test_every_published_model_has_a_golden_vector() -> None:
    assert set(GOLDEN) == set(MODELS)
