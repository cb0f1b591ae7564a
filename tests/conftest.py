"""On several processes (`pytest -n 2`), the tests of a file stay together, as fixtures are made for
a file; so do all that start a cluster, as two clusters would see each other's ports. What a test
is marked to need is looked for before it runs."""

import shutil
from collections.abc import Sequence

import pytest
import required


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without-kernel",
        action="store_true",
        help="run as if the compiled kernel had not been built; what needs a compiler is skipped",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("without_kernel"):
        import without_kernel

        copy = without_kernel.leave_it_out()
        config.add_cleanup(lambda: shutil.rmtree(copy, ignore_errors=True))


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        name = "cluster" if item.get_closest_marker("cluster") else item.path.name
        item.add_marker(pytest.mark.xdist_group(name))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        required.need(*mark.args, **mark.kwargs)
