"""Pages that walk through the code: their Python runs, and the files they name are there."""

import re
from pathlib import Path
from typing import Any

import pytest
from required import need

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explanation/from-a-sentence-to-its-vectors.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
HOUR = (ROOT / "docs/contributing/code-in-an-hour.md").read_text(encoding="utf-8")
FILE = re.compile(r"`((?:[a-z_]+/)*[a-z_]+(?:\.py|/))`")


def test_its_python_runs_and_its_asserts_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    need((ROOT / "models/en-mini").is_dir(), "models/en-mini")
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    for snippet in SNIPPETS:
        exec(compile(snippet, "the page", "exec"), names)
    assert sum(snippet.count("assert") for snippet in SNIPPETS) >= 10


@pytest.mark.parametrize(("page", "number"), [(PAGE, 25), (HOUR, 15)], ids=["vectors", "hour"])
def test_the_files_it_names_are_there(page: str, number: int) -> None:
    files = [name for name in FILE.findall(page) if not name.startswith(("tests/", "test_"))]
    assert len(files) >= number
    assert [name for name in files if not (ROOT / "src/polyseme" / name).exists()] == []
