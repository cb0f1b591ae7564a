"""The file of edits: whole entries only, torn and hostile lines, links, full disks."""

import errno
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from polyseme.errors import InputError, StorageError
from polyseme.meanings.edits import (
    NAME,
    Edit,
    GroupRef,
    LabelEdit,
    MergeEdit,
    MoveEdit,
    RenameEdit,
    SplitEdit,
    UndoEdit,
    UseId,
    append_edit,
    append_next,
    read_edits,
)

RIVER = GroupRef(id="2", name="river 河")
USES = (UseId("novel\u2028.txt:3:0", 4), UseId("a\nb:0:0", 0))
EVERY_KIND: list[Edit] = [
    RenameEdit(group=RIVER, name='shore "\\\n'),
    MergeEdit(groups=(RIVER, GroupRef(id="1", name=""))),
    SplitEdit(group=RIVER, uses=USES, new=GroupRef(id="3", name="x")),
    MoveEdit(uses=USES, to=RIVER),
    LabelEdit(uses=USES, label="邊"),
    UndoEdit(edit=5),
]


def label(text: str) -> LabelEdit:
    return LabelEdit(uses=USES, label=text)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    numbers = [append_edit(tmp_path / NAME, edit) for edit in EVERY_KIND]
    assert numbers == [1, 2, 3, 4, 5, 6]
    log = read_edits(tmp_path / NAME)
    assert (log.edits, log.torn, log.message) == (tuple(EVERY_KIND), b"", "")
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_a_line_torn_at_any_byte_is_set_aside_and_told(tmp_path: Path) -> None:
    path = tmp_path / NAME
    append_edit(path, label("first"))
    begin = path.stat().st_size
    append_edit(path, label("邊"))
    whole = path.read_bytes()
    for end in range(begin + 1, len(whole)):
        path.write_bytes(whole[:end])
        log = read_edits(path)
        assert log.edits == (label("first"),)
        assert log.torn == whole[begin:end]
        assert "Edit 2 was cut short" in log.message
    assert append_edit(path, label("third")) == 2
    assert read_edits(path).edits == (label("first"), label("third"))
    assert (tmp_path / f"{NAME}.torn-2").read_bytes() == whole[begin:-1]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"not json", "Expecting value"),
        (b"", "Expecting value"),
        (b"\xff\xfe", "utf-8"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b"[" + b"[]," * (1 << 20) + b"[]]", "lists and tables"),
        (b"9" * 5000, "digits"),
        (b"[]", "dictionary"),
        (b'{"kind": "erase"}', "erase"),
        (b'{"kind": "undo"}', "edit: Field required"),
        (b'{"kind": "undo", "edit": 0}', "greater than or equal to 1"),
        (b'{"kind": "undo", "edit": "1"}', "valid integer"),
        (b'{"kind": "undo", "edit": true}', "valid integer"),
        (b'{"kind": "undo", "edit": NaN}', "valid integer"),
        (b'{"kind": "undo", "edit": 1, "__class__": "os"}', "not permitted"),
        (b'{"kind": "label", "label": "x", "uses": []}', "at least 1 item"),
        (b'{"kind": "label", "label": "", "uses": [["a", 0]]}', "at least 1 character"),
        (b'{"kind": "label", "label": "x", "uses": [["a", -1]]}', "greater than or equal to 0"),
        (b'{"kind": "label", "label": "x", "uses": [["a", 1e400]]}', "valid integer"),
        (b'{"kind": "label", "label": "\\ud800", "uses": [["a", 0]]}', "unicode"),
        (b'{"kind": "label", "label": "x", "uses": [["\\ud800", 0]]}', "unicode"),
        (b'{"kind": "label", "label": "x", "uses": "ab"}', "valid tuple"),
    ],
)
def test_a_hostile_line_is_refused_and_nothing_is_added(
    tmp_path: Path, line: bytes, complaint: str
) -> None:
    path = tmp_path / NAME
    append_edit(path, label("first"))
    content = path.read_bytes() + line + b"\n"
    path.write_bytes(content)
    with pytest.raises(InputError, match=complaint) as caught:
        read_edits(path)
    assert "Line 2 of" in str(caught.value)
    assert len(str(caught.value)) < 600
    with pytest.raises(InputError, match="Line 2 of"):
        append_edit(path, label("second"))
    assert path.read_bytes() == content


def test_a_file_beyond_the_limit_is_neither_read_nor_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_edit(tmp_path / NAME, label("a" * 300))
    size = (tmp_path / NAME).stat().st_size
    monkeypatch.setattr("polyseme.meanings.edits.JSON_BYTES", size + 50)
    with pytest.raises(InputError, match="begin a new file"):
        append_edit(tmp_path / NAME, label("b" * 300))
    monkeypatch.setattr("polyseme.meanings.edits.JSON_BYTES", size - 1)
    with pytest.raises(InputError, match="cannot be read"):
        read_edits(tmp_path / NAME)


@pytest.mark.parametrize("is_hard", [False, True])
def test_what_a_link_leads_to_is_left_alone(tmp_path: Path, is_hard: bool) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    link = tmp_path / NAME
    link.hardlink_to(victim) if is_hard else link.symlink_to(victim)
    append_edit(link, label("a"))
    assert victim.read_bytes() == b""
    assert len(read_edits(link).edits) == 1


def test_a_disk_that_fills_up_leaves_whole_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / NAME
    append_edit(path, label("first"))
    before = path.read_bytes()

    def full(path: Path, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StorageError, match="Free some space"):
        append_edit(path, label("second"))
    assert path.read_bytes() == before


def test_an_edit_waits_until_another_thread_or_process_has_added_its_own(tmp_path: Path) -> None:
    path, code = tmp_path / NAME, (
        "import sys; from pathlib import Path\n"
        "from polyseme.meanings.edits import append_edit\n"
        "from polyseme.meanings.edits import LabelEdit, UseId\n"
        "for n in range(20):\n"
        "    edit = LabelEdit(uses=(UseId('s', n),), label=sys.argv[2])\n"
        "    append_edit(Path(sys.argv[1]), edit)\n"
    )  # fmt: skip
    others = [subprocess.Popen([sys.executable, "-c", code, path, name]) for name in ("a", "b")]
    with ThreadPoolExecutor(4) as threads:
        numbers = list(threads.map(lambda n: append_edit(path, label(str(n))), range(40)))
    assert [other.wait(60) for other in others] == [0, 0]
    assert len(read_edits(path).edits) == 80
    assert len(set(numbers)) == 40


def test_what_an_edit_follows_from_is_all_that_was_added_before(tmp_path: Path) -> None:
    def count(edits: tuple[Edit, ...]) -> Edit:
        time.sleep(0.01)
        return label(str(len(edits)))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: append_next(tmp_path / NAME, count), range(12)))
    edits = read_edits(tmp_path / NAME).edits
    assert [edit.label for edit in edits if edit.kind == "label"] == [str(n) for n in range(12)]
