"""A library that others could have changed, or that was changed, is not loaded; building mends it.

What is loaded can do anything. So the control of each test is the same library before the change.
"""

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from encoders.kernel import Kernels
from polyseme.encoders.kernels import build, loader
from polyseme.encoders.kernels.build import instruction_sets
from polyseme.errors import PolysemeError

pytestmark = [
    pytest.mark.usefixtures("compiler"),
    pytest.mark.skipif(os.name == "nt", reason="Windows has neither these owners nor these modes"),
]
STRANGER = 54321


@pytest.fixture(autouse=True)
def group_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests shares a group with others."""
    monkeypatch.setattr(build, "_is_private_group", lambda *_: False)


@pytest.fixture
def built(kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library that is loaded: all that follows is due to what a test does to it.

    What compiles it anew takes it from where it was compiled already.
    """
    compiled = Path(kernels(instruction_sets()[0])._name)
    monkeypatch.setattr(build, "_compile", lambda _, __, into: shutil.copyfile(compiled, into))
    copies = tuple(Path(shutil.copy(source, tmp_path)) for source in build.SOURCES)
    monkeypatch.setattr(build, "SOURCES", copies)
    path = build.build()
    assert loader.load.__wrapped__() is not None
    return path


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()  # not in place: the library is in use, and would be changed while it is
    path.write_bytes(bytes(data))
    path.chmod(0o755)


def put_another_in_its_place(path: Path) -> None:
    path.symlink_to(path.rename(path.with_name("elsewhere.so")))


def link_the_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))
    path.parent.symlink_to(path.parent.with_name("moved"))


def lose_the_record(path: Path) -> None:
    path.with_name(f"{path.name}.sha256").unlink()


def empty_the_record(path: Path) -> None:
    path.with_name(f"{path.name}.sha256").write_bytes(b"\n")


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "one bit is another": (flip_a_bit, "it was changed since"),
    "a link to a sound library": (put_another_in_its_place, "not a regular file"),
    "a link to its folder": (link_the_folder, "is not a folder"),
    "no record": (lose_the_record, "what it should be is not written"),
    "an empty record": (empty_the_record, "what it should be is not written"),
    "world-writable": (lambda path: path.chmod(0o757), "its mode is 757"),
    "group-writable": (lambda path: path.chmod(0o775), "its mode is 775"),
    "its folder world-writable": (lambda path: path.parent.chmod(0o777), "its mode is 777"),
    "its folder group-writable": (lambda path: path.parent.chmod(0o775), "its mode is 775"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_library_is_not_loaded_and_the_warning_says_why(
    change: str, built: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make, reason = CHANGES[change]
    make(built)
    with caplog.at_level(logging.WARNING):
        assert loader.load.__wrapped__() is None
    [said] = caplog.messages
    assert str(built) in said
    assert reason in said
    assert "Build it again (python -m polyseme.encoders.kernels.build)" in said


@pytest.mark.parametrize("change", ["one bit is another", "its folder world-writable"])
def test_building_again_mends_it(change: str, built: Path) -> None:
    CHANGES[change][0](built)
    assert build.build() == built
    assert loader.load.__wrapped__() is not None


@pytest.mark.parametrize("is_folder", [False, True], ids=["the library", "its folder"])
def test_what_belongs_to_someone_else_is_not_loaded(
    is_folder: bool,
    built: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if os.geteuid() == 0:
        os.chown(built.parent if is_folder else built, STRANGER, -1)
    else:  # only root gives files away; then be someone else
        monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    with caplog.at_level(logging.WARNING):
        assert loader.load.__wrapped__() is None
    assert "belongs to user" in caplog.text
    if is_folder:
        with pytest.raises(PolysemeError, match=r"will not be used.*belongs to user"):
            build.build()


def test_what_root_has_built_is_loaded_by_all(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    is_roots = built.stat().st_uid == 0
    assert (loader.load.__wrapped__() is not None) == is_roots


@pytest.mark.usefixtures("built")
def test_a_careless_umask_makes_no_library_that_others_can_write() -> None:
    shutil.rmtree(build.library_path(instruction_sets()[0]).parent)
    before = os.umask(0)
    try:
        build.build()
    finally:
        os.umask(before)
    assert loader.load.__wrapped__() is not None


def test_a_header_that_changed_leaves_the_old_library_aside_without_a_word(
    built: Path, caplog: pytest.LogCaptureFixture
) -> None:
    header = next(source for source in build.SOURCES if source.name == "steps.h")
    header.write_bytes(header.read_bytes() + b"\n")
    assert loader.load.__wrapped__() is None
    assert not caplog.messages
    assert build.library_path(instruction_sets()[0]) != built
