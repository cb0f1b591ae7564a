"""Replay of edits: a pure function, undone by undos, and no entry is dropped in silence.

The file of edits: whole entries only, torn and hostile lines, links, full disks.
"""

import copy
import errno
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.errors import InputError, StorageError
from polyseme.meanings.edits import (
    NAME,
    Edit,
    GroupRef,
    LabelEdit,
    Members,
    MergeEdit,
    MoveEdit,
    RenameEdit,
    SplitEdit,
    UndoEdit,
    UseGroup,
    UseId,
    append_edit,
    append_next,
    read_edits,
    replay,
    touched,
    undo_last,
)

Groups = dict[str, UseGroup]


def uses(*numbers: int) -> tuple[UseId, ...]:
    return tuple(UseId(f"novel.txt:{number}:0", number) for number in numbers)


def start() -> Groups:
    return {
        "1": UseGroup("money", frozenset(uses(0, 1, 2, 3))),
        "2": UseGroup("river", frozenset(uses(4, 5))),
        "3": UseGroup("row", frozenset(uses(6))),
    }


def ref(groups: Mapping[str, UseGroup], id_: str) -> GroupRef:
    return GroupRef(id=id_, name=groups[id_].name)


def partition(groups: Mapping[str, UseGroup]) -> set[frozenset[UseId]]:
    return {group.uses for group in groups.values()}


MONEY, RIVER, ROW = (ref(start(), id_) for id_ in "123")


@st.composite
def histories(draw: st.DrawFn) -> tuple[Groups, list[Edit]]:
    """Groups, and edits that fit them one after the other."""
    number = draw(st.integers(2, 5))
    places = draw(st.lists(st.integers(0, number - 1), min_size=2, max_size=12))
    groups = {
        str(id_): UseGroup(
            f"g{id_}", frozenset(uses(*(u for u, p in enumerate(places) if p == id_)))
        )
        for id_ in range(number)
    }
    groups = {id_: group for id_, group in groups.items() if group.uses}
    edits: list[Edit] = []
    for step in range(draw(st.integers(0, 8))):
        now = replay(groups, edits).groups
        edits.append(draw(fitting(now, step)))
    return groups, edits


@st.composite
def fitting(draw: st.DrawFn, now: Groups, step: int) -> Edit:
    """An edit that can be applied to these groups."""
    everything = sorted(use for group in now.values() for use in group.uses)
    ids = st.sampled_from(sorted(now))
    some = st.lists(st.sampled_from(everything), min_size=1, unique=True).map(tuple)
    kinds = ["rename", "move", "label", *(["merge"] if len(now) > 1 else [])]
    large = [id_ for id_ in sorted(now) if len(now[id_].uses) > 1]
    kind = draw(st.sampled_from([*kinds, *(["split"] if large else [])]))
    if kind == "rename":
        return RenameEdit(group=ref(now, draw(ids)), name=draw(st.text("abc", min_size=1)))
    if kind == "move":
        return MoveEdit(uses=draw(some), to=ref(now, draw(ids)))
    if kind == "label":
        return LabelEdit(uses=draw(some), label=draw(st.text("xyz", min_size=1)))
    if kind == "merge":
        chosen = draw(st.lists(ids, min_size=2, unique=True))
        return MergeEdit(groups=tuple(ref(now, id_) for id_ in chosen))
    id_ = draw(st.sampled_from(large))
    own = sorted(now[id_].uses)
    part = draw(st.lists(st.sampled_from(own), min_size=1, max_size=len(own) - 1, unique=True))
    new = GroupRef(id=f"new {step}", name="new")
    return SplitEdit(group=ref(now, id_), uses=tuple(part), new=new)


@given(histories())
@settings(max_examples=60, deadline=None)
def test_replay_is_a_pure_function_and_loses_no_use(history: tuple[Groups, list[Edit]]) -> None:
    groups, edits = history
    before = copy.deepcopy(groups)
    found = replay(groups, edits)
    assert found == replay(groups, edits)
    assert groups == before
    assert found.problems == ()
    kept = [use for group in found.groups.values() for use in group.uses]
    assert sorted(kept) == sorted(use for group in groups.values() for use in group.uses)


@given(histories())
@settings(max_examples=60, deadline=None)
def test_as_many_undos_as_edits_give_the_groups_from_the_start(
    history: tuple[Groups, list[Edit]],
) -> None:
    groups, edits = history
    done = list(edits)
    for number in range(len(edits), 0, -1):
        undo = undo_last(done)
        assert undo == UndoEdit(edit=number)
        done.append(undo)
        assert replay(groups, done) == replay(groups, edits[: number - 1])
    assert undo_last(done) is None
    found = replay(groups, done)
    assert (found.groups, found.labels, found.problems) == (groups, {}, ())


