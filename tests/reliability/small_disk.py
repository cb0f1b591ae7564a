"""A file system of its own that is soon full, and that can be made larger."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from required import need


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """64 KB."""
    is_root = sys.platform == "linux" and os.geteuid() == 0
    need(is_root, "being root, to mount a small file system", only_on="linux")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=False
    )
    need(mounted.returncode == 0, "the right to mount a small file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


def resize(disk: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)
