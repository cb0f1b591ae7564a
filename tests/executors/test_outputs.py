"""What a run may replace and remove: what was made here; through a link, what a receipt tells."""

from dataclasses import replace
from pathlib import Path

import pytest
from executors.jobs import (
    FileShard,
    capitals_job,
    forge_receipt,
    hashes,
    make_inputs,
)
from reliability.victims import LEADING_OUT, harm, make_victims, snapshot
from storage.test_files import other_disk

from polyseme.errors import ExecutorError, StorageError
from polyseme.executors import ExecutorConfig, Receipt, ShardJob, run_job
from polyseme.storage.locks import hold_file, hold_folder

HERE = ExecutorConfig(workers=1)


def linkable_job(fingerprint: str = "settings") -> ShardJob:
    return replace(capitals_job(fingerprint), linkable=("upper",))


@pytest.fixture
def victims(tmp_path: Path) -> Path:
    return make_victims(tmp_path / "victims")


@pytest.fixture
def shards(tmp_path: Path) -> list[FileShard]:
    return make_inputs(tmp_path / "in", 3)


@pytest.mark.parametrize("name", LEADING_OUT)
@pytest.mark.parametrize("stem", ["part-00000", "part-00099"])
def test_a_receipt_cannot_have_files_elsewhere_removed(
    tmp_path: Path, victims: Path, shards: list[FileShard], name: str, stem: str
) -> None:
    out = tmp_path / "out"
    (out / "receipts").mkdir(parents=True)
    receipt = forge_receipt(stem, [name.format(v=victims, n="precious.txt")])
    (out / "receipts" / f"{stem}.json").write_text(receipt, encoding="utf-8")
    before = snapshot(victims)
    run_job(capitals_job(), shards, out, executor=HERE)
    assert harm(before, snapshot(victims)) == []
    run_job(capitals_job(), shards, tmp_path / "reference", executor=HERE)
    assert hashes(out) == hashes(tmp_path / "reference")


@pytest.mark.parametrize("name", ["manifest.json", "receipts/mine.json", "notes/mine.txt"])
def test_a_receipt_cannot_have_other_files_of_the_folder_removed(
    tmp_path: Path, shards: list[FileShard], name: str
) -> None:
    out = tmp_path / "out"
    for path in (out / name, out / "receipts" / "part-00099.json"):
        path.parent.mkdir(parents=True, exist_ok=True)
    (out / name).write_text("mine")
    receipt = forge_receipt("part-00099", [name])
    (out / "receipts" / "part-00099.json").write_text(receipt, encoding="utf-8")
    run_job(capitals_job(), shards, out, executor=HERE)
    assert (out / name).read_text() == "mine"
    assert not (out / "receipts" / "part-00099.json").exists()


@pytest.mark.parametrize("top", ["receipts", "odd", "upper", ".work"])
@pytest.mark.parametrize("target", [".", "sub", "not-there", "precious.txt"])
def test_a_link_where_a_folder_belongs_is_refused(
    tmp_path: Path, victims: Path, shards: list[FileShard], top: str, target: str
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / top).symlink_to(victims / target)
    before = snapshot(victims)
    with pytest.raises(StorageError, match=f"{top} is a link to"):
        run_job(capitals_job(), shards, tmp_path / "out", executor=HERE)
    assert harm(before, snapshot(victims)) == []


@pytest.mark.parametrize("is_hard", [False, True])
def test_a_lock_that_is_another_file_is_refused(
    tmp_path: Path, victims: Path, is_hard: bool
) -> None:
    lock = tmp_path / ".lock"
    lock.hardlink_to(victims / "precious.txt") if is_hard else lock.symlink_to(victims / "new")
    before = snapshot(victims)
    with pytest.raises(ExecutorError, match="is a link, or holds something"), hold_folder(tmp_path):
        pass
    assert harm(before, snapshot(victims)) == []


def test_files_of_others_beside_shards_are_left_alone(
    tmp_path: Path, victims: Path, shards: list[FileShard]
) -> None:
    upper = tmp_path / "out" / "upper"
    (upper / "part-99999").mkdir(parents=True)
    (upper / "part-99999" / "mine.txt").write_text("mine")
    (upper / "notes.txt").write_text("mine")
    (upper / "part-77777").symlink_to(victims)
    before = snapshot(victims)
    run_job(capitals_job(), shards, tmp_path / "out", executor=HERE)
    assert (upper / "notes.txt").read_text() == "mine"
    assert (upper / "part-99999" / "mine.txt").read_text() == "mine"
    assert not (upper / "part-77777").is_symlink()  # called as ours are; the link is all that goes
    assert harm(before, snapshot(victims)) == []


