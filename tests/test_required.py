"""What is missing is told on a desk and fails in CI; and no test skips in another way."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from required import need, need_package

TESTS = Path(__file__).parent
FILES = sorted(TESTS.rglob("*.py"))
BYPASSES = {"skip", "skipif", "importorskip", "xfail", "skipTest", "SkipTest"}
SYSTEM = ("sys.platform", "os.name")


@pytest.fixture(params=["", "false", "true", "1"])
def is_ci(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setenv("CI", request.param)
    return request.param in ("true", "1")


def test_what_is_there_is_not_skipped() -> None:
    need(True, "Python")
    assert need_package("ast") is ast


def test_what_is_missing_fails_in_ci_and_skips_elsewhere(is_ci: bool) -> None:
    expected = pytest.fail.Exception if is_ci else pytest.skip.Exception
    with pytest.raises(expected, match="a unicorn"):
        need(False, "a unicorn")
    with pytest.raises(expected, match="no_such_package"):
        need_package("no_such_package")


def test_what_another_system_has_is_skipped_even_in_ci(is_ci: bool) -> None:
    with pytest.raises(pytest.skip.Exception, match="only on plan9"):
        need(is_ci, "rio", only_on="plan9")


def bypasses(text: str) -> Iterator[str]:
    """Calls and marks that skip, but for those by the system alone, which no CI can mend."""
    tree = ast.parse(text)
    by_system = {
        id(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("mark.skipif")
        and ast.unparse(node.args[0]).startswith(SYSTEM)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in BYPASSES and id(node) not in by_system:
            yield f"line {node.lineno}: {ast.unparse(node)}"


def test_no_test_skips_but_by_what_it_needs() -> None:
    mine = {TESTS / "required.py", Path(__file__)}
    found = {path: list(bypasses(path.read_text("utf-8"))) for path in FILES if path not in mine}
    assert len(found) > 100
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        "pytest.skip('no strace')",
        "pytest.importorskip('jieba')",
        "@pytest.mark.skip\ndef test_it(): ...",
        "needs = pytest.mark.skipif(not has_strace(), reason='')",
        "pytest.param(1, marks=pytest.mark.xfail)",
    ],
)
def test_one_that_does_is_seen(line: str) -> None:
    assert list(bypasses(line))
    assert not list(
        bypasses("@pytest.mark.skipif(sys.platform != 'linux', reason='')\nclass A: ...")
    )
