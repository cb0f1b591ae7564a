"""Text from a model: the words it draws are those its probabilities allow, and repeatably so.

A sentence's probability is the product of its words': checked against a full table.
"""

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from polyseme.config import build
from polyseme.data.batch import EOS, FIRST_WORD
from polyseme.errors import ModelError
from polyseme.model import Model
from polyseme.objectives.bidirectional import Bidirectional
from polyseme.objectives.softmaxes import WordSoftmax
from polyseme.pretraining import GenerationConfig
from polyseme.pretraining.evaluation import score_sentences
from polyseme.pretraining.generation import GeneratedText, generate_texts, join_words
from polyseme.text.corpus import Corpus
from pretraining.making import tiny_model

LSTM: dict[str, Any] = {"kind": "lstm", "num_layers": 1, "proj_size": 16}
GPT: dict[str, Any] = {"kind": "transformer", "num_layers": 1, "dim": 16, "num_heads": 2,
                       "ffn_dim": 16, "positions": "learned", "max_positions": 12}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "elmo": {},
    "causal lstm": {
        "encoder": {"input": {"kind": "characters", "dim": 16}, "contextualizer": LSTM,
                    "direction": "forward"},
        "objective": {"kind": "causal", "softmax": {"kind": "full"}},
    },
    "gpt": {
        "encoder": {"input": {"kind": "word", "dim": 16}, "contextualizer": GPT,
                    "direction": "forward"},
        "objective": {"kind": "causal", "softmax": {"kind": "full", "tied": True}},
    },
}  # fmt: skip


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, corpus: Corpus) -> Model:
    """Random weights, made larger, so that some words are much likelier than others."""
    made = tiny_model(corpus, **MODELS[request.param])
    with torch.no_grad():
        for parameter in made.network.parameters():
            parameter.mul_(2)
    return made


def generated(model: Model, *prompts: str, **settings: Any) -> list[GeneratedText]:
    config = build(GenerationConfig, {"max_words": 8, **settings})
    return list(generate_texts(model, prompts or ("The old",), config))


def table_after(model: Model, words: list[str]) -> np.ndarray:
    """The probability of every id after these words, by way of the model's own scoring."""
    every = [[*words, word] for word in model.vocabulary.words.to_pylist()]
    return np.exp([score.parts["forward"].words[-1] for score in score_sentences(model, every)])


def test_the_same_seed_gives_the_same_text_and_another_one_another(model: Model) -> None:
    one = generated(model, samples=5, seed=3)
    assert one == generated(model, samples=5, seed=3)
    assert one != generated(model, samples=5, seed=4)
    assert len({text.words for text in one}) > 1


def test_several_at_once_are_the_same_as_one_by_one(model: Model) -> None:
    prompts = ["The old", "One young cat purrs and", "", "The old"]
    together = generated(model, *prompts, samples=3)
    alone = [text for prompt in prompts for text in generated(model, prompt, samples=3)]
    assert [text.words for text in together] == [text.words for text in alone]
    first = generated(model, *prompts, samples=1)
    assert [text.words for text in first] == [text.words for text in together[::3]]


def test_a_temperature_near_zero_always_takes_the_likeliest_word(model: Model) -> None:
    [greedy] = generated(model, temperature=0)
    words = ["The", "old"]
    for word in greedy.words:
        probabilities = table_after(model, words)
        assert word == model.vocabulary.words[int(probabilities.argmax())].as_py()
        words.append(word)
    for settings in ({"temperature": 1e-6}, {"top_k": 1}, {"top_p": 1e-9}):
        [text] = generated(model, **settings, seed=9)
        assert text.words == greedy.words


def test_words_are_drawn_as_often_as_they_are_likely(corpus: Corpus) -> None:
    model = tiny_model(corpus)
    texts = generated(model, samples=1000, max_words=1)
    counts = Counter(text.words[0] for text in texts if text.words)
    expected = table_after(model, ["The", "old"])
    for word, share in zip(model.vocabulary.words.to_pylist(), expected, strict=True):
        # Five standard deviations; the seed is fixed.
        assert abs(counts[word] / 1000 - share) < 5 * (share / 1000) ** 0.5 + 0.01


def test_only_the_likeliest_words_are_drawn_from(corpus: Corpus) -> None:
    model = tiny_model(corpus)
    shares = table_after(model, ["The", "old"])
    order = np.argsort(-shares)
    words = model.vocabulary.words.to_pylist()
    three = {text.words[:1] for text in generated(model, samples=300, max_words=1, top_k=3)}
    assert three - {()} <= {(words[place],) for place in order[:3]}
    assert len(three) == 3
    half = {text.words[:1] for text in generated(model, samples=300, max_words=1, top_p=0.5)}
    assert len(half - {()}) < len(words)
    assert half - {()} <= {(words[place],) for place in order[: len(half)]}


