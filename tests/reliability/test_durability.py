"""What has its final name is on the disk: bytes before the name, the name before we go on.

No test can pull the plug. What can be seen is the order of calls, which is all that a disk
promises anything about: `fsync` of every file, then the rename, then `fsync` of the folder.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from polyseme.storage.files import publish, publish_folder, write_text
from polyseme.training.checkpoint import Checkpoint, Checkpoints

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be flushed there")
RENAME = "rename"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int | str]:
    """The inode of each fsync, and each rename to a final name."""
    found: list[int | str] = []
    fsync = os.fsync

    def flush(descriptor: int) -> None:
        fsync(descriptor)
        found.append(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(os, "fsync", flush)
    for name in ("rename", "replace"):
        monkeypatch.setattr(Path, name, noted(found, getattr(Path, name)))
    return found


def noted(found: list[int | str], move: Callable[[Path, Path], Path]) -> Callable[..., Path]:
    def rename(path: Path, target: Path) -> Path:
        found.append(RENAME)
        return move(path, target)

    return rename


def check(calls: list[int | str], durable: list[Path], final: Path) -> None:
    """One rename; before it all of `durable` was flushed, after it the folder of the name."""
    assert calls.count(RENAME) == 1
    at = calls.index(RENAME)
    missing = [path.name for path in durable if path.stat().st_ino not in calls[:at]]
    assert missing == []
    assert final.parent.stat().st_ino in calls[at:]


def publish_file(folder: Path) -> Path:
    (folder / "scratch").write_text("text", encoding="utf-8")
    publish(folder / "scratch", folder / "final")
    return folder / "final"


def publish_text(folder: Path) -> Path:
    write_text(folder / "final", "text")
    return folder / "final"


def publish_three(folder: Path) -> Path:
    (folder / "scratch").mkdir()
    for name in "abc":
        (folder / "scratch" / name).write_text(name, encoding="utf-8")
    publish_folder(folder / "scratch", folder / "final")
    return folder / "final"


def save_checkpoint(folder: Path) -> Path:
    tensors, checkpoints = {"a": torch.ones(3)}, Checkpoints(folder, keep=1)
    checkpoints.save(Checkpoint(tensors, tensors, {"step": 3}))
    return checkpoints.path(3)


@pytest.mark.parametrize(
    ("make", "files"),
    [(publish_file, 0), (publish_text, 0), (publish_three, 3), (save_checkpoint, 4)],
)
def test_all_is_on_the_disk_before_and_after_it_has_its_name(
    tmp_path: Path, calls: list[int | str], make: Callable[[Path], Path], files: int
) -> None:
    final = make(tmp_path)
    inside = list(final.iterdir()) if files else []
    assert len(inside) == files
    check(calls, [*inside, final], final)


def test_a_new_folder_on_the_way_to_a_name_is_on_the_disk_too(
    tmp_path: Path, calls: list[int | str]
) -> None:
    (tmp_path / "scratch").write_text("text", encoding="utf-8")
    final = tmp_path / "one" / "two" / "final"
    publish(tmp_path / "scratch", final)
    check(calls, [final, tmp_path, tmp_path / "one"], final)


def test_a_file_that_was_not_flushed_is_noticed(tmp_path: Path, calls: list[int | str]) -> None:
    (tmp_path / "scratch").write_text("text", encoding="utf-8")
    final = tmp_path / "final"
    (tmp_path / "scratch").rename(final)
    with pytest.raises(AssertionError):
        check(calls, [final], final)
