"""What a fine-tuned encoder reads: several sentences as one row."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from polyseme.data.special_tokens import BOS, EOS, FIRST_WORD, UNK
from polyseme.errors import ConfigError, InputError
from polyseme.model import Model
from polyseme.tasks.embeddings.embeddings import Embeddings
from polyseme.tasks.embeddings.encoder_inputs import truncate
from tasks.embeddings.making import SENTENCES, WORDS, embeddings_of
from tasks.embeddings.test_embeddings import embed_all

A, B, C = SENTENCES[0], SENTENCES[2], SENTENCES[3]
Models = dict[str, Path]


def sequences(name: str, models: Models, cache: Path) -> Embeddings:
    values: dict[str, Any] = {"model": {"kind": "finetuned", "model": name}}
    return embeddings_of(values, models, cache, mix={"layer": -1})


def test_a_pair_is_read_as_start_first_end_second_end(models: Models, tmp_path: Path) -> None:
    encoder_input = (
        sequences("gpt", models, tmp_path).prepare_sequences([[A, B]]).gather([0]).encoder_input
    )
    assert encoder_input is not None
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


def test_a_row_of_one_sentence_has_the_vectors_of_that_sentence_between_bos_and_eos(
    models: Models, tmp_path: Path
) -> None:
    embeddings = sequences("bert", models, tmp_path)
    with torch.no_grad():
        inputs = embeddings(embeddings.prepare_sequences([[C]]).gather([0]))
    assert torch.allclose(
        inputs.input[0, 1:-1], embed_all(embeddings, [3]).input[0, : len(C)], atol=1e-5
    )


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


def test_selected_rows_bring_no_others_along(models: Models, tmp_path: Path) -> None:
    dataset = sequences("gpt", models, tmp_path).prepare_sequences([[A, B], [B], [C]])
    encoder_input = dataset.gather([0, 1, 2]).select(torch.tensor([1, 2])).encoder_input
    assert encoder_input is not None
    assert encoder_input.batch.lengths.tolist() == [len(B) + 2, len(C) + 2]


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
