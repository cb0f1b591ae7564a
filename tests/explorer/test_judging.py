"""Judge: every edit is in the log, is seen at once, can be undone, and can be done again."""

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command_line import polyseme
from meanings.test_named_groups import MODEL

from polyseme.explorer.view import View
from polyseme.meanings.groups.senses import Senses

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
    word_page = explored.app.word_page(VIEW)
    assert word_page.edited is not None
    found: Senses = word_page.edited
    return found


def state(explored: Explored) -> str:
    """What a page that is loaded now sends with its forms."""
    [number] = set(re.findall(r'name="state" value="(\d+)"', explored.get("/word?" + SENT)))
    return str(number)


def judge(explored: Explored, **form: str | list[str]) -> str:
    if "state" not in form:
        form["state"] = state(explored)
    return explored.post("/judge", **{"view": SENT, **form})


def refused(explored: Explored, **form: str | list[str]) -> str:
    """The page that tells why."""
    data = {"view": SENT, "state": state(explored), **form}
    answer = explored.client.post("/judge", data=data, headers={"origin": HOST})
    assert answer.status_code == 400
    return answer.text


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
    old, new = sorted(halves, key=lambda half: int(half.id))
    assert int(new.id) > max(int(group.id) for group in found)
    assert new.size < old.size  # the larger part keeps the name


def test_six_lines_sorted_by_the_reader_sort_the_others(explored: Explored) -> None:
    """*bank* in 84 uses, of which the first half are of rivers."""
    own = f"{SENT}&show=labels"
    begin = explored.get(f"/word?{own}")
    first = re.findall(r'<section class="sorting".*?</section>', begin, re.DOTALL)[0]
    lines = [int(line) for line in re.findall(r'data-use="(\d+)"', first)]
    assert len(lines) == 6
    assert {line < 42 for line in lines} == {True, False}  # both senses are among them
    assert 'class="give"' not in begin  # there is no sense yet
    for name, is_river in (("river", True), ("money", False)):
        ticked = [str(line) for line in lines if (line < 42) == is_river]
        to = judge(explored, view=own, use=ticked, new_label=name, action="label")
        assert "show=labels" in to
        if is_river:  # one sense, from which nothing can follow
            begun = explored.get(f"/word?{own}")
            assert "there is one sense, “river”" in begun
            assert 'class="give"' not in begun
    page = explored.get(f"/word?{own}")
    assert "6 lines sorted by you" in page
    assert page.count('class="give"') == 8
    word_page = explored.app.word_page(View(q="bank", finer=2, show="labels"))
    assert word_page.learned is not None
    is_right = [(label == "river") == (n < 42) for n, label in enumerate(word_page.learned.labels)]
    assert sum(is_right) > 76
    assert [block.name for block in word_page.blocks] == [
        "river",
        "money",
    ]  # as they were first given
    assert sum(len(block.uses) for block in word_page.blocks) == 84


def test_a_sense_is_renamed_and_by_the_name_of_another_becomes_one_with_it(
    explored: Explored,
) -> None:
    own = f"{SENT}&show=labels"
    for lines, name in ((["0", "1"], "river"), (["50"], "money"), (["60"], "loan")):
        judge(explored, view=own, use=lines, new_label=name, action="label")
    word_page = f"{own}&group=river"
    to = judge(explored, view=word_page, action="rename_label", group="river", name="shore")
    assert "group=" not in to  # no sense is called so any more
    judge(explored, view=own, action="rename_label", group="loan", name="money")
    assert groups(explored).labels_by_hand == {0: "shore", 1: "shore", 50: "money", 60: "money"}
    assert "no group" in refused(explored, action="rename_label", group="loan", name="x")
    judge(explored, view=own, action="undo")
    assert groups(explored).labels_by_hand[60] == "loan"


