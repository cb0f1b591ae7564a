"""From vectors to words: what is sampled, what it is corrected by, and what is shared."""

from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from polyseme.config import build
from polyseme.data.batch import PAD
from polyseme.model import LanguageModel, ModelConfig
from polyseme.objectives import softmaxes
from polyseme.objectives.bidirectional import Causal
from polyseme.objectives.prediction import Negatives
from polyseme.objectives.softmaxes import (
    FullSoftmaxConfig,
    SampledSoftmaxConfig,
    SoftmaxConfig,
    WordSoftmax,
    log_q,
    sample_negatives,
)

VOCAB_SIZE, DIM = 40, 6


def word_softmax(num_samples: int | None = None) -> WordSoftmax:
    torch.manual_seed(0)
    config = (
        FullSoftmaxConfig()
        if num_samples is None
        else SampledSoftmaxConfig(num_samples=num_samples)
    )
    softmax = WordSoftmax(config, vocab_size=VOCAB_SIZE, dim=DIM)
    nn.init.normal_(softmax.bias)
    return softmax


def vectors_and_targets(rows: int = 30) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    vectors = torch.randn(rows, DIM, generator=random)
    return vectors.requires_grad_(), torch.randint(1, VOCAB_SIZE, (rows,), generator=random)


@pytest.mark.parametrize(("number", "vocab_size"), [(1, 9), (7, 9), (50, 60), (64, 5000)])
def test_negatives_are_different_and_never_padding(number: int, vocab_size: int) -> None:
    for seed in range(20):
        negatives = sample_negatives(number, vocab_size, np.random.default_rng(seed))
        assert len(set(negatives.ids.tolist())) == len(negatives.ids) == number
        assert PAD not in negatives.ids
        assert int(negatives.ids.max()) < vocab_size
        assert negatives.num_tries >= number


def test_a_word_is_among_the_negatives_as_often_as_is_expected() -> None:
    random, vocab_size, draws = np.random.default_rng(0), 60, 3000
    counted, expected = torch.zeros(vocab_size), torch.zeros(vocab_size)
    for _ in range(draws):
        negatives = sample_negatives(12, vocab_size, random)
        counted[negatives.ids] += 1
        expected += log_q(vocab_size, negatives.num_tries, torch.device("cpu")).exp()
    # Four standard errors of a share near one half, and a little for a last draw that is known
    # to have been new.
    assert torch.allclose(counted[1:] / draws, expected[1:] / draws, atol=4 * 0.5 / draws**0.5)
    assert counted[1] > 2 * counted[10] > 2 * counted[59]


def test_with_all_words_as_negatives_the_gradient_is_the_full_softmaxs() -> None:
    sampled, (vectors, targets) = word_softmax(num_samples=VOCAB_SIZE), vectors_and_targets()
    negatives = sampled.sample_negatives(np.random.default_rng(0))
    loss = sampled.losses([(vectors, targets)], table=None, negatives=negatives)[0]
    assert sampled.weight is not None
    logits = vectors @ sampled.weight.t() + sampled.bias
    # Padding is no word and never a negative.
    expected = functional.cross_entropy(logits[:, 1:], targets - 1, reduction="sum")
    of = (vectors, sampled.weight, sampled.bias)
    pairs = zip(torch.autograd.grad(loss, of), torch.autograd.grad(expected, of), strict=True)
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in pairs)


def test_with_more_negatives_the_mean_gradient_nears_the_full_softmaxs() -> None:
    vectors, targets = vectors_and_targets()
    full = word_softmax()
    target = torch.autograd.grad(
        full.losses([(vectors, targets)], table=None, negatives=None)[0], vectors
    )[0]
    distances = []
    for num_samples in (4, 12, 30):
        softmax, random = word_softmax(num_samples=num_samples), np.random.default_rng(0)
        mean = torch.zeros_like(vectors)
        for _ in range(300):
            negatives = softmax.sample_negatives(random)
            loss = softmax.losses([(vectors, targets)], table=None, negatives=negatives)[0]
            mean += torch.autograd.grad(loss, vectors)[0] / 300
        distances.append(float((mean - target).norm() / target.norm()))
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 0.1


def test_without_the_correction_frequent_words_would_be_held_down() -> None:
    """The loss with negatives is that of the full softmax over words as often as sampled."""
    softmax, (vectors, targets) = word_softmax(num_samples=5), vectors_and_targets(1)
    negatives = Negatives(torch.tensor([1, 2, 8, 30]), num_tries=9)
    loss = softmax.losses([(vectors, targets)], table=None, negatives=negatives)[0]
    assert softmax.weight is not None
    words = [int(targets[0]), *(w for w in negatives.ids.tolist() if w != int(targets[0]))]
    chances = [np.log((word + 1) / word) / np.log(VOCAB_SIZE) for word in words]
    shifts = torch.tensor([np.log(1 - (1 - chance) ** 9) for chance in chances])
    logits = softmax.weight[words] @ vectors[0] + softmax.bias[words] - shifts
    assert float(loss.detach()) == pytest.approx(
        float(-logits.log_softmax(0)[0].detach()), rel=1e-5
    )


