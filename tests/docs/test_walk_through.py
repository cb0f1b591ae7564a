"""The page "From a sentence to its vectors": its Python runs, and the files it names are there."""

import re
from pathlib import Path
from typing import Any

import pytest
from required import need

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explanation/from-a-sentence-to-its-vectors.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = re.findall(r"`((?:[a-z_]+/)*[a-z_]+(?:\.py|/))`", PAGE)


def test_its_python_runs_and_its_asserts_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    need((ROOT / "models/en-mini").is_dir(), "models/en-mini")
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    for snippet in SNIPPETS:
        exec(compile(snippet, "the page", "exec"), names)
    assert sum(snippet.count("assert") for snippet in SNIPPETS) >= 10


def test_the_files_it_names_are_there() -> None:
    assert len(FILES) >= 25
    package = ROOT / "src/polyseme"
    assert [name for name in FILES if not (package / name).exists()] == []
