import hashlib
import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from executors.jobs import (
    FileShard,
    calls_made,
    capitals,
    capitals_job,
    grow_input,
    hashes,
    make_inputs,
    noting_job,
)

from polyseme.errors import ExecutorError
from polyseme.executors import Done, Receipt, Report, ShardJob, commit_shard
from polyseme.executors.commit import read_receipt

RUN = "a-run"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    (folder / ".work" / RUN).mkdir(parents=True)
    return folder


@pytest.fixture
def shard(tmp_path: Path) -> FileShard:
    return make_inputs(tmp_path / "in", 1)[0]


def test_a_shard_is_its_files_and_a_receipt_that_names_them(out: Path, shard: FileShard) -> None:
    receipt = commit_shard(capitals_job(), shard, out, RUN)
    expected = shard.path.read_text().upper().encode()
    assert (out / "upper" / "part-00000.txt").read_bytes() == expected
    assert receipt.files == {
        "upper/part-00000.txt": {
            "bytes": len(expected),
            "sha256": hashlib.sha256(expected).hexdigest(),
        }
    }
    assert sorted(hashes(out)) == ["receipts/part-00000.json", "upper/part-00000.txt"]


def test_a_receipt_read_back_says_the_same(out: Path, shard: FileShard) -> None:
    receipt = commit_shard(capitals_job(), shard, out, RUN)
    found = read_receipt(out, shard.name)
    assert found is not None
    assert (found.key, found.input, found.files) == (receipt.key, receipt.input, receipt.files)
    assert found.counts == {"letters": 140, "by_length": {"10": 1, "9": 2}}


def test_a_finished_shard_is_not_done_again(out: Path, shard: FileShard, tmp_path: Path) -> None:
    job = noting_job(tmp_path / "calls")
    for _ in range(3):
        commit_shard(job, shard, out, RUN)
    assert calls_made(tmp_path / "calls") == {"part-00000": 1}


def change_one_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("spoil", [change_one_byte, cut_short, Path.unlink])
@pytest.mark.parametrize("name", ["upper/part-00000.txt", "receipts/part-00000.json"])
def test_a_spoilt_file_is_noticed_and_made_again(
    out: Path, shard: FileShard, tmp_path: Path, name: str, spoil: Any
) -> None:
    job = noting_job(tmp_path / "calls")
    commit_shard(job, shard, out, RUN)
    before = hashes(out)
    spoil(out / name)
    commit_shard(job, shard, out, RUN)
    assert hashes(out) == before
    assert calls_made(tmp_path / "calls") == {"part-00000": 2}


def test_no_bit_of_a_receipt_can_flip_unnoticed(out: Path, shard: FileShard) -> None:
    commit_shard(capitals_job(), shard, out, RUN)
    path = out / "receipts" / "part-00000.json"
    content = path.read_bytes()
    for i in range(len(content)):
        path.write_bytes(content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :])
        assert read_receipt(out, shard.name) is None, f"byte {i}"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"seal": ""}', "null", "3", '{"name": 1}'])
def test_a_receipt_of_another_shape_counts_as_missing(out: Path, text: str) -> None:
    (out / "receipts").mkdir()
    (out / "receipts" / "part-00000.json").write_text(text)
    assert read_receipt(out, "part-00000") is None


def test_a_receipt_under_the_name_of_another_shard_counts_as_missing(
    out: Path, shard: FileShard
) -> None:
    commit_shard(capitals_job(), shard, out, RUN)
    shutil.copy(out / "receipts" / "part-00000.json", out / "receipts" / "part-00001.json")
    assert read_receipt(out, "part-00001") is None


def test_a_changed_byte_of_input_is_noticed(out: Path, shard: FileShard, tmp_path: Path) -> None:
    job = noting_job(tmp_path / "calls")
    before = commit_shard(job, shard, out, RUN)
    change_one_byte(shard.path)
    after = commit_shard(job, shard, out, RUN)
    assert after.input != before.input
    assert (out / "upper/part-00000.txt").read_text() == shard.path.read_text().upper()
    assert calls_made(tmp_path / "calls") == {"part-00000": 2}


def test_a_changed_setting_is_noticed(out: Path, shard: FileShard, tmp_path: Path) -> None:
    commit_shard(noting_job(tmp_path / "calls", "one"), shard, out, RUN)
    commit_shard(noting_job(tmp_path / "calls", "two"), shard, out, RUN)
    assert calls_made(tmp_path / "calls") == {"part-00000": 2}


def test_an_input_that_changes_under_our_hands_is_refused(out: Path, shard: FileShard) -> None:
    with pytest.raises(ExecutorError, match="part-00000 changed while it was being read"):
        commit_shard(ShardJob(grow_input, ""), shard, out, RUN)
    assert hashes(out) == {}


def test_a_worker_whose_run_is_over_cannot_begin(out: Path, shard: FileShard) -> None:
    shutil.rmtree(out / ".work")
    with pytest.raises(ExecutorError, match="another run has taken over"):
        commit_shard(capitals_job(), shard, out, RUN)
    assert hashes(out) == {}


def end_run_then_work(out: Path, shard: FileShard, folder: Path, report: Report) -> Done:
    counts = capitals(shard, folder, report)
    shutil.rmtree(out / ".work")
    return counts


def end_run_and_make_folders_again(
    out: Path, shard: FileShard, folder: Path, report: Report
) -> Done:
    shutil.rmtree(out / ".work")
    folder.mkdir(parents=True)
    return capitals(shard, folder, report)


@pytest.mark.parametrize("work", [end_run_then_work, end_run_and_make_folders_again])
def test_a_worker_whose_run_has_ended_meanwhile_cannot_publish(
    out: Path, shard: FileShard, work: Any
) -> None:
    with pytest.raises(ExecutorError, match="another run has taken over"):
        commit_shard(ShardJob(partial(work, out), ""), shard, out, RUN)
    assert hashes(out) == {}


def test_a_worker_whose_run_ends_between_two_files_publishes_no_more(
    out: Path, shard: FileShard
) -> None:
    shard.path.write_text("odd")

    def publish_then_end_run(scratch: Path, final: Path) -> None:
        scratch.replace(final.parent.parent / final.name)
        shutil.rmtree(out / ".work")

    with pytest.raises(ExecutorError, match="another run has taken over"):
        commit_shard(ShardJob(capitals, "", publish=publish_then_end_run), shard, out, RUN)
    assert read_receipt(out, shard.name) is None
    assert len(hashes(out)) == 1


def test_a_missing_file_of_the_work_itself_is_not_blamed_on_another_run(
    out: Path, shard: FileShard
) -> None:
    def open_what_is_not_there(_: FileShard, folder: Path, __: Report) -> Done:
        return json.loads((folder / "nothing").read_text())  # type: ignore[no-any-return]

    with pytest.raises(FileNotFoundError, match="nothing"):
        commit_shard(ShardJob(open_what_is_not_there, ""), shard, out, RUN)
    assert list((out / ".work" / RUN).iterdir()) == []


def test_work_that_writes_nothing_still_gets_its_receipt(out: Path, shard: FileShard) -> None:
    receipt = commit_shard(ShardJob(lambda *_: ({"letters": 0}, "read"), ""), shard, out, RUN)
    assert receipt == Receipt(shard.name, receipt.key, "read", {}, {"letters": 0}, receipt.stamp)