def test_senses_of_the_readers_own_are_compared_and_exported_like_groups(
    explored: Explored,
) -> None:
    own = f"{SENT}&show=labels"
    judge(explored, view=own, use=["0", "1", "2"], new_label="river", action="label")
    judge(explored, view=own, use=["50", "51", "60"], new_label="money", action="label")
    table = explored.get(f"/export/uses.csv?{own}")
    header, *rows = table.lstrip("\ufeff").splitlines()
    assert header.startswith('"label","predicted","confidence","look_next"')
    assert len(rows) == 84
    assert sum('"river",' in row for row in rows) > 30
    assert ">river<" in explored.get(f"/export/report.html?{own}")
    assert ">money</text>" in re.sub(r"[\d,]+  ", "", explored.get(f"/export/map.svg?{own}"))
    compared = explored.get(f"/compare?{own}&before=year<1900&after=year>1900")
    names = re.findall(r'<td class="name"><a [^>]*>(.*?)</a>', compared)
    assert set(names) == {"river", "money"}


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"action": "rename", "group": "99", "name": "x"}, "no group"),
        ({"action": "undo"}, "nothing to undo"),
        ({"action": "rename", "group": "1", "name": ""}, "1 to 200 characters"),
        ({"action": "rename", "group": "1", "name": "x" * 201}, "1 to 200 characters"),
        ({"action": "merge", "group": "1", "into": "1"}, "with itself"),
        ({"action": "label", "label": "x"}, "No line is ticked"),
        ({"action": "label", "label": "x", "use": "99999"}, "There is no such use"),
        ({"action": "label", "label": "x", "use": "a"}, "line does not exist"),
        ({"action": "delete"}, "not an edit of groups"),
        ({"action": "split", "name": "x", "use": ["0", "83"]}, "of several groups"),
    ],
)
def test_what_cannot_be_done_is_explained_and_not_written(
    explored: Explored, form: dict[str, str], told: str
) -> None:
    assert told in refused(explored, **form)
    chinese = refused(explored, **form, view=f"{SENT}&lang=zh")
    [text] = re.findall(r'(?s)<div class="problem" role="alert">(.*?)</div>', chinese)
    assert re.search("[\u4e00-\u9fff]{4}", text)
    assert told not in text
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
    assert "finer" not in about


def test_after_an_edit_the_page_is_one_of_ours(explored: Explored) -> None:
    sent = f"{SENT}&lang=zh&where=year<1900"
    form = {"action": "rename", "group": "1", "name": "x"}
    location = judge(explored, view=sent, **form)
    assert location.startswith("/word?q=bank&finer=2")
    elsewhere = f"{SENT}&next=//evil.example"
    assert judge(explored, view=elsewhere, action="undo").startswith("/word?q=bank")


def test_of_sixty_edits_made_at_once_in_four_tabs_none_is_refused_and_none_lost(
    explored: Explored,
) -> None:
    """Each tab labels lines of its own, from the page as it was before any of them."""
    seen = state(explored)

    def work(tab: int) -> None:
        for number in range(15):
            line = str(15 * tab + number)
            judge(explored, state=seen, action="label", use=[line], label=f"{tab}-{number}")

    with ThreadPoolExecutor(4) as tabs:
        list(tabs.map(work, range(4)))
    assert len(explored.workspace.edits(VIEW).edits) == 60
    labels = {15 * tab + number: f"{tab}-{number}" for tab in range(4) for number in range(15)}
    assert groups(explored).labels_by_hand == labels


def test_groups_split_off_at_once_get_ids_of_their_own(explored: Explored) -> None:
    seen, labels = state(explored), groups(explored).labels
    lines = [n for n, label in enumerate(labels) if label == 1][:2]
    lines += [n for n, label in enumerate(labels) if label == 2][:2]
    with ThreadPoolExecutor(2) as tabs:
        list(
            tabs.map(
                lambda two: judge(
                    explored, state=seen, action="split", use=list(map(str, two)), name=f"{two}"
                ),
                (lines[:2], lines[2:]),
            )
        )
    assert not groups(explored).problems
    new = [group for group in groups(explored).groups if group.name.startswith("[")]
    assert [group.size for group in new] == [2, 2]


STALE = "changed after this page was loaded"


def test_a_rename_from_an_older_page_is_told_and_overwrites_nothing(explored: Explored) -> None:
    seen = state(explored)
    judge(explored, state=seen, action="rename", group="1", name="first tab")
    assert STALE in refused(explored, state=seen, action="rename", group="1", name="second tab")
    assert groups(explored).groups[0].name == "first tab"
    judge(explored, state=seen, action="rename", group="2", name="another group")
    judge(explored, action="rename", group="1", name="from the new page")
    assert groups(explored).groups[0].name == "from the new page"


