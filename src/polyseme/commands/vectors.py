"""Inspect vectors on disk.

Examples:

  polyseme vectors info vectors/en
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.table import Table

from polyseme.config import Folder, Settings
from polyseme.display import titled
from polyseme.embedding.folder import VectorFolder
from polyseme.errors import VectorsError
from polyseme.progress import SILENT, Progress


class VectorsInfoConfig(Settings):
    """Which vectors to look at, and how."""

    arguments: ClassVar[tuple[str, ...]] = ("folder",)

    folder: Folder
    """The folder of vectors."""
    verify: bool = False
    """Read every file and compare it with the hash in the manifest."""


@dataclass(frozen=True)
class VectorsResult:
    """What was found."""

    vectors: VectorFolder
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """What the manifest says, and the notes."""
        return {**facts(self.vectors), "notes": self.notes}


def info(config: VectorsInfoConfig, progress: Progress = SILENT) -> VectorsResult:
    """Show what a vectors folder contains: counts, layers, size, model.

    Examples:

      polyseme vectors info vectors/en

      polyseme vectors info vectors/en --verify
    """
    del progress
    vectors = VectorFolder.open(config.folder)
    notes = []
    if config.verify:
        damaged = vectors.damaged()
        if damaged:
            raise VectorsError(
                f"{len(damaged)} of {len(vectors.manifest['files'])} files are missing or changed: "
                f"{', '.join(damaged[:5])}. Run the same embed command again: it repairs them."
            )
        notes.append(f"All {len(vectors.manifest['files']):,} files are intact.")
    return VectorsResult(vectors, notes)


def show(result: VectorsResult) -> RenderableType:
    """The table and how to read the files."""
    lines = [*result.notes, f"Model {result.vectors.manifest['model'][:12]} (SHA-256)."]
    path = result.vectors.folder / "vectors" / "*.parquet"
    lines.append(f"Each row is a word in its sentence; any tool reads {path}.")
    return Group(summary(result.vectors), *lines, f"Computed with {_environment(result.vectors)}.")


def facts(vectors: VectorFolder) -> dict[str, Any]:
    """What the manifest says, without the list of files, as plain values."""
    told = {name: value for name, value in vectors.manifest.items() if name != "files"}
    return told | {"num_files": len(vectors.files), "num_bytes": vectors.num_bytes}


def summary(vectors: VectorFolder) -> Group:
    """What a folder of vectors holds, as a table."""
    counts, settings = vectors.manifest["counts"], vectors.config
    table = Table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right")
    table.add_row("sentences read", f"{counts['sentences']:,}")
    table.add_row("sentences embedded", f"{counts['sentences_embedded']:,}")
    table.add_row("words embedded", f"{counts['words_read']:,}")
    if counts["unread_words"]:
        table.add_row("of which no token (zeros)", f"{counts['unread_words']:,}")
    table.add_row("words written", f"{counts['vectors']:,}")
    columns, dim = vectors.manifest["columns"], vectors.manifest["dim"]
    table.add_row("vectors for each", f"{len(columns)} ({settings.layers}), {dim} dimensions")
    for column, share in zip(columns, vectors.manifest["explained_variance_ratio"], strict=False):
        table.add_row(f"variance explained, {column}", f"{share:.1%}")
    table.add_row("files", f"{len(vectors.files):,} ({settings.dtype})")
    table.add_row("size", decimal(vectors.num_bytes))
    return titled(f"Vectors in {vectors.folder}", table)


def _environment(vectors: VectorFolder) -> str:
    """What decided last bits; of parts that were computed elsewhere, too, each value."""
    each = vectors.manifest["environments"]
    names = dict.fromkeys(name for environment in each for name in environment)
    values = {name: dict.fromkeys(str(one.get(name, "unknown")) for one in each) for name in names}
    return "; ".join(f"{name} {' or '.join(values[name])}" for name in names)
