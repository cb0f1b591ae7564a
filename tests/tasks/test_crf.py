"""The chain of labels, against trying every sequence there is."""

import itertools

import pytest
import torch
from torch import Tensor

from polyseme.tasks.crf import Crf
from polyseme.tasks.spans import Transitions, transitions
from tasks.rules import is_allowed

LABELS = ["O", "B-X", "I-X", "B-Y", "I-Y"]
RULES = transitions(LABELS, "bio")
K = len(LABELS)


def make_crf(rules: Transitions | None, seed: int = 0) -> Crf:
    crf = Crf(K, rules)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return crf.double()


def make_emissions(batch: int, length: int, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, length, K, generator=generator, dtype=torch.float64) * 2


def all_scores(
    crf: Crf, emissions: Tensor, rules: Transitions | None
) -> dict[tuple[int, ...], float]:
    """Every sequence that is allowed, added up by hand, for one sentence (T, K)."""
    start, stop, pair = crf.start.tolist(), crf.stop.tolist(), crf.pair.tolist()
    words = emissions.tolist()
    scores = {}
    for ids in itertools.product(range(K), repeat=len(words)):
        if rules is not None and not is_allowed([LABELS[i] for i in ids], "bio"):
            continue
        score = (
            start[ids[0]] + stop[ids[-1]] + sum(word[i] for word, i in zip(words, ids, strict=True))
        )
        scores[ids] = score + sum(pair[a][b] for a, b in itertools.pairwise(ids))
    return scores


@pytest.mark.parametrize("rules", [None, RULES], ids=["free", "bio"])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 6])
def test_sum_best_and_marginals_are_those_of_all_sequences(
    length: int, rules: Transitions | None
) -> None:
    crf = make_crf(rules, seed=length)
    emissions = make_emissions(1, length, seed=length).requires_grad_()
    mask = torch.ones(1, length, dtype=torch.bool)
    scores = all_scores(crf, emissions[0], rules)
    ids, values = (
        torch.tensor(list(scores)),
        torch.tensor(list(scores.values()), dtype=torch.float64),
    )

    loss = crf(emissions, ids[:1], mask)  # -log p of the first: the sum without its own score
    assert loss.item() == pytest.approx((values.logsumexp(0) - values[0]).item())

    labels, value = crf.decode(emissions, mask)
    assert value.item() == pytest.approx(values.max().item())
    assert tuple(labels[0].tolist()) == max(scores, key=lambda key: scores[key])

    (gradient,) = torch.autograd.grad(loss.sum(), emissions)
    marginals = gradient + torch.nn.functional.one_hot(ids[:1], K)
    shares = values.softmax(0)
    expected = torch.stack([(shares[:, None] * (ids == k)).sum(0) for k in range(K)], dim=1)
    assert torch.allclose(marginals[0], expected)
    assert torch.allclose(crf.marginals(emissions, mask)[0], expected)


@pytest.mark.parametrize("rules", [None, RULES], ids=["free", "bio"])
def test_emissions_hundreds_apart_are_summed_as_exactly(rules: Transitions | None) -> None:
    crf = make_crf(rules)
    emissions = make_emissions(1, 4) * 50
    mask = torch.ones(1, 4, dtype=torch.bool)
    assert emissions.max() - emissions.min() > 300
    scores = all_scores(crf, emissions[0], rules)
    values = torch.tensor(list(scores.values()), dtype=torch.float64)
    many = emissions.expand(len(scores), -1, -1), torch.tensor(list(scores))
    found = crf(*many, mask.expand(len(scores), -1))
    assert torch.allclose(found, values.logsumexp(0) - values, rtol=0, atol=1e-9)


def test_a_label_that_nothing_may_lead_to_has_no_part_in_the_sum() -> None:
    """Not even when every word asks for it with all its might."""
    labels = ["O", "I-X"]
    crf = Crf(2, transitions(labels, "bio"))
    emissions = torch.tensor([[[0.0, 500.0]] * 5])
    mask = torch.ones(1, 5, dtype=torch.bool)
    assert crf(emissions, torch.zeros(1, 5, dtype=torch.long), mask).item() == 0.0
    assert crf.decode(emissions, mask)[0].tolist() == [[0] * 5]


@pytest.mark.parametrize("fill", [0.0, 1e9, float("nan"), float("inf")])
def test_padding_changes_nothing_whatever_stands_in_it(fill: float) -> None:
    crf = make_crf(RULES)
    emissions = make_emissions(3, 6)
    lengths = [6, 1, 4]
    mask = torch.arange(6) < torch.tensor(lengths)[:, None]
    labels = torch.tensor(
        [[0, 1, 2, 0, 3, 4], [1, -100, -100, -100, -100, -100], [0, 3, 4, 0, 9, 9]]
    )
    padded = emissions.masked_fill(~mask[..., None], fill)
    losses = crf(padded, labels, mask)
    losses.sum().backward()
    together = [
        parameter.grad.clone() for parameter in crf.parameters() if parameter.grad is not None
    ]
    best, values = crf.decode(padded, mask)
    shares = crf.marginals(padded, mask)
    crf.zero_grad()
    for i, length in enumerate(lengths):
        alone = emissions[i : i + 1, :length], mask[i : i + 1, :length]
        loss = crf(alone[0], labels[i : i + 1, :length], alone[1])
        loss.sum().backward()
        assert loss.item() == pytest.approx(losses[i].item(), abs=1e-12)
        assert torch.allclose(crf.marginals(*alone)[0], shares[i, :length])
        labels_alone, value = crf.decode(*alone)
        assert value.item() == pytest.approx(values[i].item(), abs=1e-12)
        assert best[i].tolist() == labels_alone[0].tolist() + [0] * (6 - length)
    apart = [parameter.grad for parameter in crf.parameters() if parameter.grad is not None]
    for one, other in zip(together, apart, strict=True):
        assert torch.allclose(one, other)


@pytest.mark.parametrize("rules", [None, RULES], ids=["free", "bio"])
def test_gradients_are_right(rules: Transitions | None) -> None:
    crf = make_crf(rules)
    mask = torch.tensor([[True, True, True, True], [True, True, False, False]])
    labels = torch.tensor([[0, 1, 2, 3], [3, 4, 0, 0]])
    emissions = make_emissions(2, 4).requires_grad_()

    def losses(emissions: Tensor, start: Tensor, stop: Tensor, pair: Tensor) -> Tensor:
        values = {"start": start, "stop": stop, "pair": pair}
        return torch.func.functional_call(crf, values, (emissions, labels, mask))  # type: ignore[no-any-return]

    assert torch.autograd.gradcheck(losses, (emissions, *crf.parameters()))


def test_forbidden_transitions_are_never_trained() -> None:
    crf = make_crf(RULES)
    mask = torch.ones(4, 5, dtype=torch.bool)
    crf(make_emissions(4, 5), torch.zeros(4, 5, dtype=torch.long), mask).sum().backward()
    assert crf.pair.grad is not None
    assert (crf.pair.grad[~torch.tensor(RULES.pair)] == 0).all()
    assert (crf.pair.grad[torch.tensor(RULES.pair)] != 0).all()


def test_half_precision_around_it_changes_only_the_rounding_of_what_comes_in() -> None:
    crf = make_crf(RULES).float()
    emissions = make_emissions(2, 30).bfloat16()
    mask = torch.ones(2, 30, dtype=torch.bool)
    labels = torch.zeros(2, 30, dtype=torch.long)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = crf(emissions, labels, mask)
    assert loss.dtype == torch.float32
    assert torch.equal(loss, crf(emissions.float(), labels, mask))
