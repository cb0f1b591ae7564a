"""On several processes (`pytest -n 2`), the tests of a file stay together, as fixtures are made for
a file; so do all that start a cluster, as two clusters would see each other's ports. What a test
is marked to need is looked for before it runs."""

from collections.abc import Sequence

import pytest
import required


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        name = "cluster" if item.get_closest_marker("cluster") else item.path.name
        item.add_marker(pytest.mark.xdist_group(name))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        required.need(*mark.args, **mark.kwargs)
