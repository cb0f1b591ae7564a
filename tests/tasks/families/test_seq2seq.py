"""A text for a text: words by number, what is copied, and what is shown.

Beam search against greedy search, and against all sequences there are.
"""

from collections.abc import Iterator
from itertools import product
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from polyseme.errors import InputError, ModelError
from polyseme.tasks.families.seq2seq import (
    END,
    LONGEST_SOURCE,
    UNKNOWN,
    AttentionDecoder,
    BeamConfig,
    Output,
    PredictedText,
    Seq2Seq,
    Seq2SeqConfig,
    State,
    Step,
    TargetVocabulary,
    Translated,
    all_log_probs,
    beam_search,
)
from polyseme.tasks.texts import TextReader
from tasks.making import config_of, examples_for, task_of


def decoder(num_examples: int, num_words: int, seed: int) -> tuple[Step, State, Tensor]:
    """Words whose probability depends on the example and on the two words before; the table."""
    generator = torch.Generator().manual_seed(seed)
    shape = (num_examples, num_words, num_words, num_words)
    table = (2 * torch.randn(shape, generator=generator)).log_softmax(dim=-1)

    def step(state: State, words: Tensor) -> tuple[Tensor, State]:
        example, before = state
        return table[example, before, words], (example, words)

    return step, (torch.arange(num_examples), torch.full((num_examples,), END)), table


def log_prob(table: Tensor, words: list[int]) -> float:
    """Of a sequence of one example, its end included if it has one."""
    before, last, total = END, END, 0.0
    for word in words:
        total += float(table[before, last, word])
        before, last = last, word
    return total


def every_sequence(num_words: int, length: int) -> list[list[int]]:
    """All that end within so many words, and all that are cut there."""
    others = [word for word in range(num_words) if word != END]
    ended = [[*words, END] for n in range(length) for words in product(others, repeat=n)]
    return ended + [list(words) for words in product(others, repeat=length)]


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_a_beam_of_one_is_greedy(seed: int, penalty: float) -> None:
    step, state, table = decoder(3, 6, seed)
    config = BeamConfig(1, 9, penalty)
    found = beam_search(step, state, num_examples=3, end=END, config=config)
    for example in range(3):
        before, last, expected = END, END, list[int]()
        while len(expected) < 9:
            before, last = last, int(table[example, before, last].argmax())
            if last == END:
                break
            expected.append(last)
        assert found[example] == expected


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_beam_that_holds_all_sequences_finds_the_best(length: int, penalty: float) -> None:
    num_words = 5
    step, state, table = decoder(4, num_words, seed=7)
    config = BeamConfig(num_words**length, length, penalty)
    found = beam_search(step, state, num_examples=4, end=END, config=config)
    for example in range(4):
        sequences = every_sequence(num_words, length)
        scores = [log_prob(table[example], words) / len(words) ** penalty for words in sequences]
        best = sequences[scores.index(max(scores))]
        assert found[example] == [word for word in best if word != END]


def test_what_has_no_probability_is_never_written() -> None:
    def step(state: State, words: Tensor) -> tuple[Tensor, State]:
        log_probs = torch.full((len(words), 4), -torch.inf)
        log_probs[:, END], log_probs[:, 3] = -2.0, -0.5
        return log_probs, state

    config = BeamConfig(16, 3, 1.0)  # wider than there are sequences
    [found] = beam_search(step, (torch.zeros(1, 1),), num_examples=1, end=END, config=config)
    assert found == [3, 3, 3]


VOCABULARY = TargetVocabulary(("a", "b"))  # 3 and 4
FAMILY = Seq2Seq(Seq2SeqConfig(), vocabulary=VOCABULARY)


class _Spaces(TextReader):
    """Words between spaces, a sentence a line."""

    def __init__(self) -> None:
        super().__init__(None)

    def split(self, text: str) -> tuple[str, ...]:
        return tuple(text.split())

    def sentences(self, text: str) -> Iterator[tuple[str, ...]]:
        return (tuple(line.split()) for line in text.splitlines() if line.strip())