@pytest.mark.parametrize("kind", ["full", "sampled"])
def test_tied_weights_are_one_tensor_that_learns_from_both_sides(kind: str) -> None:
    values = {
        "vocabulary": {"characters": "none"},
        "encoder": {
            "input": {"kind": "word", "dim": 6},
            "contextualizer": {"kind": "none", "dim": 6},
            "direction": "forward",
        },
        "objective": {"kind": "causal", "softmax": {"kind": kind, "tied": True}},
    }
    network = LanguageModel(build(ModelConfig, values), vocab_size=20, num_chars=0)
    wide = [name for name, weight in network.state_dict().items() if weight.shape == (20, 6)]
    assert wide == ["encoder.inputs.word_embedding.weight"]
    table = network.encoder.inputs.word_embedding
    assert table is not None
    assert isinstance(network.objective, Causal)
    head = network.objective.softmax
    # Word 7 is read, word 9 is the target: each side alone would leave the other without gradient.
    (loss,) = head.losses(
        [(table(torch.tensor([7])), torch.tensor([9]))],
        table=table.weight,
        negatives=Negatives(torch.tensor([3]), 1),
    )
    (gradient,) = torch.autograd.grad(loss, table.weight)
    assert gradient.any(dim=1).nonzero().squeeze(1).tolist() == [3, 7, 9]


SOFTMAXES: dict[str, SoftmaxConfig] = {
    "full": FullSoftmaxConfig(),
    "sampled": SampledSoftmaxConfig(num_samples=5),
    "tied": FullSoftmaxConfig(tied=True),
}


@pytest.mark.parametrize("rows", [0, 1, 70])
@pytest.mark.parametrize("kind", SOFTMAXES)
def test_the_top_words_are_those_of_the_full_distribution(kind: str, rows: int) -> None:
    torch.manual_seed(0)
    head = WordSoftmax(SOFTMAXES[kind], vocab_size=VOCAB_SIZE, dim=DIM)
    nn.init.normal_(head.bias)
    vectors, table = torch.randn(rows, DIM), torch.randn(VOCAB_SIZE, DIM)
    with torch.no_grad(), patch.object(softmaxes, "_CHUNK", 1):  # 70 rows are several chunks
        log_probs, ids = head.top_k(vectors, 7, table=table)
    assert log_probs.shape == ids.shape == (rows, 7)
    every = torch.arange(VOCAB_SIZE)
    for vector, told, words in zip(vectors, log_probs, ids, strict=True):
        repeated = vector.expand(VOCAB_SIZE, -1)
        with torch.no_grad():
            distribution = head.log_probabilities(repeated, every, table=table)
        order = sorted(every.tolist(), key=lambda word: -float(distribution[word]))
        assert words.tolist() == order[:7]
        assert torch.allclose(told, distribution[words], atol=1e-5)


@pytest.mark.parametrize("kind", SOFTMAXES)
def test_logits_of_some_words_are_their_log_probabilities_up_to_a_constant(kind: str) -> None:
    torch.manual_seed(0)
    head = WordSoftmax(SOFTMAXES[kind], vocab_size=VOCAB_SIZE, dim=DIM)
    vectors, table = torch.randn(5, DIM), torch.randn(VOCAB_SIZE, DIM)
    ids = torch.tensor([3, 30, 11, 3])
    with torch.no_grad():
        found = head.logits(vectors, ids, table=table)
        told = torch.stack(
            [head.log_probabilities(vectors, word.expand(5), table=table) for word in ids], dim=1
        )
    apart = found - told
    assert torch.allclose(apart, apart[:, :1].expand_as(apart), atol=1e-5)


@pytest.mark.parametrize("kind", SOFTMAXES)
def test_all_words_are_the_top_words_if_so_many_are_wanted(kind: str) -> None:
    head = WordSoftmax(SOFTMAXES[kind], vocab_size=VOCAB_SIZE, dim=DIM)
    with torch.no_grad():
        table = torch.randn(VOCAB_SIZE, DIM)
        log_probs, ids = head.top_k(torch.randn(3, DIM), VOCAB_SIZE, table=table)
    assert torch.allclose(log_probs.exp().sum(dim=-1), torch.ones(3), atol=1e-5)
    assert all(sorted(row) == list(range(VOCAB_SIZE)) for row in ids.tolist())
