"""Every task that a page shows in TOML is one that `polyseme train` would accept."""

import re
import tomllib
from pathlib import Path

import pytest

from polyseme.config import build
from polyseme.errors import ConfigError
from polyseme.tasks.families.tagging import Tagged
from polyseme.tasks.readers import load_examples
from polyseme.tasks.task import TaskConfig

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def tasks_of(page: str) -> list[str]:
    """The fences that describe a whole task: those with a network."""
    return [text for text in FENCE.findall(page) if "network" in tomllib.loads(text)]


EXAMPLES = [
    pytest.param(text, id=f"{page.relative_to(DOCS).as_posix()}-{number}")
    for page in sorted(DOCS.rglob("*.md"))
    for number, text in enumerate(tasks_of(page.read_text(encoding="utf-8")), start=1)
]


@pytest.mark.parametrize("text", EXAMPLES)
def test_a_task_on_a_page_can_be_built(text: str) -> None:
    config = build(TaskConfig, tomllib.loads(text))
    assert config.network.kind == tomllib.loads(text)["network"]["kind"]


def test_the_recipe_for_weibo_reads_characters_without_their_places(tmp_path: Path) -> None:
    page = (DOCS / "how-to/train-a-task.md").read_text(encoding="utf-8")
    [text] = [text for text in tasks_of(page) if "weibo" in text]
    reader = build(TaskConfig, tomllib.loads(text)).data.reader
    (tmp_path / "weibo.train").write_text("科0\tO\n技1\tO\n", encoding="utf-8")
    examples = load_examples(tmp_path / "weibo.train", reader).examples
    assert examples == [Tagged(("科", "技"), ("O", "O"))]


def test_pages_with_tasks_are_found() -> None:
    pages = {str(each.id).rpartition("-")[0] for each in EXAMPLES}
    assert {"how-to/train-a-task.md", "tutorials/a-tagger-in-ten-minutes.md"} <= pages


def test_a_task_that_cannot_be_built_is_noticed() -> None:
    page = '```toml\n[network]\nkind = "tagging"\nsceme = "bio"\n```\n\n```toml\n[corpus]\n```\n'
    [text] = tasks_of(page)
    with pytest.raises(ConfigError):
        build(TaskConfig, tomllib.loads(text))
