"""Attention between a question and the windows of its passage, and pointers into them.

in   S rows: B questions, then all windows; `example_of` says whose each is
     and `is_asked`, 1 at words of a window that are in the question, too
out  for every word of a window log p that the answer begins there, and that it ends there; each
     adds up to one over all windows of a passage
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from polyseme.encoders.lstm import Lstm, LstmConfig
from polyseme.tasks.embeddings.dropout import ByteDropout
from polyseme.tasks.embeddings.features import InputDims, TaskInputs
from polyseme.tasks.families.family import Network, TaskBatch
from polyseme.tasks.families.layers import (
    Context,
    ContextConfig,
    check_finite,
    number_in_example,
    select_rows,
)

_NEVER = -1e4  # log p of what is not there: finite, so that its gradient is 0 and not nan


class FoundSpan(NamedTuple):
    """An answer: the window, its first and its last word in it, and how probable it is."""

    window: int
    first: int
    last: int
    probability: float


class Likeness(nn.Module):
    """How well each word of one text goes with each of another: w1 x + w2 y + w3 (x * y)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.first = nn.Linear(dim, 1, bias=False)
        self.second = nn.Linear(dim, 1, bias=False)
        self.both = nn.Parameter(torch.ones(dim))  # at first the plain product

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        """(S, T, D), (S, U, D) -> (S, T, U)"""
        together = torch.bmm(one * self.both, other.transpose(1, 2))
        found: Tensor = self.first(one) + self.second(other).transpose(1, 2) + together
        return found


class SpanPointer(Network):
    """First and last word of the answer."""

    def __init__(self, config: ContextConfig, dims: InputDims, *, max_answer: int) -> None:
        super().__init__()
        self.max_answer = max_answer
        self.context = Context(config, dims)
        dim, read = config.dim, self.context.dim
        one = LstmConfig(num_layers=1, proj_size=dim)
        self.to_question = Likeness(read)
        self.attended = nn.Linear(4 * read + 1, dim)
        self.to_itself = Likeness(dim)
        self.self_attended = nn.Linear(3 * dim, dim)
        self.read_start = Lstm(one, "joint")
        self.start = nn.Linear(dim, 1)
        self.read_end = Lstm(one, "joint", input_size=2 * dim)
        self.end = nn.Linear(dim, 1)
        self.dropout = ByteDropout(config.dropout)

    def scores(self, inputs: TaskInputs, batch: TaskBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Of the first and the last word, and which words there are: each (S - B, T)"""
        asked = select_rows(inputs, slice(0, len(batch)))
        windows = select_rows(inputs, slice(len(batch), None))
        owner = batch.example_of[len(batch) :]
        questions, is_word = self.context(asked)[owner], asked.mask[owner]
        mask = windows.mask
        shared = batch["is_asked"][owner, number_in_example(owner)]  # (S - B, T)
        passage = self._attend(self.context(windows), mask, questions, is_word)
        passage = self.attended(torch.cat([passage, shared[..., None]], dim=-1)).relu()
        passage = (passage + self._attend_itself(passage, mask)) * mask[..., None]
        lengths = mask.sum(dim=1)
        [first] = self.read_start(self.dropout(passage), lengths)
        [last] = self.read_end(self.dropout(torch.cat([passage, first], dim=-1)), lengths)
        return self.start(first)[..., 0], self.end(last)[..., 0], mask

    def _attend(self, passage: Tensor, mask: Tensor, questions: Tensor, is_word: Tensor) -> Tensor:
        """Each word with what it finds in the question, and with the words the question finds."""
        likeness = self.to_question(passage, questions)  # (S - B, T, U)
        likeness = likeness.masked_fill(~is_word[:, None, :], -torch.inf)
        found = torch.bmm(likeness.softmax(dim=-1), questions * is_word[..., None])
        wanted = likeness.amax(dim=-1).masked_fill(~mask, -torch.inf).softmax(dim=-1)  # (S - B, T)
        asked_for = torch.bmm(wanted[:, None, :], passage * mask[..., None])  # (S - B, 1, D)
        return torch.cat([passage, found, passage * found, passage * asked_for], dim=-1)

    def _attend_itself(self, passage: Tensor, mask: Tensor) -> Tensor:
        """What each word finds among the others of its window."""
        likeness = self.to_itself(passage, passage)
        is_same = torch.eye(passage.shape[1], dtype=torch.bool, device=passage.device)
        # Not -inf: a window of one word has no other, and its softmax would be nan.
        likeness = likeness.masked_fill(is_same, _NEVER).masked_fill(~mask[:, None, :], -torch.inf)
        found = torch.bmm(likeness.softmax(dim=-1), passage * mask[..., None])
        both = torch.cat([passage, found, passage * found], dim=-1)
        merged: Tensor = self.self_attended(both).relu()
        return merged

    def losses(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """-log p of the first word, and of the last: (B,). 0 where the answer is in no window."""
        starts, ends, mask = self.scores(inputs, batch)
        owner = batch.example_of[len(batch) :]
        number = number_in_example(owner)
        gold = batch["gold"][owner, number]  # (S - B, 2)
        is_there = gold[:, 0] > 0
        shape = (len(batch), batch["gold"].shape[1])
        lost = torch.zeros(len(batch), device=owner.device)
        for scores, place in ((starts, gold[:, 0]), (ends, gold[:, 1])):
            log_p = _log_p(scores.float(), mask, owner, len(batch))
            own = log_p.gather(1, (place - 1).clamp(min=0)[:, None])[:, 0]
            # Where windows overlap, the answer may be found in either of them.
            table = own.new_full(shape, _NEVER)
            table = table.index_put((owner, number), torch.where(is_there, own, _NEVER))
            lost = lost - table.logsumexp(dim=1)
        num_gold = torch.zeros_like(lost).index_add(0, owner, is_there.to(lost.dtype))
        return torch.where(num_gold > 0, lost, 0.0)

    def decode(self, inputs: TaskInputs, batch: TaskBatch) -> list[FoundSpan]:
        """The most probable span of each passage with at most so many words."""
        starts, ends, mask = self.scores(inputs, batch)
        check_finite(torch.stack([starts, ends])[:, mask])
        owner = batch.example_of[len(batch) :]
        first = _log_p(starts.float(), mask, owner, len(batch))
        last = _log_p(ends.float(), mask, owner, len(batch))
        span = min(self.max_answer, last.shape[1])
        ahead = functional.pad(last, (0, span - 1), value=-torch.inf).unfold(1, span, 1)
        best, which = (first[..., None] + ahead).flatten(1).max(dim=1)  # (S - B,)
        found: dict[int, FoundSpan] = {}
        told = (owner, number_in_example(owner), which, best.exp())
        for example, window, place, p in zip(*(part.tolist() for part in told), strict=True):
            begin = place // span
            if example not in found or p > found[example].probability:
                found[example] = FoundSpan(window, begin, begin + place % span, p)
        return [found[example] for example in range(len(batch))]


def _log_p(scores: Tensor, mask: Tensor, owner: Tensor, num_examples: int) -> Tensor:
    """(S, T) -> (S, T): log-softmax over the words of all rows of an example; -inf at padding."""
    scores = scores.masked_fill(~mask, -torch.inf)
    highest = scores.new_full((num_examples,), -torch.inf)
    highest = highest.scatter_reduce(0, owner, scores.amax(dim=1), "amax").detach()
    shifted = (scores - highest[owner, None]).exp().sum(dim=1)
    total = scores.new_zeros(num_examples).index_add(0, owner, shifted)
    return scores - (highest + total.log())[owner, None]
