"""What a run may write over and remove in its output folder: what was made here, no more.

Names come from receipts, which are files and may say anything; they were checked when read. Files
are removed only directly in a folder of the job. Where that folder is a link to another disk, what
else lies there is not ours: a file is replaced or removed only if a receipt has its very hash.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from polyseme.executors.commit import RECEIPTS, Receipt, ShardJob, read_receipt
from polyseme.storage.files import is_as_written, is_linked, refuse_link

_SHARDS = "part-*"  # what files of shards are called


def check_folders(job: ShardJob, folder: Path) -> None:
    """Refuse links where there must be none, and those that lead nowhere."""
    for top in (RECEIPTS, *job.folders):
        if top not in job.linkable:
            refuse_link(folder / top)
        is_linked(folder / top)


def receipts_in(folder: Path) -> list[Receipt]:
    """All receipts that are sound, in the order of their names."""
    names = sorted(path.stem for path in (folder / RECEIPTS).glob("*.json"))
    return [found for found in (read_receipt(folder, name) for name in names) if found]


def forget_shards_not_in(names: Collection[str], job: ShardJob, folder: Path) -> None:
    """Remove shards an earlier plan made and this one does not have, receipt first."""
    for path in sorted((folder / RECEIPTS).glob("*.json")):
        receipt = read_receipt(folder, path.stem)
        if path.stem in names or not (receipt or path.match(_SHARDS)):
            continue
        _remove_file(path)
        for name, described in receipt.files.items() if receipt else ():
            _remove_made(job, folder, name, described)


def remove_strays(
    job: ShardJob, folder: Path, before: Sequence[Receipt], now: Sequence[Receipt]
) -> None:
    """Remove what shards once had and have no more, or had when their receipts were lost."""
    named = {name for receipt in now for name in receipt.files}
    for receipt in before:
        for name, described in receipt.files.items():
            if name not in named:
                _remove_made(job, folder, name, described)
    for top in job.folders:
        if not is_linked(folder / top):
            for path in sorted((folder / top).glob(_SHARDS)):
                if f"{top}/{path.name}" not in named:
                    _remove_file(path)


def _remove_made(job: ShardJob, folder: Path, name: str, described: Mapping[str, Any]) -> None:
    top, _, rest = name.partition("/")
    if top not in job.folders or "/" in rest:
        return
    if not is_linked(folder / top) or is_as_written(folder / name, described):
        _remove_file(folder / name)


def _remove_file(path: Path) -> None:
    """Remove a file, or a link but not what it leads to; a folder is not ours."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
