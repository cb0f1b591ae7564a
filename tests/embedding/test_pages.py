"""The Python code of the pages on vectors runs as it stands."""

import re
import shutil
from pathlib import Path

import pytest
from required import need_package

from polyseme.embedding.embedder import Embedder

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "docs/how-to/use-vectors-elsewhere.md"]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the models where the pages expect them."""
    shutil.copytree(ROOT / "models", tmp_path / "models")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", PAGES)
def test_snippets_run_one_after_the_other(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    need_package("sklearn")
    snippets = FENCE.findall((ROOT / page).read_text(encoding="utf-8"))
    assert snippets
    names: dict[str, object] = {}
    for code in snippets:
        exec(compile(code, page, "exec"), names)
    printed = capsys.readouterr().out
    if "how-to" not in page:
        assert printed.startswith("('She', 'plays', 'the', 'piano', '.') (3, 5, 384)\n")


def test_the_reference_names_everything_an_embedder_has() -> None:
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    public = [name for name in vars(Embedder) if not name.startswith("_") and name != "load"]
    assert len(public) >= 7
    assert not [name for name in public if not re.search(rf"\b{name}\b", page)]
