"""P6 for packages of data: the files of the model or the texts, and no code at all."""

import re
import zipfile
from pathlib import Path

import pytest

from polyseme.storage.installed import DEMOS, MODELS, TASKS, TEXTS, locate
from reliability.wheels import ROOT, build

PACKAGES = sorted(path.parent for path in (ROOT / "packages").glob("*/pyproject.toml"))


def test_there_is_a_package_for_everything_published() -> None:
    assert {package.name for package in PACKAGES} == {*MODELS, *TASKS, *DEMOS}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_a_package_of_data_holds_its_files_and_nothing_else(package: Path, tmp_path: Path) -> None:
    wheel = build(package, "wheel", tmp_path / "out")
    assert wheel.name.endswith("-py3-none-any.whl")
    source = locate(package.name)
    assert source is not None
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        described = {name for name in names if re.match(r"polyseme_[^/]+\.dist-info/", name)}
        data = {Path(name).name: archive.read(name) for name in names - described}
    assert {name.partition("/")[2] for name in described} == {"METADATA", "WHEEL", "RECORD"}
    assert all(name.startswith(f"polyseme_data/{package.name}/") for name in names - described)
    expected = {path.name: path.read_bytes() for path in source.iterdir()}
    expected.setdefault("README.md", (package / "README.md").read_bytes())
    assert data == expected
    assert TEXTS in data or "model.safetensors" in data
    assert not any(Path(name).suffix in (".py", ".pth", ".so") for name in names)
