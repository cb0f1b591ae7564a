import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from threadpoolctl import threadpool_info

from polyseme.devices import in_parallel, num_threads, one_thread, set_threads


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


def test_one_thread_is_one_everywhere_until_the_last_call_ends() -> None:
    before, pools = torch.get_num_threads(), _threads_of_pools()
    with num_threads(2):
        with one_thread():
            with contextlib.suppress(ValueError), one_thread():
                raise ValueError("on the way")
            assert torch.get_num_threads() == 1
            assert set(_threads_of_pools()) == {1}
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == before
    assert _threads_of_pools() == pools


def test_work_in_parallel_comes_back_in_order_with_one_thread_of_torch_each() -> None:
    together = threading.Barrier(3)

    def work(part: int) -> tuple[int, int]:
        together.wait(timeout=60)  # or they are not at work at once
        return part, torch.get_num_threads()

    with num_threads(3):
        assert in_parallel(work, [7, 5, 6]) == [(7, 1), (5, 1), (6, 1)]
        assert torch.get_num_threads() == 3
        assert in_parallel(work, []) == []


def test_who_comes_second_has_one_thread_of_openmp_too() -> None:
    with ThreadPoolExecutor(1) as pool, one_thread():
        other = pool.submit(_openmp_within_one_thread).result()
    assert other == {1}


def _openmp_within_one_thread() -> set[int]:
    with one_thread():
        info = threadpool_info()
    return {pool["num_threads"] for pool in info if pool["user_api"] == "openmp"}


def _threads_of_pools() -> list[int]:
    import numpy as np  # or there may be no pool to look at

    assert np is not None
    return [pool["num_threads"] for pool in threadpool_info()]
