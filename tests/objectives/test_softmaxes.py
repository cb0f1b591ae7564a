"""From vectors to words: what is drawn, what it is corrected by, and what is shared."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from polyseme.batches import PADDING
from polyseme.config import build
from polyseme.errors import ConfigError
from polyseme.model import LanguageModel, ModelConfig
from polyseme.objectives.causal import Causal
from polyseme.objectives.question import Candidates
from polyseme.objectives.softmaxes import (
    AdaptiveSoftmax,
    AdaptiveSoftmaxConfig,
    FullSoftmaxConfig,
    SampledSoftmaxConfig,
    WordSoftmax,
    build_softmax,
    draw_candidates,
    log_expected,
)

VOCABULARY, WIDTH = 40, 6


def word_softmax(samples: int | None = None) -> WordSoftmax:
    torch.manual_seed(0)
    config = FullSoftmaxConfig() if samples is None else SampledSoftmaxConfig(samples=samples)
    softmax = WordSoftmax(config, vocabulary=VOCABULARY, width=WIDTH)
    nn.init.normal_(softmax.bias)
    return softmax


def asked(rows: int = 30) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    vectors = torch.randn(rows, WIDTH, generator=random)
    return vectors.requires_grad_(), torch.randint(1, VOCABULARY, (rows,), generator=random)


@pytest.mark.parametrize(("number", "vocabulary"), [(1, 9), (7, 9), (50, 60), (64, 5000)])
def test_candidates_are_different_and_never_padding(number: int, vocabulary: int) -> None:
    for seed in range(20):
        drawn = draw_candidates(number, vocabulary, np.random.default_rng(seed))
        assert len(set(drawn.ids.tolist())) == len(drawn.ids) == number
        assert PADDING not in drawn.ids
        assert int(drawn.ids.max()) < vocabulary
        assert drawn.tries >= number


def test_all_words_are_taken_where_there_are_too_few() -> None:
    drawn = draw_candidates(100, 9, np.random.default_rng(0))
    assert drawn.ids.tolist() == list(range(1, 9))
    assert not log_expected(9, drawn.tries, torch.device("cpu")).any()


def test_the_same_chance_draws_the_same_candidates() -> None:
    one, other = (draw_candidates(20, 500, np.random.default_rng(4)) for _ in range(2))
    assert torch.equal(one.ids, other.ids)
    assert one.tries == other.tries


def test_a_word_is_among_the_candidates_as_often_as_is_expected() -> None:
    random, vocabulary, draws = np.random.default_rng(0), 60, 3000
    counted, expected = torch.zeros(vocabulary), torch.zeros(vocabulary)
    for _ in range(draws):
        drawn = draw_candidates(12, vocabulary, random)
        counted[drawn.ids] += 1
        expected += log_expected(vocabulary, drawn.tries, torch.device("cpu")).exp()
    # Four standard errors of a share near one half, and a little for a last draw that is known
    # to have been new.
    assert torch.allclose(counted[1:] / draws, expected[1:] / draws, atol=4 * 0.5 / draws**0.5)
    assert counted[1] > 2 * counted[10] > 2 * counted[59]


def test_with_all_candidates_the_gradient_is_the_full_softmaxs() -> None:
    sampled, (vectors, answers) = word_softmax(samples=VOCABULARY), asked()
    drawn = sampled.draw(np.random.default_rng(0))
    loss = sampled.loss(vectors, answers, table=None, drawn=drawn)
    assert sampled.weight is not None
    logits = vectors @ sampled.weight.t() + sampled.bias
    # Padding is no word and never a rival.
    expected = functional.cross_entropy(logits[:, 1:], answers - 1, reduction="sum")
    of = (vectors, sampled.weight, sampled.bias)
    pairs = zip(torch.autograd.grad(loss, of), torch.autograd.grad(expected, of), strict=True)
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in pairs)


def test_with_more_candidates_the_mean_gradient_nears_the_full_softmaxs() -> None:
    vectors, answers = asked()
    full = word_softmax()
    target = torch.autograd.grad(full.loss(vectors, answers, table=None, drawn=None), vectors)[0]
    distances = []
    for samples in (4, 12, 30):
        softmax, random = word_softmax(samples=samples), np.random.default_rng(0)
        mean = torch.zeros_like(vectors)
        for _ in range(300):
            drawn = softmax.draw(random)
            loss = softmax.loss(vectors, answers, table=None, drawn=drawn)
            mean += torch.autograd.grad(loss, vectors)[0] / 300
        distances.append(float((mean - target).norm() / target.norm()))
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 0.1


def test_without_the_correction_frequent_words_would_be_held_down() -> None:
    """The loss of drawn words is that of the full softmax over words as often as they are drawn."""
    softmax, (vectors, answers) = word_softmax(samples=5), asked(1)
    drawn = Candidates(torch.tensor([1, 2, 8, 30]), tries=9)
    loss = softmax.loss(vectors, answers, table=None, drawn=drawn)
    assert softmax.weight is not None
    words = [int(answers[0]), *(w for w in drawn.ids.tolist() if w != int(answers[0]))]
    chances = [np.log((word + 1) / word) / np.log(VOCABULARY) for word in words]
    shifts = torch.tensor([np.log(1 - (1 - chance) ** 9) for chance in chances])
    logits = softmax.weight[words] @ vectors[0] + softmax.bias[words] - shifts
    assert float(loss.detach()) == pytest.approx(
        float(-logits.log_softmax(0)[0].detach()), rel=1e-5
    )


@pytest.mark.parametrize("vocabulary", [8, 21, 100])
def test_an_adaptive_softmax_trains_on_the_very_probabilities_it_is_measured_by(
    vocabulary: int,
) -> None:
    torch.manual_seed(0)
    config = AdaptiveSoftmaxConfig(cutoffs=(10, 20), shrink=2)
    softmax = build_softmax(config, vocabulary=vocabulary, width=8)
    assert isinstance(softmax, AdaptiveSoftmax)
    assert softmax.draw(np.random.default_rng(0)) is None
    vectors, answers = torch.randn(30, 8), torch.randint(1, vocabulary, (30,))
    told = softmax.log_probabilities(vectors, answers, table=None)
    loss = softmax.loss(vectors, answers, table=None, drawn=None)
    assert torch.allclose(loss, -told.sum())
    every = softmax.log_probabilities(
        vectors[:1].expand(vocabulary, -1), torch.arange(vocabulary), table=None
    )
    assert float(every.exp().sum().detach()) == pytest.approx(1, abs=1e-5)


def test_an_adaptive_softmax_that_is_asked_nothing_costs_nothing() -> None:
    config = AdaptiveSoftmaxConfig(cutoffs=(10, 20), shrink=2)
    softmax = AdaptiveSoftmax(config, vocabulary=40, width=8)
    vectors = torch.randn(0, 8, requires_grad=True)
    loss = softmax.loss(vectors, torch.empty(0, dtype=torch.long), table=None, drawn=None)
    assert float(loss.detach()) == 0


@pytest.mark.parametrize("cutoffs", [[], [5, 5], [9, 3], [0, 4]])
def test_cutoffs_that_do_not_rise_are_refused(cutoffs: list[int]) -> None:
    with pytest.raises(ConfigError, match="cutoffs"):
        build(AdaptiveSoftmaxConfig, {"cutoffs": cutoffs})


def test_groups_that_would_have_no_width_are_refused_in_words() -> None:
    with pytest.raises(ConfigError, match=r"nothing of the encoder's width 8.*shrink lower"):
        AdaptiveSoftmax(AdaptiveSoftmaxConfig(cutoffs=(10, 20)), vocabulary=40, width=8)


@pytest.mark.parametrize("kind", ["full", "sampled"])
def test_tied_weights_are_one_tensor_that_learns_from_both_sides(kind: str) -> None:
    values = {
        "lexicon": {"characters": "none"},
        "encoder": {
            "input": {"kind": "lookup", "width": 6},
            "context": {"kind": "none", "width": 6},
            "direction": "forward",
        },
        "objective": {"kind": "causal", "softmax": {"kind": kind, "tied": True}},
    }
    network = LanguageModel(build(ModelConfig, values), vocabulary=20, alphabet=0)
    wide = [name for name, weight in network.state_dict().items() if weight.shape == (20, 6)]
    assert wide == ["encoder.inputs.table.weight"]
    table = network.encoder.inputs.table
    assert table is not None
    assert isinstance(network.objective, Causal)
    head = network.objective.softmax
    # Word 7 is read, word 9 is the answer: each side alone would leave the other without slope.
    loss = head.loss(
        table(torch.tensor([7])),
        torch.tensor([9]),
        table=table.weight,
        drawn=Candidates(torch.tensor([3]), 1),
    )
    (slope,) = torch.autograd.grad(loss, table.weight)
    assert slope.any(dim=1).nonzero().squeeze(1).tolist() == [3, 7, 9]
