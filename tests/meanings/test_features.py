"""What is said of a use: never the word itself, always what the model substituter in its place."""

from pathlib import Path

import numpy as np
import pytest
import torch
from embedding.making import POINTS, tiny
from laws.cases import WORDS

import polyseme
from meanings.making import make_corpus
from polyseme.devices import num_threads
from polyseme.embedding.embedder import Embedder
from polyseme.meanings.features.use_encoder import LexicalSubstituter, ModelUseEncoder
from polyseme.meanings.features.use_features import Floats, calibration_folder
from polyseme.objectives.bidirectional import Bidirectional
from polyseme.text.corpus import Corpus

MODEL = Path(__file__).parents[2] / "models" / "en-mini"
SENTENCES = [[*WORDS[:5]], [*WORDS[3:9]], [WORDS[0]]]
SPANS = np.array([[2, 3], [0, 1], [0, 1]])
PREDICTING = ["elmo", "lstm forward", "gpt", "elmo of transformers"]


@pytest.mark.parametrize("point", PREDICTING)
def test_the_context_of_a_use_does_not_know_the_word(point: str) -> None:
    describe = ModelUseEncoder(tiny(point))
    others = [list(words) for words in SENTENCES]
    for words, (begin, _) in zip(others, SPANS, strict=True):
        words[begin] = "unseen"
    one, two = describe(SENTENCES, SPANS), describe(others, SPANS)
    assert np.abs(one.context - two.context).max() < 1e-6
    assert np.abs(one.bag - two.bag).max() < 1e-6
    assert one.substitutes is not None
    assert two.substitutes is not None
    assert np.array_equal(one.substitutes, two.substitutes)


@pytest.mark.parametrize("point", PREDICTING)
def test_the_context_of_a_use_knows_the_words_around_it(point: str) -> None:
    """The control: another word before it is seen."""
    describe = ModelUseEncoder(tiny(point))
    other = [["unseen", *SENTENCES[0][1:]]]
    one, two = describe(SENTENCES[:1], SPANS[:1]), describe(other, SPANS[:1])
    assert np.abs(one.context - two.context).max() > 1e-3


@pytest.mark.parametrize("point", sorted(set(POINTS) - set(PREDICTING) - {"plain elmo"}))
def test_an_encoder_that_has_seen_the_word_gives_its_own_vector(point: str) -> None:
    embedder = tiny(point)
    is_causal = embedder.model.config.objective.kind == "causal"  # without context, but it predicts
    found = ModelUseEncoder(embedder)(SENTENCES, SPANS)
    if is_causal:
        assert found.substitutes is not None
        return
    assert found.substitutes is None
    own = [
        layers[-1, begin]
        for layers, (begin, _) in zip(embedder.stream(SENTENCES), SPANS, strict=True)
    ]
    assert np.array_equal(found.context, np.stack(own))


def test_states_at_the_edges_are_those_of_the_special_tokens() -> None:
    """Found another way: one batch through the network, BOS and EOS kept."""
    embedder = tiny("elmo")
    model = embedder.model
    with torch.no_grad():
        forward, backward = model.network.encoder(model.vocabulary.batch(SENTENCES)).halves
    found = ModelUseEncoder(embedder)(SENTENCES, SPANS).context
    for row, (words, (begin, end)) in enumerate(zip(SENTENCES, SPANS, strict=True)):
        assert end <= len(words)
        before, after = forward[row, begin], backward[row, end + 1]  # position 0 is BOS
        assert np.abs(found[row] - torch.cat([before, after]).numpy()).max() < 1e-5


def test_logits_are_the_product_of_both_directions_over_the_frequency() -> None:
    embedder = tiny("elmo")
    substituter = LexicalSubstituter.of(embedder)
    assert substituter is not None
    objective, vocabulary = embedder.model.network.objective, embedder.model.vocabulary
    assert isinstance(objective, Bidirectional)
    states = ModelUseEncoder(embedder)(SENTENCES, SPANS).context
    number = len(vocabulary.words)
    found = substituter.logits(states, number).log_softmax(dim=1)
    halves = torch.from_numpy(states).chunk(2, dim=1)
    log_probs = torch.zeros(len(states), number)
    for word in range(number):
        targets = torch.full((len(states),), word + vocabulary.size - number)
        table = embedder.model.network.word_embeddings
        for half in halves:
            log_probs[:, word] += objective.softmax.log_probabilities(
                half, targets, table=table
            ).detach()
    log_probs -= torch.log(torch.tensor(vocabulary.counts / vocabulary.counts.sum())).float()
    assert (found - log_probs.log_softmax(dim=1)).abs().max() < 1e-4


