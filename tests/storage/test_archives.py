"""One member of a zip, under the name we asked for; nothing else leaves an archive."""

import random
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from slack import allowed

from polyseme.storage.archives import Archive, ArchiveError, extract_member
from storage.hostile_archives import LIMIT, NAME, READ, REFUSED


def read_member(archive: Path, name: str, *, limit: int) -> bytes:
    with Archive(archive) as opened:
        return opened.read(name, limit=limit)


def files_in(folder: Path) -> set[str]:
    assert not list(folder.rglob(".work")), "scratch was left"
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def links_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_symlink()]


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_archive_is_refused_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    archive, target = tmp_path / "archive", tmp_path / "in" / "here"
    archive.write_bytes(REFUSED[name](tmp_path))
    tracemalloc.start()
    started = time.process_time()
    for read in (
        lambda: read_member(archive, NAME, limit=LIMIT),
        lambda: extract_member(archive, NAME, target, limit=LIMIT),
    ):
        with pytest.raises(ArchiveError):
            read()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 16 << 20
    assert time.process_time() - started < allowed(2)
    assert files_in(tmp_path) == {"archive"}
    assert not links_in(tmp_path)


@pytest.mark.parametrize("name", READ)
def test_what_else_is_in_an_archive_stays_there(tmp_path: Path, name: str) -> None:
    archive, target = tmp_path / "archive", tmp_path / "in" / "here"
    archive.write_bytes(READ[name](tmp_path))
    assert read_member(archive, NAME, limit=LIMIT) == b"good"
    extract_member(archive, NAME, target, limit=LIMIT)
    assert target.read_bytes() == b"good"
    assert files_in(tmp_path) == {"archive", "in/here"}
    assert not links_in(tmp_path)


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_member_comes_out_whole(tmp_path: Path, packing: int) -> None:
    content = random.Random(1).randbytes(5_120_000)  # several pieces
    with zipfile.ZipFile(tmp_path / "archive", "w", packing) as archive:
        archive.writestr(NAME, content)
        archive.comment = b"with a comment"
    assert read_member(tmp_path / "archive", NAME, limit=len(content)) == content
    extract_member(tmp_path / "archive", NAME, tmp_path / "here", limit=len(content))
    assert (tmp_path / "here").read_bytes() == content
    with pytest.raises(ArchiveError, match=r"has 5,120,000 bytes, over 5,119,999"):
        read_member(tmp_path / "archive", NAME, limit=len(content) - 1)


@pytest.mark.parametrize("times", [100, 150])
def test_what_packs_well_is_read(tmp_path: Path, times: int) -> None:
    content = repeated(times)
    archive = packed(tmp_path, content)
    assert read_member(archive, NAME, limit=len(content)) == content


@pytest.mark.parametrize("times", [250, 400])
def test_what_packs_better_than_weights_or_text_is_refused_below_the_limit_too(
    tmp_path: Path, times: int
) -> None:
    content = repeated(times)
    archive = packed(tmp_path, content)
    with pytest.raises(ArchiveError, match="far more than is stored"):
        read_member(archive, NAME, limit=len(content))


def repeated(times: int) -> bytes:
    """16 MB that deflate makes about so many times smaller: noise, then zeros (1,030 times)."""
    size = 16 << 20
    noise = round(size * (1 / times - 1 / 1030))
    return random.Random(1).randbytes(noise) + bytes(size - noise)


def packed(folder: Path, content: bytes) -> Path:
    with zipfile.ZipFile(folder / "archive", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(NAME, content)
    return folder / "archive"


def test_a_link_where_the_file_shall_be_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("mine", encoding="utf-8")
    (tmp_path / "here").symlink_to(tmp_path / "outside")
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        archive.writestr(NAME, b"good")
    extract_member(tmp_path / "archive", NAME, tmp_path / "here", limit=LIMIT)
    assert (tmp_path / "here").read_bytes() == b"good"
    assert (tmp_path / "outside").read_text(encoding="utf-8") == "mine"


def test_a_name_that_is_not_there_is_said_with_those_that_are(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        archive.writestr("vocab\x1b.txt", b"good")
    with pytest.raises(ArchiveError, match=r"There is no model\.hdf5, only 'vocab\\x1b\.txt'"):
        read_member(tmp_path / "archive", NAME, limit=LIMIT)
    with pytest.raises(FileNotFoundError):
        read_member(tmp_path / "nowhere", NAME, limit=LIMIT)


def test_all_members_together_come_to_no_more_than_a_multiple_of_the_file(tmp_path: Path) -> None:
    path = packed(tmp_path, repeated(150))
    with Archive(path) as archive:
        archive.read(NAME, limit=16 << 20)
        # Members may lie over each other in the file: the same bytes, again and again.
        with pytest.raises(ArchiveError, match="far more than is stored"):
            archive.read(NAME, limit=16 << 20)
