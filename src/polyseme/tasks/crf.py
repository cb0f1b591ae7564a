"""A linear-chain conditional random field: the labels of a sentence chosen together.

    in    emissions  (B, T, K)   how well each label suits each word, from a network
          mask       (B, T)      True for words, False for padding, which comes after them
    out   losses     (B,)        -log p(labels) of each sentence
          decode     (B, T)      the most probable labels (Viterbi)
          marginals  (B, T, K)   how probable each label of each word is (forward-backward)

p(labels) is proportional to exp of the sum of emissions and of a learned number for each pair of
neighbouring labels, for the first and for the last. Forbidden transitions (an I- without its B-)
have probability 0 and are never chosen. Every sentence has at least one word.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from polyseme.tasks.spans import Transitions

# Not -inf, whose gradient is not a number where no way is allowed. exp of it is 0 all the same,
# and a sum over any sentence is still a number.
_NEVER = -1e30


class _Scores(NamedTuple):
    """The learned numbers, forbidden ones replaced."""

    start: Tensor  # (K,)
    stop: Tensor  # (K,)
    pair: Tensor  # (K, K), from the row's label to the column's


class Crf(nn.Module):
    """Learned transitions between labels; `allowed` forbids some for good."""

    def __init__(
        self, num_labels: int, allowed: Transitions | Callable[[], Transitions] | None = None
    ) -> None:
        """`allowed` may be a function, which is called when the rules are first needed."""
        super().__init__()
        # Zeros: at first only the emissions speak, and a seed changes nothing.
        self.start = nn.Parameter(torch.zeros(num_labels))
        self.stop = nn.Parameter(torch.zeros(num_labels))
        self.pair = nn.Parameter(torch.zeros(num_labels, num_labels))
        self._allowed = allowed
        self._forbidden: _Scores | None = None

    def forward(self, emissions: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """(B, T, K), (B, T), (B, T) -> (B,): -log p of each sentence's labels.

        Labels that are forbidden have no probability: see `spans.convert`.
        """
        with torch.autocast(emissions.device.type, enabled=False):
            real = _real(emissions, mask)
            scores = self._scores(real)
            losses = _log_partition(real, mask, scores) - _score(real, labels, mask, scores)
            return losses.to(_result_type(emissions))

    @torch.no_grad()
    def decode(self, emissions: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T, K), (B, T) -> (B, T), (B,): the best labels, 0 at padding, and their score."""
        with torch.autocast(emissions.device.type, enabled=False):
            real = _real(emissions, mask)
            labels, values = _viterbi(real, mask, self._scores(real))
            return labels, values.to(_result_type(emissions))

    @torch.no_grad()
    def marginals(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """(B, T, K), (B, T) -> (B, T, K): p(label) of each word over all labels of the others."""
        with torch.autocast(emissions.device.type, enabled=False):
            real = _real(emissions, mask)
            scores = self._scores(real)
            forward = torch.stack(_forward(real, mask, scores), dim=1)  # (B, T, K)
            total = forward + torch.stack(_backward(real, mask, scores), dim=1)
            return total.softmax(dim=-1).to(_result_type(emissions))

    def _scores(self, like: Tensor) -> _Scores:
        scores = (self.get_parameter(name).to(like.dtype) for name in _Scores._fields)
        forbidden = self._rules(like.device)
        if forbidden is None:
            return _Scores(*scores)
        pairs = zip(scores, forbidden, strict=True)
        return _Scores(*(score.masked_fill(never, _NEVER) for score, never in pairs))

    def _rules(self, device: torch.device) -> _Scores | None:
        """What is forbidden. Not part of what is saved: it follows from the settings."""
        if self._allowed is None:
            return None
        if self._forbidden is None or self._forbidden.start.device != device:
            allowed = self._allowed if isinstance(self._allowed, Transitions) else self._allowed()
            rules = (getattr(allowed, name) for name in _Scores._fields)
            self._forbidden = _Scores(*(~torch.tensor(each, device=device) for each in rules))
        return self._forbidden


def _real(emissions: Tensor, mask: Tensor) -> Tensor:
    """In float64, and nothing at padding: not even a NaN there may reach a gradient.

    float64 holds exp of numbers 700 apart, so `_log_partition` may sum without logarithms; in
    float32, all there is on Apple's GPUs, ways over 87 below the best count for nothing.
    """
    widest = torch.float32 if emissions.device.type == "mps" else torch.float64
    return emissions.masked_fill(~mask[..., None], 0.0).to(widest)


def _result_type(emissions: Tensor) -> torch.dtype:
    return torch.float64 if emissions.dtype == torch.float64 else torch.float32


def _log_partition(emissions: Tensor, mask: Tensor, scores: _Scores) -> Tensor:
    return (_forward(emissions, mask, scores)[-1] + scores.stop).logsumexp(dim=1)


def _forward(emissions: Tensor, mask: Tensor, scores: _Scores) -> list[Tensor]:
    """For each word (B, K): log of the sum over all ways to label the words up to it, ending with
    label k. At padding that of the last word stays."""
    weights = scores.pair.exp()  # (K, K), 0 where forbidden
    totals = [scores.start + emissions[:, 0]]
    for t in range(1, emissions.shape[1]):
        ways = _log_matmul(totals[-1], weights) + emissions[:, t]
        totals.append(torch.where(mask[:, t, None], ways, totals[-1]))
    return totals


def _backward(emissions: Tensor, mask: Tensor, scores: _Scores) -> list[Tensor]:
    """For each word (B, K): log of the sum over all ways to label the words after it, given that
    its own label is k."""
    weights = scores.pair.exp().T
    totals = [scores.stop.expand_as(emissions[:, 0])]
    for t in range(emissions.shape[1] - 1, 0, -1):
        ways = _log_matmul(totals[-1] + emissions[:, t], weights)
        totals.append(torch.where(mask[:, t, None], ways, totals[-1]))
    return totals[::-1]


def _log_matmul(total: Tensor, weights: Tensor) -> Tensor:
    """log(exp(total) @ weights): (B, K), (K, K) -> (B, K)

    A product of matrices instead of a logsumexp over (B, K, K): 30 times faster for the 120 labels
    of semantic roles. The shift comes and goes, so it has no gradient.
    """
    top = total.detach().amax(dim=1, keepdim=True)  # (B, 1)
    ways = (total - top).exp() @ weights  # (B, K)
    tiny = torch.finfo(weights.dtype).tiny
    return torch.where(ways > 0, ways.clamp_min(tiny).log(), _NEVER) + top


def _score(emissions: Tensor, labels: Tensor, mask: Tensor, scores: _Scores) -> Tensor:
    labels = labels.masked_fill(~mask, 0)
    words = emissions.gather(2, labels[..., None])[..., 0].sum(dim=1)  # padding is 0 there
    pairs = scores.pair[labels[:, :-1], labels[:, 1:]].masked_fill(~mask[:, 1:], 0.0)  # (B, T-1)
    last = labels.gather(1, mask.sum(dim=1, keepdim=True) - 1)[:, 0]  # (B,)
    return words + pairs.sum(dim=1) + scores.start[labels[:, 0]] + scores.stop[last]


def _viterbi(emissions: Tensor, mask: Tensor, scores: _Scores) -> tuple[Tensor, Tensor]:
    num_words = emissions.shape[1]
    best = scores.start + emissions[:, 0]  # (B, K), as `total` above, with max for sum
    came_from = []  # for each word after the first: the label before, for each label (B, K)
    stay = torch.arange(emissions.shape[2], device=emissions.device).expand_as(best)
    for t in range(1, num_words):
        found, before = (best[:, :, None] + scores.pair).max(dim=1)  # (B, K)
        is_word = mask[:, t, None]
        best = torch.where(is_word, found + emissions[:, t], best)
        # At padding the label stays that of the last word, until the way back reaches it.
        came_from.append(torch.where(is_word, before, stay))
    value, label = (best + scores.stop).max(dim=1)
    path = [label]
    for before in reversed(came_from):
        path.append(before.gather(1, path[-1][:, None])[:, 0])
    labels = torch.stack(path[::-1], dim=1)  # (B, T)
    return labels.masked_fill(~mask, 0), value