@given(histories())
@settings(max_examples=60, deadline=None)
def test_a_merge_and_a_split_by_the_same_uses_restore_the_partition(
    history: tuple[Groups, list[Edit]],
) -> None:
    groups, edits = history
    before = replay(groups, edits).groups
    if len(before) < 2:
        return
    first, second = sorted(before)[:2]
    merge = MergeEdit(groups=(ref(before, first), ref(before, second)))
    new = GroupRef(id=second, name=before[second].name)
    split = SplitEdit(group=merge.groups[0], uses=tuple(before[second].uses), new=new)
    assert partition(replay(groups, [*edits, merge]).groups) != partition(before)
    assert replay(groups, [*edits, merge, split]).groups == before


def test_each_kind_does_what_its_name_says() -> None:
    shore = GroupRef(id="2", name="shore")
    edits: list[Edit] = [
        RenameEdit(group=RIVER, name="shore"),
        MergeEdit(groups=(shore, ROW)),
        SplitEdit(group=MONEY, uses=uses(0, 1), new=GroupRef(id="4", name="building")),
        MoveEdit(uses=uses(2, 6), to=GroupRef(id="4", name="building")),
        LabelEdit(uses=uses(5), label="edge of water"),
        LabelEdit(uses=uses(4, 5), label="side"),
    ]
    found = replay(start(), edits)
    assert found.groups == {
        "1": UseGroup("money", frozenset(uses(3))),
        "2": UseGroup("shore", frozenset(uses(4, 5))),
        "4": UseGroup("building", frozenset(uses(0, 1, 2, 6))),
    }
    assert found.labels == dict.fromkeys(uses(4, 5), "side")


def test_an_undo_of_an_undo_brings_the_edit_back() -> None:
    edits: list[Edit] = [RenameEdit(group=RIVER, name="shore"), UndoEdit(edit=1), UndoEdit(edit=2)]
    assert replay(start(), edits[:2]).groups == start()
    assert replay(start(), edits).groups["2"].name == "shore"
    assert undo_last(edits) == UndoEdit(edit=1)


def test_an_undo_in_the_middle_leaves_later_edits_that_still_fit() -> None:
    edits: list[Edit] = [
        MoveEdit(uses=uses(0), to=RIVER),
        RenameEdit(group=ROW, name="rank"),
        UndoEdit(edit=1),
    ]
    found = replay(start(), edits)
    assert found.groups["1"] == start()["1"]
    assert found.groups["3"].name == "rank"


def test_uses_that_are_no_longer_there_are_reported_and_the_others_moved() -> None:
    found = replay(start(), [MoveEdit(uses=uses(0, 77, 78), to=RIVER)])
    [problem] = found.problems
    assert (problem.edit, problem.is_applied, problem.uses) == (1, True, uses(77, 78))
    assert "2 of 3 uses are no longer where they were" in problem.message
    assert found.groups["2"].uses == frozenset(uses(0, 4, 5))


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (SplitEdit(group=RIVER, uses=uses(0, 77), new=GroupRef(id="9", name="x")), "2 of 2 uses"),
        (LabelEdit(uses=uses(77), label="x"), "1 of 1 uses"),
        (RenameEdit(group=GroupRef(id="8", name="gone"), name="x"), "no group '8' ('gone') now"),
        (MergeEdit(groups=(MONEY, GroupRef(id="2", name="sea"))), "is 'river' now, and was 'sea'"),
        (MoveEdit(uses=uses(0), to=GroupRef(id="8", name="gone")), "no group '8'"),
        (SplitEdit(group=RIVER, uses=uses(4), new=GroupRef(id="3", name="x")), "group '3' already"),
        (
            SplitEdit(group=ROW, uses=uses(6), new=GroupRef(id="9", name="x")),
            "nothing would be left",
        ),
        (UndoEdit(edit=1), "no entry 1 before it"),
        (UndoEdit(edit=5), "no entry 5 before it"),
    ],
)
def test_an_edit_that_does_not_fit_is_reported_and_changes_nothing(
    edit: Edit, complaint: str
) -> None:
    found = replay(start(), [edit])
    [problem] = found.problems
    assert complaint in problem.message
    assert (problem.edit, problem.is_applied) == (1, False)
    assert (found.groups, found.labels) == (start(), {})


def mark(number: int) -> str:
    return f"{number:012x}"


def marks(most: int = 200) -> dict[UseId, str]:
    return {use: mark(use.word_index) for use in uses(*range(most))}


def grouped(**groups: range) -> Groups:
    """Groups by name, numbered from the largest as a grouping is."""
    by_size = sorted(groups.items(), key=lambda item: -len(item[1]))
    return {
        str(number): UseGroup(name, frozenset(uses(*members)))
        for number, (name, members) in enumerate(by_size, start=1)
    }


def recognized(groups: Groups, name: str) -> GroupRef:
    """A group as an edit of today names it."""
    [(id_, group)] = [(id_, group) for id_, group in groups.items() if group.name == name]
    others = {use for other in groups.values() for use in other.uses} - group.uses
    members = Members(
        inside=tuple(sorted(mark(use.word_index) for use in group.uses)[:64]),
        outside=tuple(sorted(mark(use.word_index) for use in others)[:64]),
        num_inside=len(group.uses),
        num_outside=len(others),
    )
    return GroupRef(id=id_, name=name, members=members)


def named(groups: Groups) -> dict[str, set[int]]:
    return {group.name: {use.word_index for use in group.uses} for group in groups.values()}


