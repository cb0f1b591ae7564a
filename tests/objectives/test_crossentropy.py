"""Loss and gradient, against torch's own cross-entropy and autograd."""

from unittest.mock import patch

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from polyseme.devices import num_threads
from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.loader import Kernel
from polyseme.objectives import softmaxes
from polyseme.objectives.softmaxes import (
    log_probabilities,
    log_sum_exp,
    summed_cross_entropies,
    to_probabilities,
)

ROWS, WORDS, WIDTH = 11, 23, 6
Three = tuple[Tensor, Tensor, Tensor]


def summed_cross_entropy(
    vectors: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, negatives: Tensor | None = None
) -> Tensor:
    (loss,) = summed_cross_entropies([(vectors, targets)], weight, bias, negatives)
    return loss


def numbers(rows: int = ROWS) -> tuple[Three, Tensor]:
    """Vectors, weight, bias that want gradients; and targets, some of them twice."""
    torch.manual_seed(rows)
    shapes = ((rows, WIDTH), (WORDS, WIDTH), (WORDS,))
    vectors, weight, bias = (torch.randn(shape, requires_grad=True) for shape in shapes)
    return (vectors, weight, bias), torch.randint(0, WORDS, (rows,))


def gradients(loss: Tensor, of: Three) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss * 0.7, of)  # a grad_output other than one


def assert_alike(found: Tensor, expected: Tensor, of: Three) -> None:
    assert torch.allclose(found, expected, rtol=1e-5)
    pairs = zip(gradients(found, of), gradients(expected, of), strict=True)
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in pairs)


@pytest.mark.parametrize("rows", [1, ROWS, 200])
def test_the_full_loss_and_its_gradient_are_torchs(rows: int) -> None:
    of, targets = numbers(rows)
    vectors, weight, bias = of
    expected = functional.cross_entropy(vectors @ weight.t() + bias, targets, reduction="sum")
    assert_alike(summed_cross_entropy(vectors, weight, bias, targets), expected, of)


@pytest.mark.parametrize("negatives", [[3], [4, 9, 1, 22], list(range(WORDS))])
def test_with_negatives_only_these_and_the_target_compete(negatives: list[int]) -> None:
    of, targets = numbers()
    vectors, weight, bias = of
    found = summed_cross_entropy(vectors, weight, bias, targets, torch.tensor(negatives))
    expected = torch.zeros(())
    for row, target in enumerate(targets.tolist()):
        words = [target, *(word for word in negatives if word != target)]
        logits = torch.stack([vectors[row] @ weight[word] + bias[word] for word in words])
        expected = expected + logits.logsumexp(0) - logits[0]
    assert_alike(found, expected, of)


@pytest.mark.parametrize("chunk", [1, 2 * WORDS, 5 * WORDS + 3])
@pytest.mark.parametrize("negatives", [None, [4, 9, 1, 22]])
def test_the_size_of_a_chunk_changes_nothing(chunk: int, negatives: list[int] | None) -> None:
    of, targets = numbers()
    some = None if negatives is None else torch.tensor(negatives)
    whole = summed_cross_entropy(*of, targets, some)
    told = log_probabilities(*of, targets).detach()
    with patch.object(softmaxes, "_CHUNK", chunk):
        assert_alike(summed_cross_entropy(*of, targets, some), whole, of)
        assert torch.allclose(log_probabilities(*of, targets).detach(), told, atol=1e-6)


def test_log_probabilities_are_torchs() -> None:
    of, targets = numbers()
    vectors, weight, bias = (tensor.detach() for tensor in of)
    expected = -functional.cross_entropy(vectors @ weight.t() + bias, targets, reduction="none")
    assert torch.allclose(log_probabilities(vectors, weight, bias, targets), expected, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_probabilities_are_the_same_by_torch_and_compiled(
    library: Kernel, dtype: torch.dtype
) -> None:
    random = torch.Generator().manual_seed(0)
    logits = (8 * torch.randn(37, 201, generator=random)).to(dtype)
    logits[3] = -300.0  # the target alone is likely
    logits[4, 7] = 90.0  # and here it is all but impossible
    bias, target_logits = torch.randn(201, generator=random), torch.randn(37, generator=random)
    struck = torch.randint(-1, 201, (37,), generator=random)
    found = []
    for kernel in (None, library):
        grad_bias = torch.ones(201)
        with patch.object(loader, "load", return_value=kernel):
            given = (bias, target_logits, struck, grad_bias)
            log_probs, probs = to_probabilities(logits.clone(), *given)
            found.append((log_probs, probs, grad_bias, log_sum_exp(logits, bias)))
    assert found[1][1].dtype == dtype
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5, check_dtype=True)
    repeated = struck >= 0
    assert not found[1][1][repeated, struck[repeated]].any()


