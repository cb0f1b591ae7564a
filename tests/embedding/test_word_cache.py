"""Layer 0 of a word depends on the word alone, and what is remembered only makes it faster."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from laws.cases import WORDS as KNOWN
from torch import Tensor

from embedding.making import POINTS, tiny
from polyseme.data.batch import FIRST_ROW
from polyseme.embedding import word_cache
from polyseme.embedding.embedder import Embedder
from polyseme.embedding.word_cache import WordEmbeddingCache

WORDS = [f"{'abcdefghij'[n % 10] * (n % 23)}n{n}" for n in range(90)]


def vectors_of(embedder: Embedder) -> tuple[WordEmbeddingCache, list[int]]:
    """Its layer 0, and how many words each call of the network was for."""
    model = embedder.model
    asked: list[int] = []

    def inputs(ids: Tensor, characters: Tensor) -> Tensor:
        asked.append(len(ids))
        found: Tensor = model.network.encoder.inputs(ids, characters)
        return found

    dim = model.config.encoder.contextualizer.dim
    return WordEmbeddingCache(inputs, model.vocabulary, dim=dim, device="cpu"), asked


@torch.no_grad()
def by_hand(embedder: Embedder, word: str) -> Tensor:
    """Layer 0 of one word, straight through the network."""
    batch = embedder.model.vocabulary.batch([[word]])
    found: Tensor = embedder.model.network.encoder.inputs(batch.ids, batch.char_ids)[-1]
    return found


@pytest.mark.parametrize("point", POINTS)
@torch.no_grad()
def test_they_are_the_networks_own(point: str) -> None:
    embedder = tiny(point)
    found = vectors_of(embedder)[0](WORDS)
    for place, word in enumerate(WORDS):
        assert torch.allclose(found[FIRST_ROW + place], by_hand(embedder, word), atol=1e-6)


@torch.no_grad()
def check_company(embedder: Embedder, number: int) -> None:
    """Alone or beside others, before or after others: the same bits."""
    alone = {word: vectors_of(embedder)[0]([word])[FIRST_ROW] for word in WORDS}
    random = np.random.default_rng(5)
    for _ in range(number):
        words = vectors_of(embedder)[0]
        for size in random.integers(1, len(WORDS), 3):
            chosen = [str(word) for word in random.choice(WORDS, size, replace=False)]
            for word, found in zip(chosen, words(chosen)[FIRST_ROW:], strict=True):
                assert torch.equal(found, alone[word])


@pytest.mark.parametrize("point", POINTS)
def test_a_words_bits_do_not_depend_on_the_others(point: str) -> None:
    check_company(tiny(point), 8)


def test_a_layer_that_looks_at_other_words_is_noticed() -> None:
    embedder = tiny("elmo")
    inputs = embedder.model.network.encoder.inputs
    inputs.register_forward_hook(lambda module, given, found: found - 1e-4 * found.mean(dim=0))
    with pytest.raises(AssertionError):
        check_company(embedder, 2)


@torch.no_grad()
def test_a_word_met_lately_is_not_worked_out_again() -> None:
    words, asked = vectors_of(tiny("elmo"))
    first = words(WORDS)
    calls = len(asked)
    assert torch.equal(words(WORDS), first)
    words(WORDS[:3])
    assert len(asked) == calls
    words(["another"])
    assert len(asked) == calls + 1


@torch.no_grad()
def test_memory_is_bounded_and_words_in_use_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cache, "_NUM_WORDS", 10)
    words, asked = vectors_of(tiny("elmo"))
    expected = {word: words([word])[FIRST_ROW] for word in WORDS}
    words(["kept"])
    calls = len(asked)
    for word in WORDS:
        found = words(["kept", word])  # `kept` is asked for again and again
        assert torch.equal(found[FIRST_ROW + 1], expected[word])
        assert words._young.num_words <= 10
    assert len(asked) == calls + len(WORDS)  # forgotten, each worked out once more; `kept` never


@torch.no_grad()
def test_more_words_than_can_be_remembered_are_all_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cache, "_NUM_WORDS", 10)
    few = vectors_of(tiny("elmo"))[0](WORDS)
    monkeypatch.undo()
    assert np.array_equal(few, vectors_of(tiny("elmo"))[0](WORDS))


def test_threads_may_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cache, "_NUM_WORDS", 10)  # much is forgotten
    words, _ = vectors_of(tiny("word2vec"))
    with torch.no_grad():
        expected = {word: words([word])[FIRST_ROW] for word in KNOWN}

    def look_up(number: int) -> bool:
        chosen = [KNOWN[(number * 5 + n * 7) % len(KNOWN)] for n in range(6)]
        with torch.no_grad():
            found = words(chosen)[FIRST_ROW:]
        return all(torch.equal(a, expected[w]) for a, w in zip(found, chosen, strict=True))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert all(threads.map(look_up, range(800)))
    finally:
        sys.setswitchinterval(before)
