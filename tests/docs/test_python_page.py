"""The Python of the page "From Python", run from top to bottom as a reader would."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from required import need

import polyseme

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
NOVEL = "She plays the piano. It rains in Paris.\n\nWe sat on the bank. Jordan moved to Paris.\n\n"
TAGGED = "Jordan B-PER\nmoved O\nto O\nParis B-LOC\n. O\n\nIt O\nrains O\n. O\n\n"
TASK = """
[data]
train = "train.conll"
dev = "train.conll"
reader.kind = "columns"

[embeddings.model]
kind = "frozen"
model = "models/en-mini"

[network]
kind = "tagging"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the page takes for granted: some novels, a model, a task."""
    need((ROOT / "models/en-mini").is_dir(), "models/en-mini")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "models/en-mini", "models/en-mini")
    Path("novels").mkdir()
    for number in range(20):
        Path(f"novels/{number}.txt").write_text(NOVEL * 10, encoding="utf-8")
    Path("train.conll").write_text(TAGGED * 20, encoding="utf-8")
    Path("ner.toml").write_text(TASK, encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_page_runs_and_its_results_are_what_it_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names: dict[str, Any] = {}
    for snippet in SNIPPETS:
        exec(compile(snippet, "docs/reference/python.md", "exec"), names)
    assert names["prepared"].corpus.read_stats == names["corpus"].read_stats
    assert set(names["pretrained"].model.metadata["perplexity"]) == {"forward", "backward"}
    assert len(names["trained"].metadata) == 2
    assert len(names["found"].words) == len(names["found"].labels)
    # A good sentence is likelier than one with its words shuffled.
    good, bad = polyseme.score(
        ["She plays the piano.", "She plays piano the."], model="models/en-mini"
    )
    assert good.total > bad.total
    # What is printed is a line a person likes: no addresses, no dumps of settings.
    shown = [names[name] for name in ("prepared", "corpus", "pretrained", "trained", "task")]
    assert capsys.readouterr().out
    for result in [*shown, names["embedder"], names["sentence"], names["found"], good]:
        line = repr(result)
        assert line.startswith("<"), line
        assert "0x" not in line, line
        assert len(line) < 250, line
        assert result._repr_html_().startswith("<div>"), line


def test_every_public_name_has_a_section() -> None:
    for name in set(polyseme.__all__) - {"__version__"}:
        assert f"\n## polyseme.{name}\n" in PAGE
