"""What layers must not do: look at padding."""

import pytest
import torch

from polyseme.tasks.families.labels import Attention, pool


def test_padding_is_neither_pooled_nor_attended_to() -> None:
    torch.manual_seed(1)
    vectors = torch.randn(2, 5, 3)
    mask = torch.tensor([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1]]).bool()
    spoilt = vectors.masked_fill(~mask[..., None], 1e6)
    attention = Attention(3)
    for ask in (pool, attention):
        assert torch.equal(ask(vectors * mask[..., None], mask), ask(spoilt, mask))
    assert pool(vectors, mask)[0].tolist() == pytest.approx(
        [*vectors[0, :2].amax(0).tolist(), *vectors[0, :2].mean(0).tolist()]
    )