def test_words_of_the_source_that_nobody_knows_have_numbers_of_their_own() -> None:
    example = Translated(("b", "Zoë", "a", "Ada", "Zoë"), ("Ada", "a", "Eve"))
    columns = FAMILY.encode([example], with_gold=True)
    assert np.asarray(columns["source"][0]).tolist() == [4, 5, 3, 6, 5]
    assert np.asarray(columns["target"][0]).tolist() == [6, 3, UNKNOWN, END]
    assert VOCABULARY.decode([6, 3, 5], example.sentences[0]) == ("Ada", "a", "Zoë")
    assert FAMILY.predicted(example, [6, 3]) == PredictedText("b Zoë a Ada Zoë", "Ada a")


def test_the_vocabulary_has_the_most_frequent_words() -> None:
    examples = [Translated(("x",), tuple("bbbaaacd")), Translated(("x",), ("d",))]
    config = Seq2SeqConfig(vocabulary=3)
    assert Seq2Seq(config).fit(examples).vocabulary.words == ("a", "b", "d")
    with pytest.raises(InputError, match="all targets are empty"):
        Seq2Seq(config).fit([Translated(("x",), ())])


@pytest.mark.parametrize("name", ["written, static", "written, frozen", "written, pretrained"])
def test_the_loss_is_that_of_the_probabilities_words_are_chosen_by(
    name: str, models: dict[str, Path], tmp_path: Path
) -> None:
    task, data = task_of(config_of(name, models, tmp_path), examples_for(name))
    task.module.eval()
    network, batch = task.module.network, data.batch(np.arange(6))
    assert isinstance(network, AttentionDecoder)
    with torch.no_grad():
        inputs = task.module.embeddings(batch.features)
        losses = network.losses(inputs, batch)
        source, state = network._read(inputs, batch)
        for example, target in enumerate(batch["target"].tolist()):
            own = source.select(torch.tensor([example]))
            hidden = tuple(part[example : example + 1] for part in state)
            before, total, length = END, 0.0, 0
            for word in target[: target.index(END) + 1]:
                output, hidden = network._write(own, hidden, torch.tensor([[before]]))
                numbers = max(network.num_words, int(source.words.max()) + 1)
                log_probs = all_log_probs(output, own.words, numbers)[0, 0]
                assert float(log_probs.exp().sum()) == pytest.approx(1, abs=1e-4)
                total, length, before = total - float(log_probs[word]), length + 1, word
            assert float(losses[example]) == pytest.approx(total / length, rel=1e-3)


def test_what_is_copied_has_the_attention_of_all_its_places() -> None:
    output = Output(
        torch.tensor([[[0.0, 0.2, 0.1, 0.3, 0.4]]]).log(),
        torch.tensor([[[0.5, 0.3, 0.2]]]),
        torch.tensor([[0.25]]),
    )
    found = all_log_probs(output, torch.tensor([[5, 3, 5]]), 7)[0, 0]
    expected = [0.0, 0.15, 0.075, 0.75 * 0.3 + 0.25 * 0.3, 0.3, 0.25 * 0.7, 0.0]
    assert found.exp().tolist() == pytest.approx(expected)
    assert float(found[5]) == pytest.approx(log(0.175))


def test_a_decoder_that_does_not_copy_never_writes_what_is_not_in_its_vocabulary(
    models: dict[str, Path], tmp_path: Path
) -> None:
    config = config_of("written, frozen", models, tmp_path)  # knows five words
    network = config.network
    assert isinstance(network, Seq2SeqConfig)
    decoder = network.decoder.model_copy(update={"copies": False, "beam": 3})
    config = config.model_copy(update={"network": network.model_copy(update={"decoder": decoder})})
    task, data = task_of(config, examples_for("written, frozen"))
    known = set(task.family.to_json()["target_words"])
    written = {word for each in task.decode(data) for word in each.as_json()["text"].split()}
    assert written <= known
    assert task.module(data.batch(np.arange(4)))["loss"].isfinite()


