"""Files under final names: whole or absent, never written in place, whatever stands there."""

import errno
import hashlib
import os
import threading
from pathlib import Path

import pytest
from reliability.dying import dead_process
from reliability.victims import harm, make_victims, snapshot

from polyseme.errors import StorageError
from polyseme.storage.files import (
    WORK,
    ReadingHash,
    clear_work,
    disk_faults_explained,
    is_abandoned,
    is_linked,
    new_name,
    own_folder,
    publish,
    scratch_folder,
    scratch_for,
    write_text,
)


def test_a_file_appears_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    with scratch_for(tmp_path / "new" / "final.txt") as scratch:
        scratch.write_text("half")
        assert not (tmp_path / "new" / "final.txt").exists()
        scratch.write_text("whole")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["final.txt"]
    assert (tmp_path / "new" / "final.txt").read_text() == "whole"


def test_a_failure_leaves_what_was_there_before(tmp_path: Path) -> None:
    (tmp_path / "final.txt").write_text("before")

    def write_half() -> None:
        with scratch_for(tmp_path / "final.txt") as scratch:
            scratch.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert [path.name for path in tmp_path.iterdir()] == ["final.txt"]
    assert (tmp_path / "final.txt").read_text() == "before"


def test_no_two_writers_have_the_same_scratch(tmp_path: Path) -> None:
    with scratch_for(tmp_path / "x.png") as first, scratch_for(tmp_path / "x.png") as second:
        assert first != second
        assert first.suffix == second.suffix == ".png"  # libraries choose the format by it