def test_probabilities_are_the_same_with_any_number_of_threads(library: Kernel) -> None:
    random = torch.Generator().manual_seed(0)
    logits, bias = torch.randn(99, 1000, generator=random), torch.zeros(1000)
    found = []
    for threads in (1, 2, 3):
        grad_bias = torch.zeros(1000)
        with patch.object(loader, "load", return_value=library), num_threads(threads):
            struck = torch.full((99,), -1)
            log_probs, probs = to_probabilities(
                logits.clone(), bias, torch.zeros(99), struck, grad_bias
            )
        found.append((log_probs, probs, grad_bias))
    assert all(map(torch.equal, found[0], found[1]))
    assert all(map(torch.equal, found[0], found[2]))


def test_a_logit_that_is_no_number_shows(library: Kernel) -> None:
    logits = torch.zeros(2, 50)
    logits[1, 3] = torch.nan
    with patch.object(loader, "load", return_value=library):
        struck = torch.full((2,), -1)
        log_probs, _ = to_probabilities(
            logits, torch.zeros(50), torch.zeros(2), struck, torch.zeros(50)
        )
    assert log_probs.isnan().tolist() == [False, True]


def test_parts_together_are_each_by_itself() -> None:
    of, targets = numbers()
    vectors, weight, bias = of
    negatives = torch.tensor([4, 9, 1, 22])
    others = torch.randn(3, WIDTH, requires_grad=True)
    parts = [(vectors, targets), (others, torch.tensor([9, 9, 0]))]
    found = summed_cross_entropies(parts, weight, bias, negatives)
    alone = [summed_cross_entropy(v, weight, bias, t, negatives) for v, t in parts]
    whole = [0.7 * one - 3 * other for one, other in (found, alone)]
    learned = (vectors, others, weight, bias)
    gradients_of_both = [torch.autograd.grad(each, learned) for each in whole]
    for one, other in zip(*gradients_of_both, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("negatives", [None, [4, 9, 1, 22]])
def test_no_targets_cost_nothing(negatives: list[int] | None) -> None:
    of, targets = numbers(0)
    loss = summed_cross_entropy(
        *of, targets, None if negatives is None else torch.tensor(negatives)
    )
    assert float(loss.detach()) == 0
    assert not any(bool(gradient.any()) for gradient in gradients(loss, of))
    assert log_probabilities(*of, targets).shape == (0,)


@pytest.mark.parametrize("negatives", [None, [4, 9, 1, 22]])
def test_vectors_in_bfloat16_give_the_loss_to_its_precision(negatives: list[int] | None) -> None:
    of, targets = numbers(200)
    vectors, weight, bias = of
    some = None if negatives is None else torch.tensor(negatives)
    exact = summed_cross_entropy(vectors, weight, bias, targets, some)
    rough = summed_cross_entropy(vectors.bfloat16(), weight, bias, targets, some)
    assert torch.allclose(rough, exact, rtol=0.01)
    for one, other in zip(gradients(rough, of), gradients(exact, of), strict=True):
        assert one.dtype == torch.float32
        assert float((one - other).norm() / other.norm()) < 0.02
    told = log_probabilities(vectors.bfloat16(), weight, bias, targets).detach()
    assert torch.allclose(told, log_probabilities(*of, targets).detach(), atol=0.1)


def test_autocast_gives_the_loss_to_its_precision() -> None:
    of, targets = numbers(200)
    exact = summed_cross_entropy(*of, targets)
    with torch.autocast("cpu", torch.bfloat16):
        rough = summed_cross_entropy(*of, targets)
    assert torch.allclose(rough, exact, rtol=0.01)
    for one, other in zip(gradients(rough, of), gradients(exact, of), strict=True):
        assert float((one - other).norm() / other.norm()) < 0.02


def test_a_target_all_but_ruled_out_costs_much_and_not_infinitely_much() -> None:
    vectors, weight = torch.ones(1, 1, requires_grad=True), torch.tensor([[-400.0], [400.0]])
    loss = summed_cross_entropy(vectors, weight, torch.zeros(2), torch.tensor([0]))
    assert float(loss.detach()) == pytest.approx(800)
    (gradient,) = torch.autograd.grad(loss, vectors)
    assert float(gradient) == pytest.approx(800)