def test_what_is_written_has_a_longest_length(models: dict[str, Path], tmp_path: Path) -> None:
    examples = examples_for("written, static")
    task, data = task_of(config_of("written, static", models, tmp_path), examples)
    for each in task.decode(data):
        assert len(each.as_json()["text"].split()) <= 14
    long = [Translated(("bank",), ("bank",) * 99)]
    columns = task.family.encode(long, with_gold=True)
    assert len(columns["target"][0]) == 14


def test_damaged_weights_write_nothing(models: dict[str, Path], tmp_path: Path) -> None:
    examples = examples_for("written, static")
    task, data = task_of(config_of("written, static", models, tmp_path), examples)
    network = task.module.network
    assert isinstance(network, AttentionDecoder)
    with torch.no_grad():
        network.combine.weight.fill_(float("nan"))
    with pytest.raises(ModelError, match="damaged"):
        task.decode(data)


def test_characters_are_words_where_the_data_says_so() -> None:
    by_character = Translated(("学而", "时"), ("习之",), by_character=True).with_words(_Spaces())
    assert by_character.sentences == (("学", "而", "时"),)
    family = Seq2Seq(Seq2SeqConfig()).fit([by_character])
    assert family.by_character
    assert family.restore(family.to_json()) == family
    [found] = family.of_texts(("学而 时",), _Spaces())
    assert found.sentences == (("学", "而", "时"),)
    assert family.predicted(found, [3, 4]) == PredictedText("学而时", "之习")
    assert family.score([by_character], [PredictedText("", "习之")]).value("chrf") == 1


def test_a_text_is_read_by_sentence_or_whole() -> None:
    texts = ("a b\nc",)
    assert [each.sentences[0] for each in FAMILY.of_texts(texts, _Spaces())] == [("a", "b"), ("c",)]
    whole = Seq2Seq(Seq2SeqConfig(by_sentence=False), vocabulary=VOCABULARY)
    assert [each.sentences[0] for each in whole.of_texts(texts, _Spaces())] == [("a", "b", "c")]
    with pytest.raises(InputError, match="no word"):
        list(FAMILY.of_texts(("",), _Spaces()))
    with pytest.raises(InputError, match="no word"):
        list(whole.of_texts(("",), _Spaces()))
    with pytest.raises(InputError, match=f"up to {LONGEST_SOURCE:,}"):
        list(whole.of_texts(("word " * 200_000,), _Spaces()))


def test_a_megabyte_of_text_is_read_sentence_by_sentence(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "bank note\n" * 100_000
    examples = FAMILY.of_texts((text,), _Spaces())  # as they come, not all at once
    assert next(examples).sentences == (("bank", "note"),)
    task, _ = task_of(
        config_of("written, static", models, tmp_path), examples_for("written, static")
    )
    monkeypatch.setattr("polyseme.tasks.task._WINDOW", 4)
    few = [next(examples) for _ in range(10)]
    assert len(list(task.label(few))) == 10
    [first, *others] = task.label([Translated(("bank",) * 3000, ()), *few[:2]])
    assert isinstance(first, PredictedText)
    assert len(others) == 2


@pytest.mark.parametrize(
    "told",
    [
        {"target_words": [], "by_character": True},
        {"target_words": ["a", "a"], "by_character": True},
        {"target_words": ["a", 3], "by_character": True},
        {"target_words": ["a"], "by_character": 1},
        {"target_words": "ab", "by_character": True},
    ],
)
def test_a_folder_that_tells_nonsense_is_refused(told: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="target_words"):
        FAMILY.restore(told)


def test_what_is_shown_is_text_and_nothing_else() -> None:
    hostile = PredictedText("a\x1b[2J", "<script>")
    assert "<script>" not in hostile._repr_html_()
    assert "\x1b" not in str(hostile.__rich__())
    assert repr(PredictedText("a b", "c d")) == "<Predicted: c d, a b>"
    assert hostile.as_json() == {"source": "a\x1b[2J", "text": "<script>"}
