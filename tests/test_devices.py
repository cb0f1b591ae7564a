import contextlib
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from required import need
from threadpoolctl import threadpool_info

from polyseme.devices import (
    choose_device,
    in_parallel,
    num_threads,
    one_thread,
    set_threads,
    usable_cpus,
    wait_asleep,
)
from polyseme.errors import ConfigError
from polyseme.executors import ExecutorConfig, ModelExecutorConfig

_WAITING = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"}


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


def test_a_process_uses_the_processors_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {3, 5, 7}, raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("polyseme.devices._LIMIT", limit := tmp_path / "cpu.max")
    assert usable_cpus() == 3
    assert ExecutorConfig().workers == 3
    for told, cores in {"200000 100000": 2, "50000 100000": 1, "max 100000": 3}.items():
        limit.write_text(told, encoding="ascii")
        assert usable_cpus() == cores
    monkeypatch.delattr("os.sched_getaffinity")
    assert usable_cpus() == 64


def test_threads_of_a_command_wait_asleep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What OpenMP itself says it was told, when a command has imported torch."""
    need(sys.platform == "linux", "an OpenMP that can be asked")
    plain = {name: value for name, value in os.environ.items() if name not in _WAITING}
    # It imports torch before it finds that there is no such model.
    command = [sys.executable, "-m", "polyseme", "score", "x", "--model", str(tmp_path)]
    env = {**plain, "OMP_DISPLAY_ENV": "TRUE"}
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in told.stderr
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")  # who has said otherwise is obeyed
    wait_asleep()
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"


def three_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)


def test_a_card_is_named_by_a_number_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    three_cards(monkeypatch)
    assert [choose_device(wish) for wish in (None, "auto", "cuda", "cuda:2", "cpu")] == [
        "cuda",
        "cuda",
        "cuda",
        "cuda:2",
        "cpu",
    ]
    with pytest.raises(ConfigError, match="'cuda:3' is not available here"):
        choose_device("cuda:3")


def test_by_default_there_is_a_worker_for_each_card(monkeypatch: pytest.MonkeyPatch) -> None:
    three_cards(monkeypatch)
    monkeypatch.setattr("polyseme.executors.run.usable_cpus", lambda: 16)
    default = ModelExecutorConfig()
    assert [default.on(each).workers for each in ("cuda", "cuda:1", "mps")] == [3, 1, 1]
    assert default.on("cpu").workers == default.workers
    assert ModelExecutorConfig(workers=7).on("cuda").workers == 7