def test_neither_padding_nor_unknown_is_ever_drawn_unless_asked_for(corpus: Corpus) -> None:
    model = tiny_model(corpus)
    assert isinstance(model.network.objective, Bidirectional)
    softmax = model.network.objective.softmax
    assert isinstance(softmax, WordSoftmax)
    with torch.no_grad():
        softmax.bias[:FIRST_WORD] = 50
        softmax.bias[EOS] = -50
    known = set(model.vocabulary.words.to_pylist())
    for settings in ({}, {"temperature": 0}, {"top_k": 2}, {"top_p": 0.5}):
        for text in generated(model, samples=5, **settings):
            assert len(text.words) == 8
            assert known.issuperset(text.words)
    asked = generated(model, samples=5, unknown=True)
    assert {word for text in asked for word in text.words} == {"<UNK>"}


def test_what_a_text_is_worth_is_its_score(model: Model) -> None:
    for text in generated(model, "", samples=20):
        if not text.words:
            continue
        [score] = score_sentences(model, [list(text.words)])
        forward = score.parts["forward"]
        expected = forward.total if text.is_finished else sum(forward.words)
        assert text.log_probability == pytest.approx(expected, abs=1e-3)


def test_of_a_long_prompt_the_end_is_read(corpus: Corpus) -> None:
    model = tiny_model(corpus, **MODELS["gpt"])
    [long] = generated(model, "The old cat " * 20, temperature=0, max_words=30)
    assert len(long.words) == 30 or long.is_finished


def test_a_model_that_predicts_no_next_word_is_refused(corpus: Corpus) -> None:
    masked = tiny_model(
        corpus,
        encoder={
            "input": {"kind": "word", "dim": 16},
            "contextualizer": LSTM,
            "direction": "joint",
        },
        objective={"kind": "masked", "softmax": {"kind": "full"}},
    )
    with pytest.raises(ModelError, match="does not predict the next word"):
        generated(masked)


@pytest.mark.parametrize(
    ("beginning", "words", "text"),
    [
        ("The bank", ["is", "closed", ",", "he", "said", "."], "The bank is closed, he said."),
        ("", ["He", "did", "n't", "(", "or", "did", "?", ")"], "He didn't (or did?)"),
        ("She said", ['"', "No", '"', "."], 'She said "No".'),
        ('"Yes', ['"', ",", "he"], '"Yes", he'),
        ("今天", ["，", "他", "用", "Python", "。"], "今天，他用 Python。"),
        ("", [], ""),
    ],
)
def test_words_are_written_as_people_do(beginning: str, words: list[str], text: str) -> None:
    assert join_words(beginning, words) == text


SENTENCES = [["The", "old", "cat", "purrs"], ["cat"], ["an", "unseen", "word", "."] * 3]


def test_each_word_has_the_probability_the_model_gives_it(corpus: Corpus) -> None:
    model = tiny_model(corpus)
    for sentence, score in zip(SENTENCES, score_sentences(model, SENTENCES), strict=True):
        batch = model.vocabulary.batch([sentence])
        random = np.random.default_rng(0)
        targets = model.network.objective.make_targets(batch, model.vocabulary, random)
        with torch.no_grad():
            forward, backward = model.network.encoder(batch).halves
            softmax = model.network.objective.softmax
            ids = batch.ids[batch.words[0]]
            for half, part, steps in ((forward, "forward", 1), (backward, "backward", -1)):
                logits = half[0] @ softmax.weight.T + softmax.bias  # type: ignore[union-attr]
                table = logits.log_softmax(-1)
                places = range(1, len(sentence) + 1)
                expected = [float(table[place - steps, ids[place]]) for place in places]
                assert score.parts[part].words == pytest.approx(expected, abs=1e-4)
                far_end = len(sentence) + 1 if steps == 1 else 0
                total = sum(expected) + float(table[far_end - steps, ids[far_end]])
                assert score.parts[part].total == pytest.approx(total, abs=1e-4)
        assert set(targets.parts) == set(score.parts)


def test_scores_do_not_depend_on_the_other_sentences(corpus: Corpus) -> None:
    model = tiny_model(corpus)
    together = [score.total for score in score_sentences(model, SENTENCES)]
    alone = [next(iter(score_sentences(model, [sentence]))).total for sentence in SENTENCES]
    assert together == pytest.approx(alone, rel=1e-5)
