"""On several processes (`pytest -n 2`), the tests of a file stay together, as fixtures are made for
a file; so do all that start a cluster, as two clusters would see each other's ports. What takes
long is begun first: begun last, it would keep one process busy and the others waiting. What a test
is marked to need is looked for before it runs."""

import shutil
from pathlib import Path

import pytest
import required

TESTS = Path(__file__).parent
LONGEST = [
    "cluster",
    "docs/test_commands.py",
    "docs/test_how_to_add.py",
    "journeys/test_every_command.py",
    "docs/test_add_a_task_family.py",
    "journeys",
    "training/test_processes.py",
    "docs",
    "tasks",
]
"""Groups, files and folders in the order in which they are begun; all others follow."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without-kernel",
        action="store_true",
        help="run as if the compiled kernel had not been built; what needs a compiler is skipped",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    if config.getoption("numprocesses", None) and config.option.dist in ("no", "load"):
        config.option.dist = "loadgroup"
    config.option.loadscopereorder = False  # by the number of their tests, which says little


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("without_kernel"):
        import without_kernel

        copy = without_kernel.leave_it_out()
        config.add_cleanup(lambda: shutil.rmtree(copy, ignore_errors=True))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("cluster"):
            item.add_marker(pytest.mark.xdist_group("cluster"))
        elif not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.relative_to(TESTS).as_posix()))
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    """When an item is begun; items of the same turn keep their order."""
    mark = item.get_closest_marker("xdist_group")
    assert mark is not None
    path = item.path.relative_to(TESTS)
    names = [mark.args[0], *(each.as_posix() for each in (path, *path.parents))]
    found = [LONGEST.index(name) for name in names if name in LONGEST]
    return min(found, default=len(LONGEST))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        required.need(*mark.args, **mark.kwargs)
