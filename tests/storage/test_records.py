"""Records: any of them read by itself, none of them believed if a bit of it changed."""

from pathlib import Path

import numpy as np
import pytest

from polyseme.limits import LimitError
from polyseme.storage.records import PLACE, Records, RecordWriter, map_array

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


def test_no_records_are_none(tmp_path: Path) -> None:
    with RecordWriter(tmp_path / "none"):
        pass
    assert len(Records(tmp_path / "none")) == 0


@pytest.mark.parametrize("number", [-1, 4])
def test_a_record_that_is_not_there_is_refused(path: Path, number: int) -> None:
    with pytest.raises(LimitError, match="4 records"):
        Records(path).read([number])


def test_a_changed_bit_anywhere_is_noticed_or_harmless(path: Path) -> None:
    noticed = 0
    for suffix in (".bin", ".places"):
        file = path.with_name(path.name + suffix)
        whole = file.read_bytes()
        for at in range(0, len(whole), 7):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
            try:
                found = Records(path).read(range(4))
            except LimitError:
                noticed += 1
            else:  # the CRC that stands with the end is of no record
                assert found == RECORDS
        file.write_bytes(whole)
    assert noticed > 100


def test_places_that_lead_out_of_the_file_or_back_are_refused(path: Path) -> None:
    places = np.fromfile(path.with_name("r.places"), PLACE)
    for begin in (10**6, -5, 2**62):
        wrong = places.copy()
        wrong["begin"][2] = begin
        path.with_name("r.places").write_bytes(wrong.tobytes())
        with pytest.raises(LimitError):
            Records(path).read([1, 2])


def test_a_file_that_is_not_as_long_as_it_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(10))
    for kind, count in (("<i4", None), ("<i2", 4)):
        with pytest.raises(LimitError):
            map_array(tmp_path / "a", kind, count)
    assert map_array(tmp_path / "a", "<i2", 5).tolist() == [0] * 5
