"""Several sentences as one row."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from polyseme.batches.marks import END, FIRST_WORD, START, UNKNOWN
from polyseme.errors import ConfigError, InputError
from polyseme.model import Model
from polyseme.transfer.feed import Feed
from polyseme.transfer.joined import shorten
from transfer.making import SENTENCES, WORDS, feed_of
from transfer.test_feed import feed_all

A, B, C = SENTENCES[0], SENTENCES[2], SENTENCES[3]
Models = dict[str, Path]


def joined(name: str, models: Models, cache: Path) -> Feed:
    values: dict[str, Any] = {"model": {"kind": "finetuned", "model": name}}
    return feed_of(values, models, cache, mix={"only": -1})


def test_a_pair_is_read_as_start_first_end_second_end(models: Models, tmp_path: Path) -> None:
    reading = joined("gpt", models, tmp_path).prepare_joined([[A, B]]).gather([0]).reading
    assert reading is not None
    ids = reading.batch.ids[reading.batch.words[0]].tolist()
    known = {word: FIRST_WORD + n for n, word in enumerate(WORDS)}
    first, second = ([known.get(word, UNKNOWN) for word in words] for words in (A, B))
    assert ids == [START, *first, END, *second, END]
    assert reading.batch.segments is not None
    assert reading.batch.segments.tolist() == [[0] * (len(A) + 2) + [1] * (len(B) + 1)]


@pytest.mark.parametrize("name", ["gpt", "bert", "elmo"])
def test_what_is_fed_is_what_the_encoder_gives_for_that_row(
    name: str, models: Models, tmp_path: Path
) -> None:
    feed = joined(name, models, tmp_path)
    model = Model.load(models[name])
    # The same row by another road: a sentence whose middle mark is put in by hand.
    batch = model.lexicon.batch([[*A, "unheard-of", *B]])
    words = batch.words.clone()
    words[0, 1 + len(A)] = words[0, -1]
    segments = (torch.arange(words.shape[1]) > 1 + len(A)).long()[None]
    with torch.no_grad():
        expected = model.network.encoder(replace(batch, words=words, segments=segments)).top
        fed = feed(feed.prepare_joined([[C], [A, B]]).gather([1, 0]))
    assert torch.allclose(fed.first[:1, : words.shape[1]], expected, atol=1e-5)
    assert fed.mask.sum(dim=1).tolist() == [len(A) + len(B) + 3, len(C) + 2]


def test_the_order_of_a_pair_matters_and_its_company_does_not(
    models: Models, tmp_path: Path
) -> None:
    feed = joined("bert", models, tmp_path)
    supply = feed.prepare_joined([[A, B], [B, A], [A, B, C]])
    with torch.no_grad():
        together = feed(supply.gather([0, 1, 2])).first
        alone = feed(supply.gather([0])).first
        chosen = feed(supply.gather([2, 0]).select(torch.tensor([1]))).first
    assert torch.allclose(together[0, : alone.shape[1]], alone[0], atol=1e-5)
    assert torch.allclose(chosen, alone, atol=1e-5)
    assert not torch.allclose(together[0, 0], together[1, 0])


def test_a_row_of_one_sentence_has_the_vectors_of_that_sentence_between_marks(
    models: Models, tmp_path: Path
) -> None:
    feed = joined("bert", models, tmp_path)
    with torch.no_grad():
        fed = feed(feed.prepare_joined([[C]]).gather([0]))
    assert torch.allclose(fed.first[0, 1:-1], feed_all(feed, [3]).first[0, : len(C)], atol=1e-5)


def test_rows_too_long_for_the_model_are_cut_and_counted(models: Models, tmp_path: Path) -> None:
    feed = joined("gpt", models, tmp_path)  # 40 places
    assert feed.tuned is not None
    source = feed.tuned.joined([[WORDS * 4, A], [A, B]])
    assert source.lengths.tolist() == [40, len(A) + len(B) + 3]
    assert source.num_cut == 48 + 3 + 3 - 40
    with torch.no_grad():
        feed(feed.prepare_joined([[WORDS * 4, WORDS * 5]]).gather([0]))


def test_selected_rows_bring_no_others_along(models: Models, tmp_path: Path) -> None:
    supply = joined("gpt", models, tmp_path).prepare_joined([[A, B], [B], [C]])
    reading = supply.gather([0, 1, 2]).select(torch.tensor([1, 2])).reading
    assert reading is not None
    assert reading.batch.lengths.tolist() == [len(B) + 2, len(C) + 2]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=4), st.integers(4, 100))
def test_the_longest_sentence_gives_way_first(lengths: list[int], most: int) -> None:
    slow = list(lengths)
    while sum(slow) > most:
        slow[slow.index(max(slow))] -= 1  # BERT's rule, word by word
    kept = shorten(lengths, most)
    assert sorted(kept) == sorted(slow)
    assert sum(kept) == min(most, sum(lengths))


def test_joined_sentences_need_a_model_that_learns(models: Models, tmp_path: Path) -> None:
    frozen = feed_of({"model": {"kind": "frozen", "model": "gpt"}}, models, tmp_path)
    with pytest.raises(ConfigError, match="need a fine-tuned model"):
        frozen.prepare_joined([[A, B]])
    with pytest.raises(InputError, match="Row 1 has 0 sentences"):
        joined("gpt", models, tmp_path).prepare_joined([[A], []])
