"""State carried from batch to batch, as the old programs did it, but as a value."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from legacy.published import (
    TOLERANCE,
    Published,
    each_mistake,
    each_set,
    furthest,
)
from legacy.stateful import RecurrentState, embed_stateful

from polyseme.embedding.word_embedder import Vectors
from polyseme.legacy.old_model import vocabulary_of
from polyseme.model import Model, ModelConfig

WORDS = ["she", "plays", "the", "old", "piano", "水"]
Sentences = Sequence[Sequence[str]]


def tiny(*, kind: str = "lstm", direction: str = "separate", hidden_size: int | None = 7) -> Model:
    size = "proj_size" if kind == "lstm" else "dim"
    contextualizer: dict[str, object] = {"kind": kind, size: 4}
    if kind == "lstm":
        contextualizer |= {"hidden_size": hidden_size, "cell_clip": 0.9, "output_clip": 0.9}
    if kind == "transformer":
        contextualizer["num_heads"] = 1
    torch.manual_seed(1)
    config = ModelConfig.model_validate(
        {
            "vocabulary": {"characters": "none"},
            "encoder": {
                "input": {"kind": "word", "dim": 4},
                "contextualizer": contextualizer,
                "direction": direction,
            },
            "objective": {"kind": "encoder_only"},
        }
    )
    vocabulary = vocabulary_of(WORDS, kind="none", max_characters=50)
    model = Model.new(config, vocabulary, None)
    model.network.eval()
    return model


def gap(model: Model, published: Published, *, carry: bool = True) -> float:
    """How far all ten batches are from what was published."""
    state, gaps = None, []
    for sentences, tops in zip(published.batches, published.tops, strict=True):
        found, after = embed_stateful(model, sentences, state)
        state = after if carry else None
        gaps += [furthest(each[-1], top) for each, top in zip(found, tops, strict=True)]
    assert len(gaps) == 30
    return max(gaps)


@each_set
def test_all_batches_are_as_published_when_state_is_carried(published: Published) -> None:
    assert gap(published.model(), published) <= TOLERANCE


@each_set
def test_without_carrying_they_are_not(published: Published) -> None:
    assert gap(published.model(), published, carry=False) > 0.5


@each_set
@each_mistake
def test_a_mistake_in_reading_would_be_seen(published: Published, mistake: object) -> None:
    assert callable(mistake)
    assert gap(mistake(published.model()), published) > 1e-2


@pytest.mark.parametrize("direction", ["separate", "forward"])
@pytest.mark.parametrize("hidden_size", [7, None])
def test_the_first_batch_is_what_the_encoder_gives(direction: str, hidden_size: int | None) -> None:
    model = tiny(direction=direction, hidden_size=hidden_size)
    sentences = [["she", "plays"], ["the", "old", "piano"], ["水", "plays"]]
    with torch.inference_mode():
        expected = model.network.encoder(model.vocabulary.batch(sentences)).layers.numpy()
    found, _ = embed_stateful(model, sentences)
    for row, sentence in enumerate(sentences):
        assert np.allclose(found[row], expected[:, row, 1 : 1 + len(sentence)], atol=1e-6)


def test_two_sentences_in_a_row_are_one_long_one_for_the_forward_half() -> None:
    model = tiny()
    first, state = embed_stateful(model, [["she", "plays"]])
    second, _ = embed_stateful(model, [["the", "old", "piano"]], state)
    # By hand: <S> she plays </S> <S> the old piano </S> in one go.
    batch = model.vocabulary.batch([["she", "plays"], ["the", "old", "piano"]])
    joined = torch.cat([batch.words[0, :4], batch.words[1]])[None]
    encoder = model.network.encoder
    with torch.inference_mode():
        words = encoder.inputs(batch.ids, batch.char_ids)[joined]
        assert encoder.contextualizer is not None
        whole = encoder.contextualizer(words, torch.tensor([9]))
    for layer, expected in enumerate(whole, start=1):
        forward = expected[0, :, :4].numpy()
        assert np.allclose(first[0][layer, :, :4], forward[1:3], atol=1e-6)
        assert np.allclose(second[0][layer, :, :4], forward[5:8], atol=1e-6)


def rows_alone(model: Model, batches: Sequence[Sentences]) -> dict[tuple[int, int], Vectors]:
    """Each row in a run of its own, that skips the batches which are too small to have it."""
    found = {}
    for row in range(max(map(len, batches))):
        state: RecurrentState | None = None
        for number, sentences in enumerate(batches):
            if row < len(sentences):
                [found[number, row]], state = embed_stateful(model, [sentences[row]], state)
    return found


sentence = st.lists(st.sampled_from(WORDS), max_size=5)


@given(st.lists(st.lists(sentence, max_size=4), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_rows_carry_their_own_state_whatever_stands_beside_them(batches: list[Sentences]) -> None:
    model = tiny()
    expected = rows_alone(model, batches)
    state: RecurrentState | None = None
    for number, sentences in enumerate(batches):
        found, state = embed_stateful(model, sentences, state)
        assert len(found) == len(sentences)
        for row, vectors in enumerate(found):
            assert vectors.shape == (3, len(sentences[row]), 8)
            assert np.allclose(vectors, expected[number, row], atol=1e-6)
    assert state is not None
    assert state.num_rows == max(map(len, batches))


def test_a_smaller_batch_leaves_the_other_rows_alone() -> None:
    model = tiny()
    _, before = embed_stateful(model, [["she"], ["plays", "piano"]])
    _, after = embed_stateful(model, [["the"]], before)
    for then, now in zip(before.layers, after.layers, strict=True):
        assert torch.equal(then.hidden[:, 1], now.hidden[:, 1])
        assert torch.equal(then.cell[:, 1], now.cell[:, 1])
        assert not torch.equal(then.cell[:, 0], now.cell[:, 0])


def test_a_state_that_was_passed_in_is_not_changed() -> None:
    model = tiny()
    _, state = embed_stateful(model, [["she"], ["plays"]])
    once, _ = embed_stateful(model, [["the"], ["old"]], state)
    again, _ = embed_stateful(model, [["the"], ["old"]], state)
    assert all(np.array_equal(*pair) for pair in zip(once, again, strict=True))
