"""Search and read: lines at once, groups when they are there, every filter in the address."""

import re
from pathlib import Path

import pytest

from polyseme.explorer.explored_word import Fineness
from polyseme.explorer.view import View, pack

from .making import Explored, explore, make_bank_corpus


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Explored:
    folder = Path(tmp_path_factory.mktemp("pages"))
    found = explore(make_bank_corpus(folder), folder / "notes")
    found.wait_for_groups(finer=2)
    return found


def bands(page: str) -> int:
    return page.count('<section class="band')


def lines(page: str) -> list[int]:
    """Numbers of the uses whose lines a page has."""
    return [int(number) for number in re.findall(r'data-use="(\d+)"', page)]


def test_lines_are_there_before_groups(tmp_path: Path) -> None:
    found = explore(make_bank_corpus(tmp_path), tmp_path / "notes", model="no such model")
    page = found.get("/word?q=bank")
    assert lines(page) == list(range(50))
    assert 'id="progress"' in page
    job = found.workspace.word(View(q="bank")).job
    assert job is not None
    assert job.ended.wait(60)
    # What went wrong is told where groups would have come, and the lines stay.
    part = found.get("/progress?q=bank", **{"hx-request": "true"})
    assert "no such model" in part
    assert "hx-trigger" not in part
    assert lines(found.get("/word?q=bank"))


def test_groups_are_bands_of_lines_with_names_and_figures(explored: Explored) -> None:
    page = explored.get("/word?q=bank&finer=2")
    groups = explored.workspace.word(View(q="bank")).senses(Fineness(2, None))
    assert groups is not None
    assert bands(page) == len(groups.groups) > 1
    for group in groups.groups:
        assert " ".join(group.collocates) in page
        assert f"{group.size:,}" in page


def test_what_is_asked_for_again_and_again_ends_in_the_page_with_groups(explored: Explored) -> None:
    answer = explored.client.get("/progress?q=bank&finer=2", headers={"hx-request": "true"})
    assert answer.headers["hx-retarget"] == "#word"
    assert bands(answer.text) > 1


def test_a_group_has_all_its_lines_and_no_other(explored: Explored) -> None:
    senses = explored.workspace.word(View(q="bank")).senses(Fineness(2, None))
    assert senses is not None
    page = explored.get("/word?q=bank&finer=2&group=2")
    members = {n for n, label in enumerate(senses.labels) if label == 2}
    assert set(lines(page)) == members


def test_a_filter_keeps_groups_and_leaves_lines_out(explored: Explored) -> None:
    uses = explored.workspace.word(View(q="bank")).uses
    page = explored.get("/word?q=bank&finer=2&sort=corpus&where=year<1900")
    assert lines(page) == [
        n for n, year in enumerate(uses.metadata("year")) if int(year or 0) < 1900
    ]
    sent = explored.client.get("/map?q=bank&finer=2&where=year<1900").json()
    assert sent["lit"] == lines(page)
    assert len(sent["x"]) == len(sent["y"]) == len(sent["colour"]) == 84


def test_lines_are_sorted_by_the_word_before(explored: Explored) -> None:
    page = explored.get("/word?q=bank&finer=2&sort=left")
    before = [left.split()[-1].lower() for left in re.findall(r'class="left"><span>(.*?)<', page)]
    assert before == sorted(before)


def test_more_like_a_line_begins_with_that_line(explored: Explored) -> None:
    page = explored.get("/word?q=bank&finer=2&like=17")
    assert lines(page)[0] == 17
    is_river = [int(explored.workspace.word(View(q="bank")).uses[n].metadata["year"] or 0) < 1900
                for n in lines(page)[:10]]  # fmt: skip
    assert sum(is_river) >= 8  # the first 42 uses are of rivers


def test_a_choice_on_the_map_is_an_address(explored: Explored) -> None:
    page = explored.get(f"/word?q=bank&finer=2&uses={pack([3, 5, 80])}")
    assert sorted(lines(page)) == [3, 5, 80]


def test_context_has_the_sentences_around_and_all_metadata(explored: Explored) -> None:
    part = explored.get("/context?q=bank&use=3", **{"hx-request": "true"})
    use = explored.workspace.word(View(q="bank")).uses[3]
    assert part.startswith('<tr class="context">')
    for known in (use.document, *use.metadata.values()):
        assert str(known) in part
    assert "<html" in explored.get("/context?q=bank&use=3")  # without scripts, a page


def test_frequencies_are_per_million_and_lead_to_their_lines(explored: Explored) -> None:
    part = explored.get("/frequency?q=bank")
    years = re.findall(r">(\d{4})</a>", part)
    assert years == [str(year) for year in (*range(1850, 1855), *range(1950, 1955))]
    assert "where=year%3D1850" in part
    assert "DP" in part


def test_layers_lead_from_form_to_meaning(explored: Explored) -> None:
    explored.wait_for_groups(layer=0)
    page = explored.get("/word?q=bank&layer=0")
    assert bands(page) == 1  # all 84 have one form
    explored.wait_for_groups(layer=1)
    assert bands(explored.get("/word?q=bank&layer=1")) >= 1


def test_a_search_is_remembered(explored: Explored) -> None:
    explored.get("/word?q=river")
    page = explored.get("/")
    assert page.index(">river</a>") < page.index(">bank</a>")


def test_few_uses_are_shown_without_groups(explored: Explored) -> None:
    page = explored.get("/word?q=farmer")
    assert "too few to be grouped" in page
    assert lines(page)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("/word?q=bnak", "Near forms in its vocabulary: bank"),
        ("/word?q=(&regex=1", "no regular expression"),
        ("/word?q=bank&where=colour=red", "no column"),
        ("/word?q=bank&finer=2&group=99", "no group"),
        ("/word?q=bank&finer=2&like=99999", "There is no use"),
        ("/context?q=bank&use=-1", "no number of a use"),
        ("/context?q=bank&use=99999", "There is no use"),
    ],
)
def test_a_mistake_is_explained(explored: Explored, address: str, told: str) -> None:
    answer = explored.client.get(address)
    assert answer.status_code == 400
    assert told in answer.text


def test_pages_speak_chinese(explored: Explored) -> None:
    page = explored.get("/word?q=bank&finer=2&lang=zh")
    assert '<html lang="zh-Hans">' in page
    assert "分组得自文本" in page


def test_work_can_be_stopped_and_begun_again(tmp_path: Path) -> None:
    found = explore(make_bank_corpus(tmp_path), tmp_path / "notes")
    word = found.workspace.word(View(q="bank"))
    word.gate.acquire()  # another word is being worked on
    try:
        found.get("/word?q=bank")
        job = word.job
        assert job is not None
        assert job.is_open
        job.stop()
    finally:
        word.gate.release()
    assert job.ended.wait(30)
    assert job.state == "stopped"
    part = found.get("/progress?q=bank", **{"hx-request": "true"})
    assert "Stopped" in part
    found.wait_for_groups()


def test_only_a_few_words_stay_in_memory(explored: Explored) -> None:
    for word in ("river", "the", "of", "farmer", "old"):
        explored.workspace.word(View(q=word))
    assert len(explored.workspace._words) == 3