@pytest.mark.parametrize(
    "form",
    [
        {"action": "merge", "group": "2", "into": "1"},
        {"action": "merge", "group": "1", "into": "2"},
        {"action": "move", "use": ["0"], "to": "1"},
        {"action": "move", "use": ["3"], "to": "2"},
        {"action": "label", "use": ["3", "4"], "label": "y"},
    ],
)
def test_what_another_tab_has_changed_is_not_changed_from_an_older_page(
    explored: Explored, form: dict[str, str | list[str]]
) -> None:
    seen = state(explored)
    judge(explored, action="rename", group="1", name="x")
    judge(explored, action="label", use=["3"], label="x")
    judge(explored, action="move", use=["3"], to="1")
    assert STALE in refused(explored, state=seen, **form)
    assert len(explored.workspace.edits(VIEW).edits) == 3


def test_undo_takes_back_what_its_page_says_and_nothing_of_another_tab(explored: Explored) -> None:
    judge(explored, action="rename", group="1", name="mine")
    seen = state(explored)
    judge(explored, action="label", use=["5"], label="of another tab")
    judge(explored, state=seen, action="undo")
    assert groups(explored).labels_by_hand == {5: "of another tab"}
    assert groups(explored).groups[0].name != "mine"
    # What is undone already, or was changed again, is not undone once more.
    assert STALE in refused(explored, state=seen, action="undo")
    judge(explored, action="rename", group="1", name="again")
    assert STALE in refused(explored, state=seen, action="undo")
    assert groups(explored).groups[0].name == "again"


@pytest.mark.parametrize("state", ["", "x", "-1", "1", "99999999999", "²"])
def test_an_edit_that_does_not_say_which_page_it_was_made_on_is_refused(
    explored: Explored, state: str
) -> None:
    assert STALE in refused(explored, state=state, action="rename", group="1", name="x")
    assert not explored.workspace.edits(VIEW).edits


def test_with_scripts_an_edit_leaves_the_page_only_when_it_is_done(explored: Explored) -> None:
    headers = {"origin": HOST, "hx-request": "true"}
    form = {"view": SENT, "state": state(explored), "action": "label", "label": "x"}
    answer = explored.client.post("/judge", data=form, headers=headers)
    assert answer.status_code == 200
    assert "hx-redirect" not in answer.headers
    assert answer.text.startswith('<div class="problem"')
    answer = explored.client.post("/judge", data={**form, "use": "1"}, headers=headers)
    assert (answer.status_code, answer.headers["hx-redirect"]) == (204, "/word?q=bank&finer=2")


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (View(q="bank"), View(q="Bank"), True),
        (View(q="bank,banks"), View(q="banks,bank"), True),
        (View(q="bank,banks"), View(q="banks，BANK , bank"), True),
        (View(q="straße"), View(q="STRASSE"), True),
        (View(q="bank"), View(q="bank", finer=3), True),
        (View(q="bank"), View(q="bank", layer=1), True),
        (View(q="bank"), View(q="banks"), False),
        (View(q="bank,banks"), View(q="bank,banker"), False),
        (View(q="bank"), View(q="bank", case=True), False),
        (View(q="bank", case=True), View(q="Bank", case=True), False),
        (View(q=r"\w", regex=True), View(q=r"\W", regex=True), False),
    ],
)
def test_notes_are_of_a_word_however_it_is_typed_and_its_uses_are_grouped(
    explored: Explored, one: View, other: View, is_same: bool
) -> None:
    assert (explored.workspace.folder(one) == explored.workspace.folder(other)) == is_same


def test_notes_of_an_earlier_version_are_found(explored: Explored) -> None:
    folder, notes = explored.workspace.folder, explored.workspace.notes
    about = {"forms": ["bank"], "is_regex": False, "is_case_sensitive": False, "layer": None}
    for finer in (1, 2):
        old = notes / f"bank-old{finer}"
        old.mkdir(parents=True)
        told = json.dumps({**about, "finer": finer, "model": explored.workspace.model_name})
        (old / "about.json").write_text(told, encoding="utf-8")
    (notes / "bank-odd").mkdir()
    (notes / "bank-odd" / "about.json").write_text("[]", encoding="utf-8")
    try:
        assert folder(View(q="bank", finer=2)).name == "bank-old2"
        assert folder(View(q="bank", finer=1)).name == "bank-old1"
        assert folder(View(q="bank", finer=-1)).name == "bank-old1"
        assert "old" not in folder(View(q="bank", case=True)).name
    finally:
        for name in ("old1", "old2", "odd"):
            shutil.rmtree(notes / f"bank-{name}")


def test_a_name_is_there_at_another_granularity(explored: Explored) -> None:
    judge(explored, action="rename", group="1", name="my own name")
    finer = explored.wait_for_groups(q="bank", finer=3)
    page = explored.get(finer.address("/word"))
    assert "my own name" in page
