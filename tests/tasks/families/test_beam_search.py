"""Beam search against greedy search, and against all sequences there are."""

from itertools import product

import pytest
import torch
from torch import Tensor

from polyseme.tasks.families.beam_search import BeamConfig, State, Step, beam_search

END = 1


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


def test_a_wider_beam_finds_what_a_greedy_one_misses() -> None:
    # The best first word leads nowhere: 0.6 x 0.5 < 0.4 x 1.
    table = torch.full((1, 4, 4, 4), 1e-9)
    table[0, END, END, 2], table[0, END, END, 3] = 0.6, 0.4
    table[0, END, 2, END], table[0, END, 2, 2], table[0, END, 3, END] = 0.5, 0.5, 1.0

    def step(state: State, words: Tensor) -> tuple[Tensor, State]:
        return table.log()[state[0], state[1], words], (state[0], words)

    state = (torch.zeros(1).long(), torch.full((1,), END))
    found = [
        beam_search(step, state, num_examples=1, end=END, config=BeamConfig(size, 2, 0.0))[0]
        for size in (1, 2)
    ]
    assert found == [[2], [3]]


def test_examples_do_not_mind_each_other() -> None:
    step, (rows, before), _ = decoder(5, 6, seed=3)
    config = BeamConfig(3, 6, 1.0)
    together = beam_search(step, (rows, before), num_examples=5, end=END, config=config)
    for example in range(5):
        alone = (rows[example : example + 1], before[:1])
        assert beam_search(step, alone, num_examples=1, end=END, config=config) == [
            together[example]
        ]


def test_what_has_no_probability_is_never_written() -> None:
    def step(state: State, words: Tensor) -> tuple[Tensor, State]:
        log_probs = torch.full((len(words), 4), -torch.inf)
        log_probs[:, END], log_probs[:, 3] = -2.0, -0.5
        return log_probs, state

    config = BeamConfig(16, 3, 1.0)  # wider than there are sequences
    [found] = beam_search(step, (torch.zeros(1, 1),), num_examples=1, end=END, config=config)
    assert found == [3, 3, 3]