def test_a_sentence_with_many_uses_is_read_once_and_gives_each_of_them() -> None:
    describe = ModelUseEncoder(tiny("elmo"))
    words = SENTENCES[1]
    every = [(n, n + 1) for n in range(len(words))]
    ((contexts, bags),) = list(describe.stream([words], [every]))
    alone = describe([words] * len(words), np.array(every))
    assert np.abs(contexts - alone.context).max() < 1e-5
    assert np.abs(bags - alone.bag).max() < 1e-5


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("point", ["elmo", "plain elmo"])
def test_reading_only_what_is_around_a_use_gives_the_same(point: str, precision: str) -> None:
    """Found another way: all of the sentence is read, twice."""
    embedder = tiny(point, precision=precision)
    assert embedder.reads_around
    describe = ModelUseEncoder(embedder)
    random = np.random.default_rng(0)
    sentences, spans = [], []
    for number in range(300):
        words = [str(word) for word in random.choice([*WORDS, "unseen"], 1 + number % 23)]
        begin = int(random.integers(0, len(words)))
        spans.append((begin, int(random.integers(begin, len(words))) + 1))
        sentences.append(words)
    tolerance = 1e-5 if precision == "float32" else 0.05
    quick = describe.stream_single(sentences, spans)
    whole = describe.stream(sentences, [[span] for span in spans])
    for (one, bag), (other, other_bag) in zip(quick, whole, strict=True):
        assert np.abs(one - other).max() < tolerance
        assert np.abs(bag - other_bag).max() < tolerance


def test_contexts_are_without_what_moves_them_in_a_text_about_nothing() -> None:
    """By other words drawn at random than the ones that decide what is taken out."""
    embedder = polyseme.load(MODEL, threads=1)
    assert isinstance(embedder, Embedder)
    vocabulary = embedder.model.vocabulary
    shares = vocabulary.counts / vocabulary.counts.sum()
    drawn = np.random.default_rng(7).choice(len(shares), (300, 9), p=shares).tolist()
    sentences = [[vocabulary.words[number].as_py() for number in row] for row in drawn]
    spans = np.full((300, 2), (4, 5))
    describe = ModelUseEncoder(embedder)
    whole = np.concatenate([c for c, _ in describe.stream_single(sentences, [(4, 5)] * 300)])
    found = describe.without_syntax(describe(sentences, spans)).context
    # A twentieth of the directions of each side, and no other.
    assert np.linalg.matrix_rank(whole - found, tol=1e-2) == 2 * round(0.05 * embedder.dim / 2)
    # They had a third of all that varies.
    assert found.var(axis=0).sum() < 0.7 * whole.var(axis=0).sum()
    # Taken out once, nothing of them is left; and no bit depends on what other uses come with it.
    syntax = describe.syntax
    assert syntax is not None
    assert np.abs(syntax.removed(found) - found).max() < 1e-5
    assert np.array_equal(syntax.removed(whole[:1]), syntax.removed(whole)[:1])


def test_syntax_that_was_kept_is_the_same_and_damaged_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = make_corpus(tmp_path, [("Rain fell.", {})])

    def syntax(corpus: Corpus | None) -> tuple[Floats, ...]:
        found = ModelUseEncoder(polyseme.load(MODEL, threads=1), corpus).syntax
        assert found
        return found.directions

    unkept = syntax(None)
    found = [syntax(corpus)]
    [path] = calibration_folder(corpus.folder).iterdir()
    with monkeypatch.context() as patch:
        patch.delattr(LexicalSubstituter, "find_syntax")
        found.append(syntax(corpus))
    path.write_bytes(b"no Parquet")
    found.append(syntax(corpus))
    path.unlink()
    path.mkdir()  # cannot be read or written
    found.append(syntax(corpus))
    for each in found:
        assert all(np.array_equal(*pair) for pair in zip(each, unkept, strict=True))


def test_no_bit_depends_on_the_number_of_threads() -> None:
    random = np.random.default_rng(0)
    sentences = [random.choice(WORDS, 1 + n % 23).tolist() for n in range(1500)]
    begins = [int(random.integers(len(words))) for words in sentences]
    describe = ModelUseEncoder(tiny("elmo"))
    found = []
    for threads in (1, 3):
        with num_threads(threads):
            each = describe.stream_single(sentences, [(begin, begin + 1) for begin in begins])
            found.append(np.concatenate([context for context, _ in each]))
    one, several = found
    assert np.array_equal(one, several)


def test_a_use_in_a_very_long_sentence_is_read_with_what_is_near() -> None:
    embedder = tiny("elmo")
    words = [WORDS[n % len(WORDS)] for n in range(3 * embedder.max_length)]
    at = len(words) // 2
    describe = ModelUseEncoder(embedder)
    near = words[at - embedder.max_length : at + 1 + embedder.max_length]
    spans = np.array([[at, at + 1]]), np.array([[embedder.max_length, embedder.max_length + 1]])
    one, two = describe([words], spans[0]), describe([near], spans[1])
    assert np.array_equal(one.context, two.context)


def test_frequent_words_weigh_less_in_the_bag() -> None:
    embedder = tiny("elmo")
    counts = embedder.model.vocabulary.counts
    describe = ModelUseEncoder(embedder)
    weights = describe._weights
    shares = counts / counts.sum()
    for word, share in zip(embedder.model.vocabulary.words.to_pylist(), shares, strict=True):
        assert weights[word] == pytest.approx(1e-3 / (1e-3 + share))
