"""What a run may replace and remove: what was made here, and nothing through a link."""

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

from polyseme.errors import ExecutorError, StorageError
from polyseme.executors import ExecutorConfig, run_job
from polyseme.storage.files import hold_file, hold_folder

HERE = ExecutorConfig(workers=1)


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
