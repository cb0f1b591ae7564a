"""Encoders of Hugging Face: the laws of every embedder hold for them, too.

How a sentence longer than an encoder's positions is read: in windows that overlap.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from required import need_package

from embedding.hf_making import (
    KINDS,
    MAX_TOKENS,
    SENTENCES,
    embedder_of,
    long_sentence,
    make_folder,
    network_of,
    tokenizer_of,
)
from polyseme.embedding.hf.embedder import HfEmbedder
from polyseme.embedding.hf.network import SubwordTokenizer, windows_of, with_spaces
from polyseme.embedding.word_embedder import Truncation, Vectors
from polyseme.errors import ConfigError, InputError, ModelError

Made = tuple[Path, HfEmbedder]


@pytest.fixture(scope="module", params=KINDS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = make_folder(request.param, tmp_path_factory.mktemp("hf") / request.param)
    return folder, embedder_of(folder)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = make_folder("bert", tmp_path_factory.mktemp("hf") / "bert")
    return folder, embedder_of(folder)


def vectors_of(embedder: HfEmbedder, *sentences: list[str], **told: Any) -> list[Vectors]:
    return list(embedder.stream(sentences, **told))


def is_close(one: Vectors, other: Vectors) -> bool:
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=0, atol=2e-5))


def test_a_word_is_the_mean_of_its_tokens(made: Made) -> None:
    """Worked out with transformers alone: words with the spaces before them, one at a time."""
    folder, embedder = made
    words = SENTENCES[2]
    tokenizer, network = tokenizer_of(folder), network_of(folder)
    spaced = [words[0], *(f" {word}" for word in words[1:])]
    encoded = tokenizer(spaced, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        layers = network(**encoded, output_hidden_states=True).hidden_states
    [found] = vectors_of(embedder, words)
    [first] = vectors_of(embedder_of(folder, pooling="first"), words)
    for place in range(len(words)):
        tokens = [n for n, word in enumerate(encoded.word_ids(0)) if word == place]
        for layer, vectors in enumerate(layers):
            own = vectors[0, tokens].numpy()
            assert is_close(found[layer, place], own.mean(axis=0))
            assert is_close(first[layer, place], own[0])
    assert not is_close(found, first)  # some word has several tokens


def test_tokens_are_those_of_running_text(made: Made) -> None:
    """A word inside a sentence has other tokens than at a beginning, if the tokenizer has them."""
    folder, embedder = made
    text = "they play on the piano"
    [subwords] = embedder._tokenize([text.split()])
    ids = tokenizer_of(folder)(text, add_special_tokens=False)["input_ids"]
    assert subwords.ids.tolist() == ids


def test_the_company_of_a_sentence_changes_nothing(made: Made) -> None:
    _, embedder = made
    together = vectors_of(embedder, *SENTENCES, long_sentence(60))
    backwards = vectors_of(embedder, long_sentence(60), *SENTENCES[::-1])[::-1]
    for number, words in enumerate([*SENTENCES, long_sentence(60)]):
        [alone] = vectors_of(embedder, words)
        assert is_close(together[number], alone)
        assert is_close(backwards[number], alone)


def test_batch_invariant_gives_the_same_bits_whatever_it_is_embedded_with(made: Made) -> None:
    _, embedder = made
    sentences = [*SENTENCES, *([word, "on"] for word in ["she", "it", "they", "rain"])]
    together = vectors_of(embedder, *sentences, batch_invariant=True)
    for number, words in enumerate(sentences):
        [alone] = vectors_of(embedder, words, batch_invariant=True)
        assert np.array_equal(together[number], alone)


def test_context_reaches_upper_layers_only(bert: Made) -> None:
    _, embedder = bert
    one, other = vectors_of(embedder, ["it", "rains"], ["it", "plays"])
    assert is_close(one[0, 0], other[0, 0])
    assert not is_close(one[1, 0], other[1, 0])


def test_a_long_sentence_equals_its_windows(made: Made) -> None:
    """Each window read as a sentence of its own gives the vectors that are taken from it."""
    _, embedder = made
    words = long_sentence(70)
    [whole] = vectors_of(embedder, words)
    [subwords] = embedder._tokenize([words])
    windows = windows_of(subwords.counts, embedder.max_length)
    assert embedder.max_length == MAX_TOKENS - 2
    assert len(windows) > 3
    assert embedder.truncation(words) == Truncation(len(windows))
    for begin, end, first, last in windows:
        assert subwords.counts[begin:end].sum() <= embedder.max_length
        part = [f" {words[begin]}", *words[begin + 1 : end]] if begin else words[:end]
        [found] = vectors_of(embedder, part)
        assert is_close(whole[:, first:last], found[:, first - begin : last - begin])


def test_a_word_longer_than_what_is_read_is_cut_and_told(made: Made) -> None:
    _, embedder = made
    words = ["she", "q" * 70, "rains"]
    [found] = vectors_of(embedder, words)
    [expected] = vectors_of(embedder, ["q" * 70])
    cut = embedder.truncation(words)
    assert cut.chunks >= 2
    assert 40 <= cut.characters < 70
    assert np.isfinite(found).all()
    assert np.abs(found[:, 1]).sum() > 0
    assert expected.shape == (3, 1, 24)


def test_a_word_without_a_token_has_zeros_and_is_counted(bert: Made) -> None:
    """WordPiece drops control characters; bytes leave nothing out."""
    _, embedder = bert
    odd = ["she", "\u200d", "plays", "\x07\x08"]
    [found] = vectors_of(embedder, odd)
    [without] = vectors_of(embedder, ["she", "plays"])
    assert not found[:, [1, 3]].any()
    assert is_close(found[:, [0, 2]], without)
    assert embedder.truncation(odd) == Truncation(1, 0, unread_words=2)
    [sentence] = embedder.embed([odd])
    assert sentence.truncation.unread_words == 2
    [nothing, empty] = vectors_of(embedder, ["\u200d"], [])
    assert not nothing.any()
    assert empty.shape == (3, 0, 24)


def test_a_word_spelt_like_a_special_token_is_a_word(made: Made) -> None:
    folder, embedder = made
    special = set(tokenizer_of(folder).all_special_ids) - {1}  # but for the unknown
    [subwords] = embedder._tokenize([["she", "[SEP]", "</s>", "[PAD]", "<s>", "[MASK]"]])
    if "[UNK]" in tokenizer_of(folder).get_vocab():
        assert not special & set(subwords.ids.tolist())
    else:
        assert not set(tokenizer_of(folder).all_special_ids) & set(subwords.ids.tolist())


def test_texts_are_read_only_if_it_is_told_how(bert: Made) -> None:
    _, embedder = bert
    with pytest.raises(ModelError, match="does not say how"):
        embedder.embed("She plays the piano.")
    with pytest.raises(InputError, match="list of words was expected"):
        list(embedder.stream(["she plays"]))


def test_bfloat16_is_close_to_float32(bert: Made) -> None:
    folder, embedder = bert
    [full] = vectors_of(embedder, SENTENCES[0])
    [half] = vectors_of(embedder_of(folder, precision="bfloat16"), SENTENCES[0])
    assert not np.array_equal(half, full)
    size = np.linalg.norm(half, axis=-1) * np.linalg.norm(full, axis=-1)
    assert ((half * full).sum(axis=-1) / size).min() > 0.99


def test_choices_nobody_knows_are_refused(bert: Made) -> None:
    folder, embedder = bert
    with pytest.raises(ConfigError, match="pooling='max' is not one of 'mean', 'first'"):
        embedder_of(folder, pooling="max")
    with pytest.raises(ConfigError, match="precision="):
        embedder_of(folder, precision="float8")
    with pytest.raises(ConfigError, match="layers=9"):
        embedder.stream(SENTENCES, layers=9)


def test_the_environment_tells_the_libraries_and_no_kernel(bert: Made) -> None:
    _, embedder = bert
    told = embedder.environment
    assert told["kernel"] == "none"
    assert {"torch", "transformers", "tokenizers", "processor", "threads"} <= told.keys()


def test_of_a_model_with_a_decoder_the_encoder_is_taken(tmp_path: Path) -> None:
    folder = make_folder("t5", tmp_path / "t5")
    embedder = embedder_of(folder)
    [found] = vectors_of(embedder, SENTENCES[0])
    [subwords] = embedder._tokenize([SENTENCES[0]])
    ids = torch.tensor([[*subwords.before, *subwords.ids.tolist(), *subwords.after]])
    with torch.no_grad():
        top = network_of(folder).encoder(input_ids=ids).last_hidden_state[0].numpy()
    starts = len(subwords.before) + subwords.starts
    for place, count in enumerate(subwords.counts):
        own = top[starts[place] : starts[place] + count].mean(axis=0)
        assert is_close(found[-1, place], own)
    assert embedder.max_length == 510  # relative positions set no limit


LIMIT = 16


@given(st.lists(st.integers(0, LIMIT), min_size=1, max_size=80))
def test_every_word_is_taken_once_from_a_window_that_reads_it(counts: list[int]) -> None:
    windows = windows_of(np.array(counts), LIMIT)
    taken = [word for _, _, first, last in windows for word in range(first, last)]
    assert taken == list(range(len(counts)))
    for begin, end, first, last in windows:
        assert begin <= first <= last <= end
        assert sum(counts[begin:end]) <= LIMIT
    for one, other in pairwise(windows):
        assert one.begin < other.begin <= one.end < other.end


def test_windows_share_a_quarter_and_meet_in_its_middle() -> None:
    windows = windows_of(np.full(40, 1), LIMIT)
    assert windows == [(0, 16, 0, 14), (12, 28, 14, 26), (24, 40, 26, 40)]


@given(st.lists(st.integers(0, 3), min_size=60, max_size=300))
def test_a_word_away_from_the_ends_has_context_on_both_sides(counts: list[int]) -> None:
    """An eighth of the window at least, but for what words of three tokens do not fit into."""
    limit = 64
    for begin, end, first, last in (windows := windows_of(np.array(counts), limit)):
        if begin > 0:
            assert sum(counts[begin:first]) >= limit // 8 - 3
        if end < len(counts):
            assert sum(counts[last:end]) >= limit // 8 - 3
    assert len(windows) <= 1 + -(-sum(counts) // (limit // 2))


@pytest.mark.parametrize(
    ("words", "spaced"),
    [
        (["she", "plays", "."], ["she", " plays", " ."]),
        (["今天", "下雨", "，", "Ada", "说"], ["今天", "下雨", "，", "Ada", "说"]),
        (["ครับ", "ผม"], ["ครับ", "ผม"]),
        (["비가", "온다"], ["비가", " 온다"]),
        ([], []),
    ],
)
def test_a_space_goes_where_running_text_has_one(words: list[str], spaced: list[str]) -> None:
    assert with_spaces(words) == spaced


@pytest.mark.parametrize(
    ("scheme", "is_split"), [("always", False), ("always", True), ("first", False)]
)
def test_tokens_of_a_sentencepiece_tokenizer_are_those_of_running_text(
    scheme: str, is_split: bool
) -> None:
    """As XLM-R and T5 have it: the space before a word is a letter of its first token."""
    tokenizers = need_package("tokenizers")
    pieces = ["<unk>", "▁", *"abcdefghijklmnopqrtuvwxyz.", "▁the", "▁play", "s", "▁on"]
    table = [(piece, -float(len(pieces) - n)) for n, piece in enumerate(pieces)]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(table, 0, False))
    metaspace = tokenizers.pre_tokenizers.Metaspace(prepend_scheme=scheme)
    whole = [tokenizers.pre_tokenizers.WhitespaceSplit()] if is_split else []
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([*whole, metaspace])
    text = "the play on the plays ."
    [found] = SubwordTokenizer(tokenizer, max_tokens=64)([text.split()])
    assert found.ids.tolist() == tokenizer.encode(text).ids
    assert found.counts.tolist() == [1, 1, 1, 1, 2, 2]