THEN = grouped(money=range(30), river=range(30, 50), row=range(50, 60))
MONEY_THEN, RIVER_THEN, ROW_THEN = (recognized(THEN, name) for name in ("money", "river", "row"))
SHORE = RenameEdit(group=RIVER_THEN, name="shore")


def test_a_group_that_has_grown_and_has_another_number_and_name_is_recognized() -> None:
    # Forty new uses of the river: its group is the largest now, and its words are others.
    now = {
        "1": UseGroup("water", frozenset(uses(*range(28, 50), *range(100, 140)))),
        "2": UseGroup("cash", frozenset(uses(*range(28)))),
        "3": UseGroup("line", frozenset(uses(*range(50, 60)))),
    }
    new = GroupRef(id="4", name="landing")
    edits: list[Edit] = [
        SHORE,
        SplitEdit(group=RIVER_THEN, uses=uses(30, 31), new=new),
        MoveEdit(uses=uses(50), to=RIVER_THEN),
        MergeEdit(groups=(ROW_THEN, MONEY_THEN)),
    ]
    found = replay(now, edits, marks())
    assert found.problems == ()
    assert named(found.groups) == {
        "shore": {28, 29, *range(32, 50), *range(100, 140), 50},
        "landing": {30, 31},
        "line": {*range(28), *range(51, 60)},
    }


def test_of_a_group_that_came_apart_the_largest_part_is_meant() -> None:
    finer = grouped(a=range(30), b=range(30, 38), c=range(38, 50), d=range(50, 60))
    found = replay(finer, [SHORE], marks())
    assert found.problems == ()
    assert named(found.groups) == {
        "a": {*range(30)},
        "b": {*range(30, 38)},
        "shore": {*range(38, 50)},
        "d": {*range(50, 60)},
    }


@pytest.mark.parametrize(
    ("now", "complaint"),
    [
        # The name of a part is no name of the whole.
        (grouped(all=range(60)), "'river' had are the smaller part of group 'all' now"),
        (grouped(one=range(50), row=range(50, 60)), "smaller part of group 'one'"),
        (
            grouped(
                a=range(30, 35), b=range(35, 40), c=range(40, 45), d=range(45, 50), e=range(30)
            ),
            "scattered over 4 groups",
        ),
        (grouped(money=range(30), few=range(48, 50)), "too few are here"),
        (grouped(money=range(30), other=range(100, 120)), "too few are here"),
    ],
)
def test_a_group_that_is_not_recognized_is_told_and_all_stays_as_it_is(
    now: Groups, complaint: str
) -> None:
    found = replay(now, [SHORE], marks())
    [problem] = found.problems
    assert complaint in problem.message
    assert found.groups == now


def test_groups_that_a_coarser_grouping_has_merged_need_no_merging() -> None:
    edits: list[Edit] = [
        MergeEdit(groups=(RIVER_THEN, ROW_THEN)),
        RenameEdit(group=recognized(grouped(m=range(30), w=range(30, 60)), "w"), name="not money"),
    ]
    coarser = grouped(water=range(30, 60), money=range(30))
    found = replay(coarser, edits, marks())
    assert found.problems == ()
    assert named(found.groups) == {"not money": {*range(30, 60)}, "money": {*range(30)}}
    # As in the grouping that the edits were made on.
    assert set(named(replay(THEN, edits, marks()).groups)) == {"not money", "money"}


def test_a_new_group_whose_number_a_finer_grouping_has_gets_another() -> None:
    split = SplitEdit(group=RIVER_THEN, uses=uses(30, 31), new=GroupRef(id="4", name="landing"))
    finer = grouped(a=range(20), b=range(20, 30), river=range(30, 50), row=range(50, 60))
    assert "4" in finer
    landing = recognized(grouped(landing=range(30, 32), others=range(32, 60)), "landing")
    later = RenameEdit(group=landing, name="quay")
    found = replay(finer, [split, later], marks())
    assert found.problems == ()
    assert found.groups["5"] == UseGroup("quay", frozenset(uses(30, 31)))


def test_edits_of_one_group_touch_each_other_whatever_its_number() -> None:
    finer = recognized(grouped(a=range(30), c=range(38, 50), b=range(30, 38)), "c")
    other = RenameEdit(group=finer, name="x")
    assert not touched(SHORE, ()).isdisjoint(touched(other, ()))
    money = RenameEdit(group=MONEY_THEN.model_copy(update={"id": RIVER_THEN.id}), name="x")
    assert touched(SHORE, ()).isdisjoint(touched(money, ()))


ODD_RIVER = GroupRef(id="2", name="river 河")
USES = (UseId("novel\u2028.txt:3:0", 4), UseId("a\nb:0:0", 0))
EVERY_KIND: list[Edit] = [
    RenameEdit(group=ODD_RIVER, name='shore "\\\n'),
    MergeEdit(groups=(ODD_RIVER, GroupRef(id="1", name=""))),
    SplitEdit(group=ODD_RIVER, uses=USES, new=GroupRef(id="3", name="x")),
    MoveEdit(uses=USES, to=ODD_RIVER),
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
