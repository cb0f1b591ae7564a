"""Dropout by bytes."""

import pytest
import torch

from polyseme.tasks.embeddings.dropout import ByteDropout


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_share_is_left_out_and_the_mean_stays(share: float) -> None:
    torch.manual_seed(1)
    dropped = ByteDropout(share)(torch.ones(400, 1003))
    assert abs(float((dropped == 0).float().mean()) - share) < 0.004
    assert abs(float(dropped.mean()) - 1) < 0.02


def test_every_place_is_left_out_as_often_as_any_other() -> None:
    torch.manual_seed(1)
    dropout = ByteDropout(0.5)
    counts = sum((dropout(torch.ones(5, 16)) == 0).float() for _ in range(2_000))
    assert isinstance(counts, torch.Tensor)
    assert counts.min() > 880  # five standard deviations from 1,000
    assert counts.max() < 1_120


def test_neighbours_are_left_out_independently() -> None:
    torch.manual_seed(1)
    is_out = ByteDropout(0.5)(torch.ones(1 << 18)) == 0
    for distance in range(1, 17):
        both = (is_out[distance:] & is_out[:-distance]).float().mean()
        assert abs(float(both) - 0.25) < 0.006


def test_a_seed_repeats_it() -> None:
    found = []
    for _ in range(2):
        torch.manual_seed(7)
        found.append(ByteDropout(0.3)(torch.ones(3, 5, 7)))
    assert torch.equal(*found)


def test_the_gradient_goes_where_the_numbers_went() -> None:
    vectors = torch.ones(100, requires_grad=True)
    dropped = ByteDropout(0.5)(vectors)
    dropped.sum().backward()
    assert vectors.grad is not None
    assert torch.equal(vectors.grad, dropped.detach())


def test_nothing_is_left_out_but_in_training() -> None:
    vectors = torch.randn(4, 5)
    assert ByteDropout(0.5).eval()(vectors) is vectors
    assert ByteDropout(0.0)(vectors) is vectors
