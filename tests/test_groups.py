from pathlib import Path

import pytest
from groups import APART, CLUSTER, FIRST, group_of, turn_of

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("tests/text/test_plan.py::test_a[1::2]", "tests/text/test_plan.py"),
        (
            "tests/pretraining/test_language_modeling.py::test_a",
            "tests/pretraining/test_language_modeling.py",
        ),
        ("tests/executors/test_cluster.py::test_a", "cluster"),
        ("tests/docs/test_commands.py::test_a[README.md]",) * 2,
        (f"{max(CLUSTER, key=len)}[1-2]", "cluster"),
    ],
)
def test_a_group_is_a_file_a_test_or_the_cluster(nodeid: str, group: str) -> None:
    assert group_of(nodeid) == group


def test_what_takes_long_is_begun_first() -> None:
    assert turn_of("tests/executors/test_cluster.py::test_a") == 0
    assert turn_of("tests/docs/test_commands.py::test_a[x]") == 1
    assert turn_of("tests/docs/test_site.py::test_a") == FIRST.index("tests/docs/")
    assert turn_of("tests/text/test_plan.py::test_a") == len(FIRST)


def test_files_that_are_named_are_there() -> None:
    names = {name.partition("::")[0] for name in (*CLUSTER, *APART, *FIRST[1:])}
    assert [name for name in sorted(names) if not (ROOT / name).exists()] == []
