"""Publish a model or a corpus on the Hugging Face Hub.

Checks every file against its hash, then uploads all in one commit. A corpus becomes a dataset. Log
in first: hf auth login. Apart from buckets you name, only push and pull use a network.

Examples:

  polyseme push models/novels you/novels-elmo --private

  polyseme push corpus/novels you/novels
"""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.console import Group, RenderableType
from rich.filesize import decimal

from polyseme.commands import Result
from polyseme.config import Settings
from polyseme.display import on_one_line
from polyseme.progress import SILENT, Progress

if TYPE_CHECKING:
    from polyseme.storage.hub import Transfer


class PushConfig(Settings):
    """What to publish, and where."""

    arguments: ClassVar[tuple[str, ...]] = ("folder", "repository")

    folder: Path
    """The folder of a model or a corpus."""
    repository: str
    """Its name on the Hub: OWNER/NAME."""
    private: bool = False
    """If the repository is new, make it private."""
    message: str | None = None
    """Commit message."""


def run(config: PushConfig, progress: Progress = SILENT) -> "Result[Transfer, PushConfig]":
    """Check the folder, then upload it."""
    from polyseme.storage.hub import push

    done = push(
        config.folder,
        config.repository,
        private=config.private,
        message=config.message,
        progress=progress,
    )
    return Result(done, config)


def show(result: "Result[Transfer, PushConfig]") -> RenderableType:
    """What is there now, and how others get it."""
    done = result.found
    size = f"{done.num_files} files, {decimal(done.num_bytes)}"
    return Group(
        on_one_line(f"{done.repository} now has {size} (commit {done.commit[:12]})."),
        on_one_line(f"Others get it with: polyseme pull {done.repository} --out FOLDER"),
    )
