from pathlib import Path

import pytest
from groups import APART, CLUSTER, FIRST, LONG, group_of, is_in, turn_of

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
    assert turn_of("tests/reliability/test_any_call.py::test_a[x]") == 1
    assert turn_of("tests/docs/test_site.py::test_a") == FIRST.index("tests/docs/")
    assert turn_of("tests/text/test_plan.py::test_a") == len(FIRST)


def test_files_that_are_named_are_there() -> None:
    names = {name.partition("::")[0] for name in (*LONG, *APART, *FIRST[1:])}
    assert [name for name in sorted(names) if not (ROOT / name).exists()] == []
    for file, _, test in (name.partition("::") for name in LONG):
        assert f"def {test}" in (ROOT / file).read_text(encoding="utf-8")


def test_what_is_long_is_told_by_its_file_or_its_name() -> None:
    assert is_in(LONG, "tests/docs/test_notebook.py::test_a[x]")
    assert is_in(LONG, f"{max(CLUSTER, key=len)}[1-2]")
    assert not is_in(LONG, "tests/docs/test_commands.py::test_a_wrong_line_on_a_page_is_noticed")
    assert not is_in(LONG, "tests/docs/test_site.py::test_a")
