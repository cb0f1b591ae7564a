"""Judge: every edit is in the log, is seen at once, can be undone, and can be done again."""

import json
from pathlib import Path

import pytest
from command_line import polyseme
from meanings.test_named_groups import MODEL

from polyseme.explorer.view import View, pack
from polyseme.meanings.groups.named_groups import Senses

from .making import HOST, Explored, explore, make_bank_corpus

VIEW = View(q="bank", finer=2)
SENT = "q=bank&finer=2"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Explored:
    folder = Path(tmp_path_factory.mktemp("judging"))
    found = explore(make_bank_corpus(folder), folder / "notes")
    found.wait_for_groups(finer=2)
    return found


@pytest.fixture
def explored(corpus: Explored, tmp_path: Path) -> Explored:
    """With notes of its own."""
    corpus.workspace.notes = tmp_path / "notes"
    return corpus


def groups(explored: Explored) -> Senses:
    reading = explored.desk.reading(VIEW)
    assert reading.edited is not None
    found: Senses = reading.edited
    return found


def judge(explored: Explored, **form: str | list[str]) -> str:
    return explored.post("/judge", view=SENT, **form)


def test_a_group_is_renamed_and_the_name_comes_back_by_undo(explored: Explored) -> None:
    before = groups(explored).groups[0].name
    judge(explored, action="rename", group="1", name="<money>")
    assert groups(explored).groups[0].name == "<money>"
    assert "&lt;money&gt;" in explored.get("/word?" + SENT)
    judge(explored, action="undo")
    assert groups(explored).groups[0].name == before


def test_two_groups_are_merged(explored: Explored) -> None:
    before = {group.id: group.size for group in groups(explored).groups}
    judge(explored, action="merge", group="2", into="1")
    after = {group.id: group.size for group in groups(explored).groups}
    assert after["1"] == before["1"] + before["2"]
    assert "2" not in after


def test_ticked_lines_are_split_off_moved_and_labelled(explored: Explored) -> None:
    senses = groups(explored)
    members = [n for n, label in enumerate(senses.labels) if label == 1][:3]
    ticked = [str(number) for number in members]
    judge(explored, action="split", use=ticked, name="mine")
    new = next(group for group in groups(explored).groups if group.name == "mine")
    assert new.size == 3
    judge(explored, action="move", use=ticked[:1], to="2")
    moved = groups(explored)
    assert moved.groups[moved.labels[members[0]] - 1].id == "2"
    judge(explored, action="label", use=ticked, label="river")
    assert groups(explored).labels_by_hand == dict.fromkeys(members, "river")


def test_what_is_chosen_on_the_map_is_meant_if_no_line_is_ticked(explored: Explored) -> None:
    explored.post("/judge", view=f"{SENT}&uses={pack([1, 2])}", action="label", label="x")
    assert groups(explored).labels_by_hand == {1: "x", 2: "x"}


def test_a_large_group_is_split_in_two(explored: Explored) -> None:
    found = groups(explored).groups
    for other in found[1:-1]:
        judge(explored, action="merge", group=other.id, into=found[0].id)
    whole, last = groups(explored).groups
    assert (whole.id, whole.size) == (found[0].id, 84 - found[-1].size)
    assert whole.size >= 40
    judge(explored, action="halve", group=whole.id)
    halves = [group for group in groups(explored).groups if group.id != last.id]
    assert len(halves) == 2
    assert sum(half.size for half in halves) == whole.size
    assert max(int(half.id) for half in halves) > max(int(group.id) for group in found)


def test_labels_teach_the_others_and_say_what_to_look_at_next(explored: Explored) -> None:
    judge(explored, action="label", use=["0", "1", "2", "10"], label="river")
    judge(explored, action="label", use=["50", "51", "60", "70"], label="money")
    page = explored.get(f"/word?{SENT}&show=labels")
    assert "8 lines labelled by hand" in page
    assert page.count('class="next"') == 8
    reading = explored.desk.reading(View(q="bank", finer=2, show="labels"))
    assert reading.learned is not None
    is_right = [(label == "river") == (n < 42) for n, label in enumerate(reading.learned.labels)]
    assert sum(is_right) > 70


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"action": "rename", "group": "99", "name": "x"}, "no group"),
        ({"action": "rename", "group": "1", "name": ""}, "one to 200 characters"),
        ({"action": "rename", "group": "1", "name": "x" * 201}, "one to 200 characters"),
        ({"action": "merge", "group": "1", "into": "1"}, "with itself"),
        ({"action": "label", "label": "x"}, "No line is ticked"),
        ({"action": "label", "label": "x", "use": "99999"}, "There is no use"),
        ({"action": "label", "label": "x", "use": "a"}, "line does not exist"),
        ({"action": "delete"}, "not an edit of groups"),
        ({"action": "split", "name": "x", "use": ["0", "83"]}, "of several groups"),
    ],
)
def test_what_cannot_be_done_is_explained_and_not_written(
    explored: Explored, form: dict[str, str], told: str
) -> None:
    answer = explored.client.post("/judge", data={"view": SENT, **form}, headers={"origin": HOST})
    assert answer.status_code == 400
    assert told in answer.text
    assert not explored.workspace.edits(VIEW).edits


def test_the_log_is_done_again_on_the_command_line(explored: Explored) -> None:
    judge(explored, action="rename", group="1", name="first of all")
    judge(explored, action="move", use=["0"], to="2")
    folder = explored.workspace.folder(VIEW)
    corpus = explored.workspace.corpus.folder
    words = ("senses", "bank", "--in", corpus, "--model", MODEL, "--finer", "2", "--json")
    told = json.loads(polyseme(*words, "--edits", folder / "edits.jsonl").stdout)
    seen = groups(explored)
    assert {(g["name"], g["uses"]) for g in told["groups"]} == {
        (g.name, g.size) for g in seen.groups
    }
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    assert about["forms"] == ["bank"]
    assert about["finer"] == 2


def test_after_an_edit_the_page_is_one_of_ours(explored: Explored) -> None:
    sent = f"{SENT}&lang=zh&where=year<1900"
    form = {"action": "rename", "group": "1", "name": "x"}
    location = explored.post("/judge", view=sent, **form)
    assert location.startswith("/word?q=bank&finer=2")
    elsewhere = f"{SENT}&next=//evil.example"
    assert explored.post("/judge", view=elsewhere, action="undo").startswith("/word?q=bank")
