"""Two texts, each read in the light of the other."""

import torch

from polyseme.tasks.families.classification import attend


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
