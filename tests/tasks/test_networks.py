"""What networks must not do: break a scheme's rules, or look at padding."""

import pytest
import torch

from polyseme.tasks.networks import build_network
from polyseme.tasks.networks.context import ContextConfig
from polyseme.tasks.networks.pairs import attend
from polyseme.tasks.networks.pooling import Attention, pool
from polyseme.tasks.networks.tagging import Tagger, TaggingConfig
from polyseme.tasks.spans import Scheme, is_allowed
from polyseme.transfer.fed import Widths

LABELS = ("B-x", "B-y", "I-x", "I-y", "O")


def test_an_untrained_tagger_never_breaks_the_rules() -> None:
    torch.manual_seed(1)
    schemes: dict[Scheme, tuple[str, ...]] = {
        "bio": LABELS,
        "bioes": ("B-x", "B-y", "E-x", "E-y", "I-x", "I-y", "O", "S-x", "S-y"),
    }
    for scheme, names in schemes.items():
        config = TaggingConfig(scheme=scheme, context=ContextConfig(width=4))
        network = build_network(config, Widths(3), names)
        assert isinstance(network, Tagger)
        scores = 5 * torch.randn(300, 6, len(names))
        mask = torch.arange(6) < torch.randint(1, 7, (300, 1))
        for row, length in zip(network.best(scores, mask).tolist(), mask.sum(1), strict=True):
            assert is_allowed([names[number] for number in row[:length]], scheme)
        # Without rules the same scores break them.
        free = build_network(config.model_copy(update={"scheme": "none"}), Widths(3), names)
        found = [[names[n] for n in row] for row in free.best(scores, mask).tolist()]
        assert not all(is_allowed(row, scheme) for row in found)


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


def test_a_word_finds_its_like_in_the_other_sentence() -> None:
    words = 20 * torch.eye(4)
    first, second = words[[0, 1, 2]], words[[2, 0, 3]]
    vectors, mask = torch.stack([first, second]), torch.ones(2, 3, dtype=torch.bool)
    found = attend(vectors, mask)
    assert torch.allclose(found[0, 0], words[0])  # word 0 stands in the other sentence too
    assert torch.allclose(found[1, 0], words[2])
    assert torch.allclose(found[0, 1], second.mean(0))  # nothing is like word 1
    mask[1, 2] = False
    assert torch.allclose(attend(vectors, mask)[0, 1], second[:2].mean(0))