# --- a folder on another disk --------------------------------------------------------------


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An output folder whose shards lie on another disk, among files of others."""
    disk = make_victims(tmp_path / "disk") / "bulk"
    (disk / "notes.txt").write_text("mine")
    (disk / "part-88888.txt").write_text("mine, too")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "upper").symlink_to(disk)
    other_disk(disk, monkeypatch)
    return tmp_path / "out"


def of_others(out: Path) -> dict[str, str]:
    names = ("notes.txt", "part-88888.txt")
    return {name: (out / "upper" / name).read_text() for name in names}


def made(out: Path) -> dict[str, str]:
    return {
        name: found for name, found in hashes(out / "upper").items() if name not in of_others(out)
    }


def quiet(folder: Path, shards: list[FileShard]) -> dict[str, str]:
    run_job(capitals_job(), shards, folder, executor=HERE)
    return hashes(folder / "upper")


def test_shards_may_lie_on_another_disk(tmp_path: Path, out: Path, shards: list[FileShard]) -> None:
    for was_there in (False, True):
        receipts = run_job(linkable_job(), shards, out, executor=HERE)
        assert {receipt.was_there for receipt in receipts} == {was_there}
        assert made(out) == quiet(tmp_path / "quiet", shards)
    assert (out / "upper").is_symlink()
    assert list(of_others(out).values()) == ["mine", "mine, too"]
    assert not (out / "upper" / ".work").exists()


def test_shards_there_are_replaced_and_removed_if_a_receipt_tells_their_bytes(
    tmp_path: Path, out: Path, shards: list[FileShard]
) -> None:
    run_job(linkable_job(), shards, out, executor=HERE)
    shards[0].path.write_text("another text")
    run_job(linkable_job(), shards[:2], out, executor=HERE)
    assert made(out) == quiet(tmp_path / "quiet", shards[:2])
    assert list(of_others(out).values()) == ["mine", "mine, too"]


def test_a_file_there_that_no_receipt_names_is_not_replaced(
    out: Path, shards: list[FileShard]
) -> None:
    (out / "upper" / "part-00001.txt").write_text("mine")
    with pytest.raises(ExecutorError, match=r"no receipt of .* names such a file"):
        run_job(linkable_job(), shards, out, executor=HERE)
    assert (out / "upper" / "part-00001.txt").read_text() == "mine"


def test_a_file_there_is_not_removed_because_a_receipt_has_its_name(
    out: Path, shards: list[FileShard]
) -> None:
    (out / "receipts").mkdir()
    receipt = forge_receipt("part-00099", ["upper/notes.txt", "upper/part-88888.txt"])
    (out / "receipts" / "part-00099.json").write_text(receipt, encoding="utf-8")
    run_job(linkable_job(), shards, out, executor=HERE)
    assert list(of_others(out).values()) == ["mine", "mine, too"]


def test_a_run_that_died_before_its_receipt_is_finished_by_the_next(
    tmp_path: Path, out: Path, shards: list[FileShard], monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(receipt: Receipt) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("polyseme.executors.commit._sealed", die)
        with pytest.raises(KeyboardInterrupt):
            run_job(linkable_job(), shards, out, executor=HERE)
    assert (out / "upper" / "part-00000.txt").exists()
    assert not list(out.glob("receipts/*"))
    run_job(linkable_job(), shards, out, executor=HERE)
    assert made(out) == quiet(tmp_path / "quiet", shards)


def end_run_while_carried(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run takes over while a file is on its way to the other disk."""
    import shutil

    honest = shutil.copyfile

    def copy(source: Path, target: Path) -> Path:
        honest(source, target)
        shutil.rmtree(out / ".work")
        return target

    monkeypatch.setattr("polyseme.storage.files.shutil.copyfile", copy)


def test_a_worker_whose_run_is_over_publishes_nothing_on_another_disk(
    out: Path, shards: list[FileShard], monkeypatch: pytest.MonkeyPatch
) -> None:
    end_run_while_carried(out, monkeypatch)
    with pytest.raises(ExecutorError, match="another run has taken over"):
        run_job(linkable_job(), shards[:1], out, executor=HERE)
    assert made(out) == {}


def test_a_link_to_no_folder_is_told(tmp_path: Path, shards: list[FileShard]) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "upper").symlink_to(tmp_path / "unmounted")
    with pytest.raises(StorageError, match="which is not a folder"):
        run_job(linkable_job(), shards, tmp_path / "out", executor=HERE)


# --- one writer for a file -----------------------------------------------------------------


def test_a_file_may_be_held_again_when_it_was_let_go(tmp_path: Path) -> None:
    for _ in range(2):
        with hold_file(tmp_path / "new" / "labels"):
            assert list((tmp_path / "new" / ".work").iterdir())
        assert list((tmp_path / "new").iterdir()) == []


def test_a_lock_that_is_an_empty_file_of_someone_is_refused(tmp_path: Path) -> None:
    """An empty one looks like a lock of ours, but for its other name."""
    (tmp_path / "precious").touch()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/.lock").hardlink_to(tmp_path / "precious")
    with (
        pytest.raises(ExecutorError, match="is a link, or holds something"),
        hold_folder(tmp_path / "out"),
    ):
        pass
    assert (tmp_path / "out/.lock").exists()
