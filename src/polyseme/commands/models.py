"""List the models and demo texts you can use by name, and how to get the others.

You can give such a name in place of a model folder: `--model en-mini`,
`polyseme.load("en-mini")`. Commands without --model use the default model of the language, which
is marked.

Examples:

  polyseme models
"""

from dataclasses import dataclass, replace
from typing import Any

from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.table import Column, Table

from polyseme.commands import Result
from polyseme.config import Settings
from polyseme.display import on_one_line
from polyseme.errors import ModelError
from polyseme.limits import read_json
from polyseme.progress import SILENT, Progress
from polyseme.storage.folders import MANIFEST
from polyseme.storage.installed import (
    MODELS,
    NOT_ON_PYPI,
    InstalledData,
    default_model,
    list_data,
    pip_command,
)


class ModelsConfig(Settings):
    """Nothing need be said."""


@dataclass(frozen=True)
class InstalledModel:
    """One row: a model or demo texts, with what its manifest tells."""

    data: InstalledData
    language: str = ""
    perplexity: str = ""  # in each direction, on held-out text
    is_default: bool = False  # for its language

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        data = self.data
        return {
            "name": data.name,
            "about": data.about,
            "folder": None if data.folder is None else str(data.folder),
            "num_bytes": data.num_bytes,
            "language": self.language,
            "perplexity": self.perplexity,
            "is_default": self.is_default,
            "install": pip_command(data.name),
        }


def run(
    config: ModelsConfig, progress: Progress = SILENT
) -> Result[list[InstalledModel], ModelsConfig]:
    """Look for what is published; weights are not read."""
    del progress
    defaults = {_default(language) for language in ("en", "zh")}
    rows = [_look_at(data) for data in list_data()]
    found = [replace(row, is_default=row.data.name in defaults) for row in rows]
    return Result(found, config)


def _default(language: str) -> str | None:
    try:
        return default_model(language)
    except ModelError:
        return None


def show(result: Result[list[InstalledModel], ModelsConfig]) -> RenderableType:
    """A table of what is here, and a command a line for the rest."""
    rows = result.found
    table = Table(Column("name", no_wrap=True), "what it is", Column("language", no_wrap=True))
    for name in ("size", "perplexity"):
        table.add_column(name, no_wrap=True, justify="right")
    for row in rows:
        size = decimal(row.data.num_bytes) if row.data.folder else "not installed"
        language = f"{row.language} (default)" if row.is_default else row.language
        table.add_row(row.data.name, row.data.about, language, size, row.perplexity)
    missing = [row.data.name for row in rows if row.data.folder is None]
    lines: list[RenderableType] = [
        on_one_line(f"Get {name}: {pip_command(name)}") for name in missing
    ]
    lines += [NOT_ON_PYPI] if missing else []
    here = [row.data.name for row in rows if row.data.folder and row.data.name in MODELS]
    if here:
        lines.append(on_one_line(f'Next: polyseme score "She plays the piano." --model {here[0]}'))
    return Group(table, *lines)


def _look_at(data: InstalledData) -> InstalledModel:
    if data.folder is None or data.name not in MODELS:
        return InstalledModel(data)
    try:
        told = read_json(data.folder / MANIFEST)["metadata"]
        figures = (float(told["perplexity"][way]) for way in ("forward", "backward"))
        perplexity = " / ".join(f"{figure:.1f}" for figure in figures)
        return InstalledModel(data, str(told["corpus"]["language"]), perplexity)
    except (OSError, ValueError, LookupError, TypeError):
        return InstalledModel(data, perplexity="damaged: install it again")
