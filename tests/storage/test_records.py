"""Records: any of them read by itself, and none from outside of the file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyseme.limits import LimitError
from polyseme.storage.records import Records, RecordWriter, map_array, map_arrays, save_array

RECORDS = [b"one", b"", b"three " * 100, bytes(range(256))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with RecordWriter(tmp_path / "r") as writer:
        writer.extend(RECORDS)
    return tmp_path / "r"


def test_any_record_is_read_by_its_number(path: Path) -> None:
    records = Records(path)
    assert len(records) == 4
    assert records.read([3, 0, 0, 1]) == [RECORDS[n] for n in (3, 0, 0, 1)]
    assert records.read([]) == []


def test_files_appended_are_as_if_written_at_once(path: Path) -> None:
    with RecordWriter(path.with_name("joined")) as writer:
        writer.extend([b"first"])
        writer.append_file(path)
        writer.append_file(path)
        assert writer.count == 9
    assert Records(path.with_name("joined")).read(range(9)) == [b"first", *RECORDS, *RECORDS]


@pytest.mark.parametrize("number", [-1, 4])
def test_a_record_that_is_not_there_is_refused(path: Path, number: int) -> None:
    with pytest.raises(LimitError, match="4 records"):
        Records(path).read([number])


def test_a_changed_byte_anywhere_is_an_error_or_another_record(path: Path) -> None:
    file = path.with_name("r.npy")
    whole = file.read_bytes()
    refused = 0
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        try:
            found = Records(path).read(range(4))
        except LimitError:
            refused += 1
        else:
            assert [len(record) for record in found]
    assert refused > 100
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(LimitError):
            Records(path).read(range(4))


@pytest.mark.parametrize("ends", [[3, 2, 603, 859], [3, 3, 10**6, 859], [3, 3, 2**63, 859]])
def test_ends_that_lead_out_of_the_file_or_back_are_refused(tmp_path: Path, ends: Any) -> None:
    with (tmp_path / "r.npy").open("wb") as stream:
        save_array(stream, np.array(ends, "<u8"))
        save_array(stream, np.frombuffer(b"".join(RECORDS), np.uint8))
    with pytest.raises(LimitError, match="outside of it"):
        Records(tmp_path / "r").read(range(4))


def test_numpy_reads_the_arrays_in_turn(path: Path) -> None:
    with path.with_name("r.npy").open("rb") as stream:
        ends, content = np.load(stream), np.load(stream)
    assert ends.tolist() == np.cumsum([len(record) for record in RECORDS]).tolist()
    assert content.tobytes() == b"".join(RECORDS)


@pytest.mark.parametrize(
    "values", [np.zeros(3), np.zeros((2, 2), "u1"), np.array([("a", 1)], "U1,i4"), np.array(3)]
)
def test_other_arrays_are_refused(tmp_path: Path, values: Any) -> None:
    with (tmp_path / "a.npy").open("wb") as stream:
        np.save(stream, values)
    with pytest.raises(LimitError):
        map_arrays(tmp_path / "a.npy")


def test_a_file_that_is_not_as_long_as_it_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(10))
    for kind, count in (("<i4", None), ("<i2", 4)):
        with pytest.raises(LimitError):
            map_array(tmp_path / "a", kind, count)
    assert map_array(tmp_path / "a", "<i2", 5).tolist() == [0] * 5
