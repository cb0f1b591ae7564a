"""Download a model or a corpus from the Hugging Face Hub.

Downloads what `polyseme push` uploaded. Every file is checked against the hash in its manifest,
and the folder is either complete or absent. Afterwards you need no network.

Examples:

  polyseme pull someone/novels-elmo --out models/novels

  polyseme pull datasets/someone/novels --out corpus/novels --revision v1
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import RenderableType
from rich.filesize import decimal

from polyseme.config import Settings
from polyseme.display import on_one_line
from polyseme.progress import SILENT, Progress

if TYPE_CHECKING:
    from polyseme.storage.hub import Transfer


class PullConfig(Settings):
    """What to download, and where to."""

    arguments: ClassVar[tuple[str, ...]] = ("repository",)

    repository: str
    """Its name on the Hub: OWNER/NAME, or datasets/OWNER/NAME for a corpus."""
    out: Path
    """The new folder."""
    revision: str | None = None
    """A branch, a tag or a commit; by default the newest."""


@dataclass(frozen=True)
class PullResult:
    """What was downloaded."""

    transfer: "Transfer"
    out: Path

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"folder": str(self.out), **self.transfer.to_json()}


def run(config: PullConfig, progress: Progress = SILENT) -> PullResult:
    """Download into a new folder."""
    from polyseme.storage.hub import pull

    done = pull(config.repository, config.out, revision=config.revision, progress=progress)
    return PullResult(done, config.out)


def show(result: PullResult) -> RenderableType:
    """What is there now."""
    done = result.transfer
    return on_one_line(
        f"{result.out} has {done.repository} at commit {done.commit[:12]}: {done.num_files} files, "
        f"{decimal(done.num_bytes)}, all hashes as in its manifest."
    )
