"""Wheels and sdists, built from a copy of the sources by the backend itself."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ("src", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "hatch_build.py")
EPOCH = "1700000000"
BUILD = "from hatchling.build import build_{0}; print(build_{0}({1!r}))"


def copy_tree(folder: Path) -> Path:
    """The files a build needs, in a place of their own."""
    folder.mkdir(parents=True)
    for name in SOURCE:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def build(tree: Path, kind: str, out: Path, *, epoch: str = EPOCH, is_pure: bool = True) -> Path:
    """A wheel or sdist of a tree. Nothing is installed for it; unless pure, it is compiled for."""
    out.mkdir(exist_ok=True)
    result = subprocess.run(
        [sys.executable, "-c", BUILD.format(kind, str(out))],
        cwd=tree,
        env={**os.environ, "SOURCE_DATE_EPOCH": epoch, "POLYSEME_PURE": str(int(is_pure))},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return out / result.stdout.split()[-1]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