def test_writers_that_come_and_go_do_not_take_each_others_folder_away(tmp_path: Path) -> None:
    faults: list[BaseException] = []

    def write(name: str) -> None:
        try:
            for number in range(200):
                write_text(tmp_path / name, str(number))
        except BaseException as error:  # noqa: BLE001  # told below
            faults.append(error)

    threads = [threading.Thread(target=write, args=(f"{n % 2}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]


@pytest.mark.parametrize("target", ["precious.txt", "not-there", "sub", "itself"])
def test_a_link_under_a_final_name_is_replaced_not_followed(tmp_path: Path, target: str) -> None:
    victims, final = make_victims(tmp_path / "victims"), tmp_path / "out" / "final"
    final.parent.mkdir()
    final.symlink_to(final if target == "itself" else victims / target)
    before = snapshot(victims)
    write_text(final, "ours")
    assert harm(before, snapshot(victims)) == []
    assert not final.is_symlink()
    assert final.read_text() == "ours"


def test_a_hard_link_under_a_final_name_is_replaced_not_written_to(tmp_path: Path) -> None:
    victims, final = make_victims(tmp_path / "victims"), tmp_path / "final"
    os.link(victims / "precious.txt", final)
    before = snapshot(victims)
    write_text(final, "ours")
    assert harm(before, snapshot(victims)) == []
    assert final.read_text() == "ours"


@pytest.mark.parametrize("target", [".", "sub", "not-there", "precious.txt"])
def test_a_work_folder_that_is_a_link_is_refused(tmp_path: Path, target: str) -> None:
    victims = make_victims(tmp_path / "victims")
    (tmp_path / WORK).symlink_to(victims / target)
    before = snapshot(victims)
    with pytest.raises(StorageError, match="is a link to"):
        write_text(tmp_path / "final", "ours")
    with pytest.raises(StorageError, match="is a link to"), scratch_folder(tmp_path):
        pass
    with pytest.raises(StorageError, match="is a link to"):
        clear_work(tmp_path / WORK)
    assert harm(before, snapshot(victims)) == []


def test_what_dead_processes_left_is_removed_and_what_others_write_is_not(tmp_path: Path) -> None:
    victims, work = make_victims(tmp_path / "victims"), tmp_path / WORK
    own = new_name()
    dead = [new_name(".x").replace(f"-{os.getpid()}-", f"-{dead_process()}-") for _ in range(3)]
    elsewhere = "00000000" + dead[0][8:]
    (work / dead[0]).mkdir(parents=True)
    (work / dead[0] / "half").write_text("half")
    (work / dead[1]).symlink_to(victims)
    before = snapshot(victims)
    for name in (dead[2], own, elsewhere, "notes.txt"):
        (work / name).write_text("x")
    write_text(tmp_path / "final", "ours")
    assert sorted(path.name for path in work.iterdir()) == sorted([own, elsewhere, "notes.txt"])
    assert harm(before, snapshot(victims)) == []


@pytest.mark.parametrize(
    "name",
    ["", "x", "-1-", new_name() + "x", new_name().replace("-", "_")],
    ids=["empty", "other", "short", "longer", "other marks"],
)
def test_other_names_are_nobodys_leftovers(name: str) -> None:
    assert not is_abandoned(name)


def other_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this folder be on a disk of its own, as far as renames can tell."""
    honest = Path.replace

    def replace(path: Path, target: Path) -> Path:
        if path.resolve().is_relative_to(folder) != Path(target).parent.resolve().is_relative_to(
            folder
        ):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(path), None, str(target))
        return honest(path, target)

    monkeypatch.setattr(Path, "replace", replace)


def test_a_file_is_carried_to_another_disk_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, out = tmp_path / "disk", tmp_path / "out"
    disk.mkdir()
    out.mkdir()
    (out / "shards").symlink_to(disk)
    other_disk(disk, monkeypatch)
    (out / "scratch").write_text("whole")
    publish(out / "scratch", out / "shards" / "part")
    assert (disk / "part").read_text() == "whole"
    assert [path.name for path in disk.iterdir()] == ["part"]
    assert not (out / "scratch").exists()


def test_links_are_told_from_folders_and_those_to_nothing_refused(tmp_path: Path) -> None:
    assert not is_linked(own_folder(tmp_path / "real"))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert is_linked(tmp_path / "link")
    assert not is_linked(tmp_path / "not-there")
    (tmp_path / "dangling").symlink_to(tmp_path / "not-there")
    with pytest.raises(StorageError, match="which is not a folder"):
        is_linked(tmp_path / "dangling")


def test_a_folder_where_a_file_belongs_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "final" / "x").mkdir(parents=True)
    with (
        pytest.raises(StorageError, match=r"final: Is a directory\. Polyseme keeps something else"),
        disk_faults_explained(tmp_path),
    ):
        write_text(tmp_path / "final", "ours")


@pytest.mark.parametrize("order", ["in order", "backwards", "with gaps", "twice", "never"])
def test_a_hash_of_what_is_read_is_that_of_the_file_however_it_is_read(
    tmp_path: Path, order: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content := bytes(range(256)) * 40)
    blocks = [(place, content[place : place + 1_000]) for place in range(0, len(content), 1_000)]
    read = {
        "in order": blocks,
        "backwards": blocks[::-1],
        "with gaps": blocks[::2],
        "twice": [each for block in blocks for each in (block, block)],
        "never": [],
    }[order]
    one = ReadingHash(path, [(500, 9_500)])
    several = ReadingHash(path, [(0, 3_500), (3_500, 6_000), (8_000, len(content))])
    for place, data in read:
        several.take(place, data)
        one.take(max(place, 500), data[max(0, 500 - place) :])
    assert one.hexdigest() == hashlib.sha256(content[500:9_500]).hexdigest()
    assert several.hexdigest() == ReadingHash(path, several_ranges(several)).hexdigest()
    path.write_bytes(content[:-1] + b"x")
    assert several.hexdigest() != ReadingHash(path, several_ranges(several)).hexdigest()


def several_ranges(found: ReadingHash) -> list[tuple[int, int]]:
    return [(0, 3_500), (3_500, 6_000), (8_000, found._path.stat().st_size)]


def test_what_was_read_in_order_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc" * 1_000)
    found = ReadingHash(path, [(0, 1_500), (1_500, 3_000)])
    found.take(0, b"abc" * 700)  # over the border
    found.take(2_100, b"abc" * 300)
    path.unlink()
    assert len(found.hexdigest()) == 64
