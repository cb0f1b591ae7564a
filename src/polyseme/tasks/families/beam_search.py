"""The best sequence that a decoder can write, searched for among the most promising ones.

    in   `step`: a state and the last words -> log p of every next word, and the next state
    out  for each example the words before the end

A beam of one takes the best word each time, which is greedy search. What is written to its end
leaves the beam, which is then so much smaller (Sutskever et al. 2014). A beam that no sequence has
to leave finds the best of all.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

State: TypeAlias = tuple[Tensor, ...]
"""What a decoder carries on; the first dimension of each part is that of the sequences."""
Step: TypeAlias = Callable[[State, Tensor], tuple[Tensor, State]]
"""(N, ...), (N,) -> (N, V), (N, ...)"""


class BeamConfig(NamedTuple):
    """How wide and how far."""

    size: int
    max_length: int
    """Words that are written at most, the end counted."""
    length_penalty: float
    """Log p is divided by the length to this power before sequences are compared."""


class _Finished:
    """The best sequence of each example so far."""

    def __init__(self, num_examples: int) -> None:
        self.scores = [-float("inf")] * num_examples
        self.words: list[list[int]] = [[] for _ in range(num_examples)]

    def add(self, example: int, score: float, words: list[int]) -> None:
        """One more; of two that are alike the first is kept."""
        if score > self.scores[example]:
            self.scores[example], self.words[example] = score, words


def beam_search(
    step: Step, state: State, *, num_examples: int, end: int, config: BeamConfig
) -> list[list[int]]:
    """For each example the sequence with the highest score, without its end.

    `state`: of B examples. `end`: the word that ends a sequence, and also begins it.
    """
    size, device = config.size, state[0].device
    state = _repeated(state, size)
    words = torch.full((num_examples, size), end, device=device)
    scores = torch.full((num_examples, size), -torch.inf, device=device)
    scores[:, 0] = 0  # all others are copies of the first until it has been written on
    written = words.new_empty((num_examples, size, 0))
    finished = _Finished(num_examples)
    for length in range(1, config.max_length + 1):
        log_probs, state = step(state, words.flatten())
        following = scores[..., None] + log_probs.view(num_examples, size, -1)  # (B, N, V)
        scores, index = following.flatten(start_dim=1).topk(size, dim=1)
        parent, words = index // following.shape[-1], index % following.shape[-1]
        state = _reordered(state, parent)
        written = torch.cat([_taken(written, parent), words[..., None]], dim=-1)
        is_done = words == end if length < config.max_length else torch.ones_like(words).bool()
        weight = length**config.length_penalty
        for example, place in (is_done & (scores > -torch.inf)).nonzero().tolist():
            found = [word for word in written[example, place].tolist() if word != end]
            finished.add(example, float(scores[example, place]) / weight, found)
        scores = scores.masked_fill(is_done, -torch.inf)
        if not _may_improve(scores, finished, config):
            break
    return finished.words


def _may_improve(scores: Tensor, finished: _Finished, config: BeamConfig) -> bool:
    """Whether any sequence that is being written could still become its example's best: log p only
    falls, and is divided by the longest length at most."""
    most = scores.amax(dim=1) / config.max_length**config.length_penalty
    return any(best > known for best, known in zip(most.tolist(), finished.scores, strict=True))


def _repeated(state: State, size: int) -> State:
    return tuple(part.repeat_interleave(size, dim=0) for part in state)


def _reordered(state: State, parent: Tensor) -> State:
    """The state of each sequence is that of the one it goes on from."""
    num_examples, size = parent.shape
    first = torch.arange(num_examples, device=parent.device)[:, None] * size
    rows = (first + parent).flatten()
    return tuple(part[rows] for part in state)


def _taken(written: Tensor, parent: Tensor) -> Tensor:
    return written.gather(1, parent[..., None].expand(-1, -1, written.shape[-1]))
