"""P6 for wheels with the compiled kernel: our files, exactly its libraries, and they are used."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from required import needs

from polyseme.encoders.kernels.build import COMPILERS, NEEDS, library_path
from reliability.wheels import ROOT, build, copy_tree, is_source

pytestmark = needs(any(map(shutil.which, COMPILERS)), "a C compiler")
PLACE = "polyseme/encoders/kernels/built/"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    return build(copy_tree(folder / "tree"), "wheel", folder / "out", is_pure=False)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program and one model, as pip leaves them; nothing else of ours."""
    folder = tmp_path_factory.mktemp("installed")
    model = build(ROOT / "packages" / "en-mini", "wheel", folder / "out")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet"),
            *("--target", str(folder / "site"), str(wheel), str(model)),
        ],
        env={**kept, "PIP_CONFIG_FILE": os.devnull},
        check=True,
    )
    return folder / "site"


def libraries(names: set[str]) -> set[str]:
    return {name for name in names if name.startswith(PLACE)}


def test_the_wheel_holds_exactly_the_kernels_libraries_and_their_hashes(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        records = {name: archive.read(name).decode() for name in names if name.endswith(".sha256")}
    possible = {library_path(each).name for each in NEEDS}
    found = {Path(name).name for name in libraries(names) if not name.endswith(".sha256")}
    assert library_path("baseline").name in found
    assert found <= possible
    assert {Path(name).name for name in records} == {f"{name}.sha256" for name in found}
    others = {name for name in names - libraries(names) if ".dist-info/" not in name}
    assert all(map(is_source, others))


def test_the_wheel_says_which_machines_it_is_for(wheel: Path) -> None:
    kind = wheel.name.removesuffix(".whl").split("-", 2)[2]
    assert re.fullmatch(
        r"py3-none-(manylinux_2_\d+|macosx_11_0|musllinux_\d_\d|win|linux)_\w+", kind
    )
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/WHEEL"))
        text = archive.read(name).decode()
    assert f"Tag: {kind}" in text
    assert "Root-Is-Purelib: false" in text


def test_an_installed_wheel_uses_its_kernel_and_finds_its_model(installed: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "polyseme", "doctor"],
        cwd=installed.parent,
        env={**os.environ, "PYTHONPATH": str(installed), "COLUMNS": "200"},
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )
    printed = " ".join(result.stdout.replace("│", " ").split())
    assert result.returncode == 0, result.stderr
    assert "kernel ok" in printed
    assert "model en-mini ok" in printed
    assert "model zh-mini: pip install ./packages/zh-mini" in printed
    assert "No problems found." in printed


def test_a_changed_library_is_not_used(installed: Path, tmp_path: Path) -> None:
    """The control: `doctor` says so where the kernel is not the one that was built."""
    site = tmp_path / "site"
    shutil.copytree(installed, site, ignore=shutil.ignore_patterns("polyseme_data"))
    for library in (site / PLACE).glob("*.so"):
        library.write_bytes(library.read_bytes() + b"\0")
    code = "from polyseme.encoders.kernels import loader; print(loader.load())"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        check=True,
    )
    assert result.stdout.strip() == "None"
    assert "it was changed since" in result.stderr
