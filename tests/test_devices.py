import contextlib

import torch

from polyseme.devices import num_threads, set_threads


def test_threads_are_as_before_when_a_call_ends_even_by_an_error() -> None:
    before = torch.get_num_threads()
    with contextlib.suppress(ValueError), num_threads(before + 1):
        assert torch.get_num_threads() == before + 1
        set_threads(before + 2)
        raise ValueError("on the way")
    assert torch.get_num_threads() == before


def test_none_leaves_threads_as_they_are() -> None:
    before = torch.get_num_threads()
    set_threads(None)
    with num_threads(None):
        assert torch.get_num_threads() == before
