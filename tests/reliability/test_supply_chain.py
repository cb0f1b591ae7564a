"""P1 and P2: the same source gives the same bytes, and a swapped dependency is refused.

The lock is tried with two tiny wheels made on the spot, so that no network is needed; that the
real lock has a hash for every package is checked by reading it.
"""

import base64
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from itertools import chain
from pathlib import Path

import pytest

from reliability.wheels import ROOT, SOURCE, build, copy_tree, is_source, sha256


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("trees")
    first = copy_tree(folder / "here")
    second = copy_tree(folder / "quite" / "another" / "place")
    for path in second.rglob("*"):  # copied at another time
        os.utime(path, (1_600_000_000, 1_600_000_000))
    return first, second


@pytest.fixture(scope="module")
def built(trees: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By kind."""
    out = tmp_path_factory.mktemp("built")
    return {kind: build(trees[0], kind, out) for kind in ("wheel", "sdist")}


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_two_builds_in_two_places_give_the_same_bytes(
    kind: str, trees: tuple[Path, Path], built: dict[str, Path], tmp_path: Path
) -> None:
    again = build(trees[1], kind, tmp_path / "again")
    assert again.name == built[kind].name
    assert sha256(again) == sha256(built[kind])


def test_a_build_at_another_time_is_noticed(
    trees: tuple[Path, Path], built: dict[str, Path], tmp_path: Path
) -> None:
    """The control: without the fixed time the bytes differ."""
    again = build(trees[0], "wheel", tmp_path / "again", epoch="1500000000")
    assert sha256(again) != sha256(built["wheel"])


def test_the_wheel_holds_our_files_and_nothing_else(
    trees: tuple[Path, Path], built: dict[str, Path]
) -> None:
    with zipfile.ZipFile(built["wheel"]) as archive:
        names = set(archive.namelist())
    package = {
        path.relative_to(trees[0] / "src").as_posix()
        for path in (trees[0] / "src").rglob("*")
        if path.is_file() and path.parent.name != "built"  # the kernel, for this processor alone
    }
    described = {name for name in names if re.match(r"polyseme-[^/]+\.dist-info/", name)}
    assert names - described == package
    assert all(map(is_source, package))
    files = {name.partition("/")[2] for name in described}
    assert files == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}


def test_the_sdist_holds_the_source_and_nothing_else(built: dict[str, Path]) -> None:
    with tarfile.open(built["sdist"]) as archive:
        tops = {name.split("/")[1] for name in archive.getnames()}
    assert tops == {*SOURCE, "PKG-INFO"}


def lock_of(text: str) -> dict[str, list[str]]:
    """Package -> its hashes."""
    packages: dict[str, list[str]] = {}
    for block in re.split(r"\n(?=[a-z0-9])", text):
        if found := re.match(r"([a-z0-9._-]+)==\S+", block):
            packages[found[1]] = re.findall(r"--hash=sha256:([0-9a-f]{64})", block)
    return packages


def test_the_lock_has_a_hash_for_every_dependency_of_every_extra() -> None:
    packages = lock_of((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = (re.split(r"[<>=!~ ;\[]", line)[0] for line in lines)
    asked = {name.replace("_", "-") for name in names} - {"polyseme"}
    assert asked <= packages.keys()
    assert all(packages.values()), [name for name, hashes in packages.items() if not hashes]


def make_wheel(folder: Path, name: str) -> Path:
    """A package of one line, as small as a wheel can be."""
    described = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": f"NAME = {name!r}\n",
        f"{described}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{described}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = []
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
            record.append(f"{file},sha256={digest.decode()},{len(text)}\n")
            archive.writestr(file, text)
        archive.writestr(f"{described}/RECORD", "".join(record) + f"{described}/RECORD,,\n")
    return path


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Path:
    """Two wheels in `wheels/`, and the lock that names them."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    wheels = [make_wheel(folder, name) for name in ("almond", "walnut")]
    lines = [f"{w.name.split('-')[0]}==1.0 --hash=sha256:{sha256(w)}\n" for w in wheels]
    (tmp_path / "requirements.lock").write_text("".join(lines), encoding="utf-8")
    return tmp_path


def install(folder: Path) -> subprocess.CompletedProcess[str]:
    options = ["--require-hashes", "--no-index", "--find-links", "wheels", "--target", "installed"]
    # No settings of this machine's pip: they could name other places to find packages in.
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    return subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "-r", "requirements.lock"],
        cwd=folder,
        env={**kept, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def test_locked_packages_install_offline(wheelhouse: Path) -> None:
    result = install(wheelhouse)
    assert result.returncode == 0, result.stderr
    assert (wheelhouse / "installed" / "walnut.py").is_file()


def test_one_flipped_byte_is_refused(wheelhouse: Path) -> None:
    wheel = wheelhouse / "wheels" / "walnut-1.0-py3-none-any.whl"
    data = bytearray(wheel.read_bytes())
    data[data.index(b"NAME = ")] ^= 1
    wheel.write_bytes(data)
    result = install(wheelhouse)
    assert result.returncode != 0
    assert "DO NOT MATCH THE HASHES" in result.stderr
    assert not (wheelhouse / "installed" / "walnut.py").exists()


def test_a_package_without_a_hash_is_refused(wheelhouse: Path) -> None:
    make_wheel(wheelhouse / "wheels", "pecan")
    with (wheelhouse / "requirements.lock").open("a", encoding="utf-8") as lock:
        lock.write("pecan==1.0\n")
    assert install(wheelhouse).returncode != 0
    assert not (wheelhouse / "installed").exists()
