"""Several processes (`pytest -n 2`) share the tests as `groups.py` says. What a test is marked to
need is looked for before it runs."""

import os
import shutil
from typing import Any

import pytest
import required
from cpu_seconds import CpuSeconds
from groups import LONG, group_of, is_in, turn_of


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without-kernel",
        action="store_true",
        help="run as if the compiled kernel had not been built; what needs a compiler is skipped",
    )
    parser.addoption(
        "--cpu", action="store_true", help="tell processor seconds of folders and tests at the end"
    )


def pytest_configure(config: pytest.Config) -> None:
    # A disk takes milliseconds to flush a file, and only a power cut would show the difference.
    # That each file is flushed is seen by tests/reliability/test_durability.py, and under strace.
    os.fsync = lambda _: None  # type: ignore[assignment]
    # Ray's workers are so nice that on a busy machine they would get nothing for half a minute.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  # Ray's own spelling
    if config.getoption("cpu"):
        config.pluginmanager.register(CpuSeconds())
    if config.getoption("without_kernel"):
        import without_kernel

        copy = without_kernel.leave_it_out()
        config.add_cleanup(lambda: shutil.rmtree(copy, ignore_errors=True))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Not `--dist loadgroup`: with pytest 9.2 its groups are lost without a word."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    config.option.loadscopereorder = False  # not by the number of tests, which says little
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = group_of
    return scheduler


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before `-m` looks at the marks: what a plugin in a file does comes first."""
    for item in items:
        starts_one = item.get_closest_marker("cluster") is not None
        assert starts_one == (group_of(item.nodeid) == "cluster"), f"see groups.py: {item.nodeid}"
        if is_in(LONG, item.nodeid):
            item.add_marker("long")
    items.sort(key=lambda item: turn_of(item.nodeid))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        required.need(*mark.args, **mark.kwargs)
