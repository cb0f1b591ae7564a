"""A model that is fine-tuned.

What a fine-tuned encoder reads: several sentences as one row.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from polyseme.config import build
from polyseme.data.batch import BOS, EOS, FIRST_WORD, UNK
from polyseme.embedding.embedder import Embedder
from polyseme.errors import ConfigError, InputError
from polyseme.model import Model
from polyseme.tasks.embeddings.embeddings import Embeddings
from polyseme.tasks.embeddings.features import EncoderInput, Sentences
from polyseme.tasks.embeddings.finetuned import (
    FineTuned,
    FineTunedConfig,
    LayerTrainingConfig,
    layer_parameters,
    lowest_unfrozen,
    truncate,
)
from tasks.embeddings.making import MODELS, SENTENCES, WORDS, embeddings_of
from tasks.embeddings.test_embeddings import train_a_little

LONG = [*SENTENCES, [SENTENCES[1][n % 9] for n in range(90)]]
every_model = pytest.mark.parametrize("name", MODELS)


def finetuned(folder: Path, **values: Any) -> FineTuned:
    return FineTuned.load(build(FineTunedConfig, {"model": folder, **values})).eval()


def weights_of(embeddings: Embeddings) -> dict[int, dict[str, Tensor]]:
    """Copies of the encoder's parameters, by layer."""
    assert embeddings.finetuned is not None
    found: dict[int, dict[str, Tensor]] = {}
    for layer, name, parameter in layer_parameters(embeddings.finetuned.encoder):
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
    module = finetuned(models[name])
    sentences = Sentences(LONG)
    encoder_input = module.source(sentences).gather(np.arange(len(LONG)))
    with torch.no_grad():
        layers = module(encoder_input)
    for row, expected in enumerate(Embedder.load(models[name], device="cpu").stream(LONG)):
        found = layers[:, row, : len(LONG[row])].numpy()
        assert np.allclose(found, expected, atol=1e-5)


def test_a_sentence_longer_than_it_learned_is_read_in_pieces(models: dict[str, Path]) -> None:
    module = finetuned(models["gpt"])  # has places for 38 words, BOS and EOS
    encoder_input = module.source(Sentences(LONG)).gather(np.array([4, 0]))
    assert isinstance(encoder_input, EncoderInput)
    assert encoder_input.batch.lengths.tolist() == [32, 32, 32, 5]
    alone = encoder_input.select(torch.tensor([1]), torch.tensor([3]))
    assert alone.batch.lengths.tolist() == [5]


@every_model
def test_every_parameter_belongs_to_a_layer(name: str, models: dict[str, Path]) -> None:
    encoder = Model.load(models[name]).network.encoder
    found = list(layer_parameters(encoder))
    assert len(found) == len(list(encoder.parameters()))
    assert {layer for layer, _, _ in found} == set(range(encoder.config.num_layers))


@pytest.mark.parametrize("name", ["elmo", "lstm joint", "elmo of transformers", "gpt"])
@pytest.mark.parametrize("layers", [(0,), (1,), (2,), (0, 2)])
def test_only_chosen_layers_move(
    name: str, layers: tuple[int, ...], models: dict[str, Path], tmp_path: Path
) -> None:
    values = {"model": {"kind": "finetuned", "model": name, "layers": layers}}
    embeddings = embeddings_of(values, models, tmp_path)
    before = weights_of(embeddings)
    train_a_little(embeddings)
    assert moved(before, weights_of(embeddings)) == set(layers)


def test_layers_are_unfrozen_from_the_top() -> None:
    config = LayerTrainingConfig(unfreeze_after=10, unfreeze_every=5)
    unfrozen = [lowest_unfrozen(step, config, 3) for step in (0, 9, 10, 14, 15, 19, 20, 500)]
    assert unfrozen == [3, 3, 2, 2, 1, 1, 0, 0]
    at_once = LayerTrainingConfig(unfreeze_after=10)
    assert [lowest_unfrozen(step, at_once, 3) for step in (9, 10)] == [3, 0]
    assert lowest_unfrozen(0, LayerTrainingConfig(), 3) == 0


@pytest.mark.parametrize("name", ["elmo", "bert"])
def test_frozen_layers_do_not_move(name: str, models: dict[str, Path], tmp_path: Path) -> None:
    values = {
        "model": {"kind": "finetuned", "model": name, "unfreeze_after": 1, "unfreeze_every": 1}
    }
    for steps, expected in [(1, set()), (2, {2}), (3, {1, 2}), (4, {0, 1, 2})]:
        embeddings = embeddings_of(values, models, tmp_path)
        before = weights_of(embeddings)
        train_a_little(embeddings, steps)
        assert moved(before, weights_of(embeddings)) == expected


def test_lower_layers_learn_more_slowly(models: dict[str, Path]) -> None:
    module = finetuned(models["elmo"], lr_scale=0.5, layer_lr_decay=0.1)
    by_layer = {
        layer: module.param_groups()[f"encoder.{name}"].lr_scale
        for layer, name, _ in layer_parameters(module.encoder)
    }
    assert by_layer == pytest.approx({0: 0.005, 1: 0.05, 2: 0.5})
    assert not module.param_groups()["encoder.inputs.word_embedding.weight"].weight_decay


A, B, C = SENTENCES[0], SENTENCES[2], SENTENCES[3]
Models = dict[str, Path]


def sequences(name: str, models: Models, cache: Path) -> Embeddings:
    values: dict[str, Any] = {"model": {"kind": "finetuned", "model": name}}
    return embeddings_of(values, models, cache, mix={"layer": -1})


def test_a_pair_is_read_as_start_first_end_second_end(models: Models, tmp_path: Path) -> None:
    encoder_input = (
        sequences("gpt", models, tmp_path).prepare_sequences([[A, B]]).gather([0]).encoder_input
    )
    assert isinstance(encoder_input, EncoderInput)
    ids = encoder_input.batch.ids[encoder_input.batch.words[0]].tolist()
    known = {word: FIRST_WORD + n for n, word in enumerate(WORDS)}
    first, second = ([known.get(word, UNK) for word in words] for words in (A, B))
    assert ids == [BOS, *first, EOS, *second, EOS]
    assert encoder_input.batch.segments is not None
    assert encoder_input.batch.segments.tolist() == [[0] * (len(A) + 2) + [1] * (len(B) + 1)]


@pytest.mark.parametrize("name", ["gpt", "bert", "elmo"])
def test_inputs_are_what_the_encoder_gives_for_that_row(
    name: str, models: Models, tmp_path: Path
) -> None:
    embeddings = sequences(name, models, tmp_path)
    model = Model.load(models[name])
    # The same row by another road: a sentence whose middle EOS is put in by hand.
    batch = model.vocabulary.batch([[*A, "unheard-of", *B]])
    words = batch.words.clone()
    words[0, 1 + len(A)] = words[0, -1]
    segments = (torch.arange(words.shape[1]) > 1 + len(A)).long()[None]
    with torch.no_grad():
        expected = model.network.encoder(replace(batch, words=words, segments=segments)).top
        inputs = embeddings(embeddings.prepare_sequences([[C], [A, B]]).gather([1, 0]))
    assert torch.allclose(inputs.input[:1, : words.shape[1]], expected, atol=1e-5)
    assert inputs.mask.sum(dim=1).tolist() == [len(A) + len(B) + 3, len(C) + 2]


def test_the_order_of_a_pair_matters_and_its_company_does_not(
    models: Models, tmp_path: Path
) -> None:
    embeddings = sequences("bert", models, tmp_path)
    dataset = embeddings.prepare_sequences([[A, B], [B, A], [A, B, C]])
    with torch.no_grad():
        together = embeddings(dataset.gather([0, 1, 2])).input
        alone = embeddings(dataset.gather([0])).input
        chosen = embeddings(dataset.gather([2, 0]).select(torch.tensor([1]))).input
    assert torch.allclose(together[0, : alone.shape[1]], alone[0], atol=1e-5)
    assert torch.allclose(chosen, alone, atol=1e-5)
    assert not torch.allclose(together[0, 0], together[1, 0])


def test_rows_too_long_for_the_model_are_truncated_and_counted(
    models: Models, tmp_path: Path
) -> None:
    embeddings = sequences("gpt", models, tmp_path)  # 40 places
    assert embeddings.finetuned is not None
    source = embeddings.finetuned.sequences([[WORDS * 4, A], [A, B]])
    assert source.lengths.tolist() == [40, len(A) + len(B) + 3]
    assert source.num_truncated == 48 + 3 + 3 - 40
    with torch.no_grad():
        embeddings(embeddings.prepare_sequences([[WORDS * 4, WORDS * 5]]).gather([0]))


@given(st.lists(st.integers(1, 60), min_size=1, max_size=4), st.integers(4, 100))
def test_the_longest_sentence_gives_way_first(lengths: list[int], most: int) -> None:
    slow = list(lengths)
    while sum(slow) > most:
        slow[slow.index(max(slow))] -= 1  # BERT's rule, word by word
    kept = truncate(lengths, most)
    assert sorted(kept) == sorted(slow)
    assert sum(kept) == min(most, sum(lengths))


def test_sequence_pairs_need_a_fine_tuned_model(models: Models, tmp_path: Path) -> None:
    frozen = embeddings_of({"model": {"kind": "frozen", "model": "gpt"}}, models, tmp_path)
    with pytest.raises(ConfigError, match="need a fine-tuned model"):
        frozen.prepare_sequences([[A, B]])
    with pytest.raises(InputError, match="Row 1 has 0 sentences"):
        sequences("gpt", models, tmp_path).prepare_sequences([[A], []])
