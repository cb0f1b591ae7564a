"""Search and read: lines at once, groups when they are there, every filter in the address."""

import gc
import html
import importlib.util
import re
import shutil
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
from required import needs
from starlette.testclient import TestClient

import polyseme
from polyseme.explorer.explored_word import Job, WorkQueue
from polyseme.explorer.view import GroupingKey, View
from polyseme.meanings.concordance.conditions import keep_subcorpus, parse_condition
from polyseme.meanings.concordance.kept_senses import keep_senses
from polyseme.meanings.concordance.search import CorpusColumns
from polyseme.meanings.concordance.uses import find_uses
from polyseme.meanings.edits import NAME, Edit, GroupRef, LabelEdit, RenameEdit, UseId, append_edit
from polyseme.meanings.groups.calibration import Calibration
from polyseme.meanings.groups.grouping import Limits
from polyseme.meanings.groups.senses import use_ids

from .making import HOST, Explored, explore, make_bank_corpus, make_corpus_of


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Explored:
    folder = Path(tmp_path_factory.mktemp("pages"))
    found = explore(make_bank_corpus(folder), folder / "notes")
    found.wait_for_groups(finer=2)
    return found


def blocks(page: str) -> int:
    return page.count('<section class="block')


def lines(page: str) -> list[int]:
    """Numbers of the uses whose lines a page has."""
    return [int(number) for number in re.findall(r'data-use="(\d+)"', page)]


def test_lines_are_there_before_groups(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = explore(make_bank_corpus(tmp_path), tmp_path / "notes", model="no such model")
    page = found.get("/word?q=bank")
    assert lines(page) == list(range(50))
    assert 'id="progress"' in page
    job = found.workspace.word(View(q="bank")).job
    assert job is not None
    assert job.ended.wait(60)
    # What went wrong is told where groups would have come, and the lines stay.
    part = found.get("/progress?q=bank", **{"hx-request": "true"})
    assert "The model cannot be used" in part
    assert "no such model" in caplog.text  # the rest is for the terminal
    assert "no such model" not in part
    assert "hx-trigger" not in part
    assert lines(found.get("/word?q=bank"))


def test_the_first_page_says_what_is_seen_and_what_to_try(tmp_path: Path) -> None:
    found = explore(make_bank_corpus(tmp_path), tmp_path / "notes", model="no such model")
    found.workspace.opening = View(q="bank")
    compared = View(q="bank", before=("year<1860",), after=("year>=1900",))
    found.workspace.examples = View(q="river"), compared
    page = found.get("/word?q=bank&lang=en")
    assert "Each line is a use of “bank”" in page
    assert re.search(r'<a href="/word\?q=river[^"]*">river</a>', page)
    address = re.search(r'<a href="(/compare[^"]*)">compare “bank” in two periods</a>', page)
    assert address
    assert found.get(html.unescape(address[1]))
    assert "Each line is a use of" not in found.get("/word?q=river&lang=en")


def test_groups_are_bands_of_lines_with_names_and_figures(explored: Explored) -> None:
    page = explored.get("/word?q=bank&finer=2")
    groups = explored.workspace.word(View(q="bank")).senses(GroupingKey(2, None))
    assert groups is not None
    assert blocks(page) == len(groups.groups) > 1
    for group in groups.groups:
        assert " ".join(group.collocates) in page
        assert f"{group.size:,}" in page


def test_who_has_no_word_in_mind_is_offered_some(tmp_path: Path) -> None:
    found = explore(make_bank_corpus(tmp_path), tmp_path / "notes")
    home = found.get("/")
    offered = re.findall(r'href="(/word\?q=[^"]+)"', home)
    assert "Frequent words of these texts" in home
    assert 0 < len(offered) <= 8
    for address in offered:
        [number] = re.findall(r"(\d+) uses", found.get(address))[:1]
        assert int(number) >= 30
    assert "Frequent words" not in found.get("/")  # whoever has searched knows how
    found.workspace.close()


def test_a_page_says_what_the_words_at_the_head_of_a_group_are(explored: Explored) -> None:
    told = "At the head of each group: words that could stand in its place"
    assert told in explored.get("/word?q=bank&finer=2")
    assert "可以替换的词" in explored.get("/word?q=bank&finer=2&lang=zh")
    assert told not in explored.get("/word?q=bank&finer=2&group=1")


def test_what_is_asked_for_again_and_again_ends_in_the_page_with_groups(explored: Explored) -> None:
    answer = explored.client.get("/progress?q=bank&finer=2", headers={"hx-request": "true"})
    assert answer.headers["hx-retarget"] == "#word"
    assert blocks(answer.text) > 1


def test_a_page_says_how_far_to_believe_it_and_when_a_word_has_one_meaning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Calibration(0.2, 0.05, 20, Limits(1.01, 1.01), 4.2, 13.9)
    monkeypatch.setattr("polyseme.meanings.groups.senses.calibration_of", lambda *_, **__: told)
    found = explore(make_bank_corpus(tmp_path), tmp_path / "notes")
    found.wait_for_groups()
    page = found.get("/word?q=bank")
    assert blocks(page) == 1
    assert "tells mixed words apart poorly (0.20; 0 is chance, 1 perfect)" in page
    assert "4.2 times better than frequencies alone, those of its own texts 13.9 times" in page
    assert "One meaning, as far as this model can tell" in page
    assert "stability" not in page.partition('<section class="block')[2].partition("</header>")[0]
    chinese = found.get("/word?q=bank&lang=zh")
    assert "（0.20；0 为随机，1 为完全分开）" in chinese
    assert "好 4.2 倍" in chinese
    assert "只有一个义项" in chinese
    found.wait_for_groups(finer=1)
    assert "One meaning" not in found.get("/word?q=bank&finer=1&group=")


def test_a_group_has_all_its_lines_and_no_other(explored: Explored) -> None:
    senses = explored.workspace.word(View(q="bank")).senses(GroupingKey(2, None))
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


def test_more_like_a_line_begins_with_that_line(explored: Explored) -> None:
    page = explored.get("/word?q=bank&finer=2&like=17")
    assert lines(page)[0] == 17
    is_river = [int(explored.workspace.word(View(q="bank")).uses[n].metadata["year"] or 0) < 1900
                for n in lines(page)[:10]]  # fmt: skip
    assert sum(is_river) >= 8  # the first 42 uses are of rivers


def test_context_has_the_sentences_around_and_all_metadata(explored: Explored) -> None:
    part = explored.get("/context?q=bank&use=3", **{"hx-request": "true"})
    use = explored.workspace.word(View(q="bank")).uses[3]
    assert part.startswith('<tr class="context">')
    for known in (use.document, *use.metadata.values()):
        assert str(known) in part
    assert "<html" in explored.get("/context?q=bank&use=3")  # without scripts, a page


def test_layers_lead_from_form_to_meaning(explored: Explored) -> None:
    explored.wait_for_groups(layer=0)
    page = explored.get("/word?q=bank&layer=0")
    assert blocks(page) == 1  # all 84 have one form
    explored.wait_for_groups(layer=1)
    assert blocks(explored.get("/word?q=bank&layer=1")) >= 1


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("/word?q=bnak", "“bnak” does not occur in this corpus"),
        ("/word?q=b.nak&regex=1", "Nothing in this corpus matches"),
        ("/word?q=,", "Type a word"),
        ("/word?q=(&regex=1", "not a valid regular expression"),
        ("/frequency?q=bank&where=colour=red", "no column colour"),
        ("/word?q=bank&sort=colour", "cannot be sorted"),
        ("/word?q=bank&finer=many", "cannot be"),
        ("/word?q=bank&attribute=lemma", "no word attribute"),
        ("/word?q=bank&uses=!", "does not hold a selection"),
        ("/word?q=" + "x" * 3_000, "3,000 characters"),
        ("/word?q=bank&finer=2&group=99", "no group"),
        ("/word?q=bank&finer=2&like=99999", "There is no such use"),
        ("/context?q=bank&use=-1", "There is no such use"),
        ("/context?q=bank&use=99999", "There is no such use"),
        ("/export/uses.csv?q=bank&finer=-4", "not ready yet"),
        ("/score?text=" + "word " * 350, "more than 300 words"),
        ("/compare?q=bank&finer=2&before=year<1800&after=year>1900", "Choose wider sides"),
        ("/compare?q=bank&finer=2&before=year<1960&after=year>1900", "exclude each other"),
        ("/nothing", "no such page"),
    ],
)
def test_a_mistake_is_explained_in_either_language_for_who_sits_at_a_browser(
    explored: Explored, address: str, told: str
) -> None:
    sign = "&" if "?" in address else "?"
    for language in ("en", "zh"):
        answer = explored.client.get(f"{address}{sign}lang={language}")
        assert answer.status_code in (400, 404)
        [text] = re.findall(r'(?s)<div class="problem" role="alert">(.*?)</div>', answer.text)
        text = html.unescape(re.sub("<[^>]*>", " ", text))
        assert language == "zh" or told in text
        for for_a_terminal in (str(explored.workspace.corpus.folder), "/tmp", "`", "--", "Error"):
            assert for_a_terminal not in text
        words = re.findall(
            r"[A-Za-z]{2,}", re.sub(r"“[^”]*”|x{9,}|word|year|author|document", "", text)
        )
        assert language == "en" or len(words) <= 4, text
        assert "went wrong" not in answer.text


def test_near_forms_lead_to_their_uses(explored: Explored) -> None:
    answer = explored.client.get("/word?q=bnak&finer=2&lang=zh")
    [near] = re.findall(r'<a href="([^"]*)">bank</a>', answer.text)
    assert html.unescape(near) == "/word?q=bank&finer=2&lang=zh"
    assert lines(explored.get(html.unescape(near)))


def test_a_fault_of_ours_is_told_without_its_details(
    explored: Explored, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("/etc/secret")

    monkeypatch.setattr("polyseme.explorer.workspace.Workspace.word", fail)
    client = TestClient(explored.client.app, base_url=HOST, raise_server_exceptions=False)
    client.cookies = explored.client.cookies
    answer = client.get("/word?q=bank")
    assert answer.status_code == 500
    assert "This is a bug in Polyseme (ValueError)" in answer.text
    assert "secret" not in answer.text
    assert "secret" in caplog.text


def test_edits_that_cannot_be_read_are_told_in_the_terminal(
    explored: Explored, caplog: pytest.LogCaptureFixture
) -> None:
    folder = explored.workspace.folder(View(q="bank", finer=2))
    folder.mkdir(parents=True)
    (folder / "edits.jsonl").write_text("broken\n", encoding="utf-8")
    try:
        answer = explored.client.get("/word?q=bank&finer=2&lang=zh")
    finally:
        shutil.rmtree(folder)
    assert answer.status_code == 400
    assert "您的修改无法读取" in answer.text
    assert str(folder) in caplog.text
    assert str(folder) not in answer.text


def test_edits_that_do_not_fit_are_told_in_chinese(explored: Explored, tmp_path: Path) -> None:
    gone = GroupRef(id="77", name="gone")
    lost = (UseId("no such sentence", 0),)
    edits: list[Edit] = [
        RenameEdit(group=gone, name="x"),
        LabelEdit(
            uses=(*lost, use_ids(explored.workspace.word(View(q="bank")).uses)[0]), label="x"
        ),
        LabelEdit(uses=lost, label="x"),
    ]
    for edit in edits:
        append_edit(explored.workspace.folder(View(q="bank", finer=2)) / NAME, edit)
    page = explored.get("/word?q=bank&finer=2&lang=zh")
    shutil.rmtree(explored.workspace.folder(View(q="bank", finer=2)))
    assert "第 1 次修改没有执行：它所指的组" in page
    assert "第 2 次修改中有 1 行" in page
    assert "第 3 次修改没有执行：所指的行" in page


def test_pages_speak_chinese(explored: Explored) -> None:
    page = explored.get("/word?q=bank&finer=2&lang=zh")
    assert '<html lang="zh-Hans">' in page
    assert "分组得自文本" in page


def test_work_can_be_stopped_and_begun_again(tmp_path: Path) -> None:
    found = explore(make_bank_corpus(tmp_path), tmp_path / "notes")
    word = found.workspace.word(View(q="bank"))
    with word.queue.slot():  # another word is being worked on
        found.get("/word?q=bank")
        job = word.job
        assert job is not None
        assert job.is_open
        job.stop()
    assert job.ended.wait(30)
    assert job.state == "stopped"
    part = found.get("/progress?q=bank", **{"hx-request": "true"})
    assert "Stopped" in part
    found.wait_for_groups()


@pytest.mark.parametrize(
    ("language", "text", "shown"),
    [
        ("en", "One came. The bank, it fell. Two went.", "The <mark>bank</mark>, it fell."),
        ("zh", "你来了。他走了。我去了。", "他<mark>走</mark>了。"),
    ],
)
def test_a_context_has_the_spaces_of_its_text(
    tmp_path: Path, language: str, text: str, shown: str
) -> None:
    word = re.findall("<mark>(.*)</mark>", shown)[0]
    corpus = make_corpus_of(tmp_path, [{"text": text}], meta=(), language=language)
    found = explore(corpus, tmp_path / "notes")
    page = found.get(f"/context?q={word}&use=0")
    passage = re.findall('(?s)<p class="passage">(.*?)</p>', page)[0]
    assert shown in passage
    plain = re.sub("<[^>]*>", "", passage)
    assert plain.strip() == text


def test_a_map_lets_groups_go_first() -> None:
    queue, told = WorkQueue(), list[str]()

    def work(name: str, _: Job) -> None:
        told.append(name)

    with queue.slot():
        jobs = [
            Job(partial(work, name), queue, has_time=name == "map")
            for name in ("map", "groups of one word", "groups of another")
        ]
        for job in jobs:
            assert job.state == "waiting"
        wait_until(lambda: queue._in_haste == 3)
    assert all(job.ended.wait(60) for job in jobs)
    assert told[-1] == "map"
    assert [job.state for job in jobs] == ["done"] * 3


def test_groups_do_not_wait_for_a_map_that_is_being_drawn() -> None:
    queue, may_end = WorkQueue(), threading.Event()
    drawing = Job(lambda _: assert_set(may_end), queue, has_time=True)
    wait_until(lambda: drawing.state == "running")
    grouping = Job(lambda _: None, queue)
    assert grouping.ended.wait(60)
    assert (grouping.state, drawing.state) == ("done", "running")
    may_end.set()
    assert drawing.ended.wait(60)
    assert drawing.state == "done"


def assert_set(event: threading.Event) -> None:
    assert event.wait(60)


def test_groups_of_another_fineness_are_there_before_the_first_map(tmp_path: Path) -> None:
    found = explore(make_bank_corpus(tmp_path), tmp_path / "notes")
    word = found.workspace.word(View(q="bank"))
    drawn = threading.Event()
    word.queue = _GateForMaps(drawn)
    for finer in (0, 2):
        assert word.senses(GroupingKey(finer, None)) is None
        assert word.job is not None
        assert word.job.ended.wait(120)
        assert word.senses(GroupingKey(finer, None)) is not None
    assert found.client.get("/map?q=bank&finer=2").json() == {"state": "waiting"}
    drawn.set()
    found.wait_for_groups(finer=2)
    assert found.client.get("/map?q=bank&finer=2").json()["state"] == "done"
    # The first was given up for the second, and is drawn when it is looked at again.
    found.wait_for_groups()
    assert found.client.get("/map?q=bank").json()["state"] == "done"


class _GateForMaps(WorkQueue):
    """Maps wait until they are told to go."""

    def __init__(self, may_go: threading.Event) -> None:
        super().__init__()
        self._may_go = may_go

    @contextmanager
    def slot(self, *, has_time: bool = False) -> Iterator[None]:
        if has_time:
            self._may_go.wait()
        with super().slot(has_time=has_time):
            yield


def wait_until(is_so: Callable[[], bool]) -> None:
    for _ in range(6_000):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError


def test_only_a_few_words_stay_in_memory(explored: Explored) -> None:
    for word in ("river", "the", "of", "farmer", "old"):
        explored.workspace.word(View(q=word))
    assert len(explored.workspace._words) == 3
    assert [query.forms for query in explored.workspace._words] == [("of",), ("farmer",), ("old",)]


def test_work_on_a_word_that_is_forgotten_is_stopped(tmp_path: Path) -> None:
    found = explore(make_bank_corpus(tmp_path), tmp_path / "notes")
    word = found.workspace.word(View(q="bank"))
    with word.queue.slot():  # another word is being worked on
        assert word.senses(GroupingKey(0, None)) is None
        job = word.job
        assert job is not None
        for other in ("river", "the"):
            found.workspace.word(View(q=other))
        assert not job._stop.is_set()
        found.workspace.word(View(q="of"))
        assert job._stop.is_set()
    assert job.ended.wait(60)
    assert job.state == "stopped"


def test_a_long_sentence_is_cut_between_words_on_either_side(tmp_path: Path) -> None:
    left = " ".join(f"left{number}" for number in range(100))
    right = " ".join(f"right{number}" for number in range(100))
    corpus = make_corpus_of(tmp_path, [{"text": f"{left} bank {right}."}], meta=())
    found = explore(corpus, tmp_path / "notes")
    page = found.get("/word?q=bank")
    [before], [after] = (
        re.findall(rf'<td class="{side}"><span>(.*?)</span>', page) for side in ("left", "right")
    )
    assert re.fullmatch(r"…(left\d+ )+left99", before)
    assert re.fullmatch(r"right0( right\d+)+…", after)
    assert 120 < len(before) <= 140
    assert 120 < len(after) <= 140
    line = found.client.get("/line?q=bank&use=0").json()
    assert re.fullmatch(r"…(left\d+ )+left99", line["left"])
    assert re.fullmatch(r"right0( right\d+)+…", line["right"])


def test_memory_does_not_grow_with_the_words_that_were_opened(tmp_path: Path) -> None:
    found = explore(make_bank_corpus(tmp_path), tmp_path / "notes")
    opened = []
    gc.collect()
    gc.disable()  # it does not see how large arrays are, and would free what is in a circle late
    try:
        for number in range(5):
            view = found.wait_for_groups(q=f"bank,bonk{number}")
            opened.append(weakref.ref(found.workspace.word(view)))
        wait_until(lambda: sum(word() is not None for word in opened) == 3)
        assert len(found.workspace._words) == 3
    finally:
        gc.enable()


def test_words_that_take_much_memory_are_forgotten_sooner_and_come_back_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = explore(make_bank_corpus(tmp_path), tmp_path / "notes")
    found.wait_for_groups()
    workspace = found.workspace
    word = workspace.word(View(q="bank"))
    senses = word.senses(GroupingKey(0, None))
    assert senses is not None
    context = senses.features.context
    assert word.num_bytes > context.nbytes + senses.grouping.vectors.nbytes
    assert workspace.num_bytes == word.num_bytes
    workspace.word(View(q="river"))
    assert len(workspace._words) == 2
    monkeypatch.setattr("polyseme.explorer.workspace._BYTES", workspace.num_bytes - 1)
    workspace.word(View(q="old"))
    assert workspace.word(View(q="river")) in workspace._words.values()
    assert word not in workspace._words.values()
    assert workspace.num_bytes < word.num_bytes
    found.wait_for_groups()
    again = workspace.word(View(q="bank"))
    assert again is not word
    groups = again.senses(GroupingKey(0, None))
    assert groups is not None
    assert groups.groups == senses.groups


def test_groupings_of_a_word_are_forgotten_too(explored: Explored) -> None:
    for finer in range(-3, 3):
        explored.wait_for_groups(finer=finer)
    word = explored.workspace.word(View(q="bank"))
    assert [how.finer for how in word._grouped] == [-1, 0, 1, 2]


@needs(importlib.util.find_spec("jieba") is not None, "the extra [zh]")
def test_a_page_says_when_a_chinese_word_is_mostly_part_of_longer_ones(tmp_path: Path) -> None:
    row = {"text": "先生说。学生来了。医生来了。生，死。", "title": "红楼梦"}
    corpus = make_corpus_of(tmp_path, [row], ("title",), "zh")
    found = explore(corpus, tmp_path / "notes", model="no such model")
    page = found.get("/word?q=生&lang=zh")
    assert "“生”单独成词 1 次；在更长的词里另有 3 次" in page
    assert "《红楼梦》" in page
    assert "<title>生 · corpus</title>" in page
    assert "is a word by itself 1 time here" in found.get("/word?q=生&lang=en")
    assert "单独成词" not in found.get("/word?q=说&lang=zh")
    assert "<title>corpus · Polyseme 词义浏览</title>" in found.get("/?lang=zh")


def test_collocates_are_a_picture_and_a_table_of_a_word_and_of_each_group(
    explored: Explored,
) -> None:
    page = explored.get("/collocates?q=bank&finer=2")
    assert "Collocates of “bank”" in page
    row = r'<th scope="row"><a href="[^"]+">([^<]+)</a></th><td class="number">(\d+)'
    rows = re.findall(row, page)
    assert len(rows) == page.count('r="4.5"') > 5
    assert [f"{word}: {count}" in page for word, count in rows] == [True] * len(rows)
    found = polyseme.collocates(explored.workspace.corpus.folder, "bank", top=60)
    assert rows == [(each.word, str(each.count)) for each in found]
    groups = re.findall(r'href="(/collocates[^"]*group=(\d+)[^"]*)"', page)
    assert len(groups) > 1
    part = explored.get(html.unescape(groups[0][0]))
    assert 'aria-current="page"' in part
    assert "“bank”的搭配词" in explored.get("/collocates?q=bank&lang=zh")
    assert explored.client.get("/collocates?q=bank&where=century<3").status_code == 400


def test_a_kept_sense_is_searched_for_and_an_unknown_one_told(tmp_path: Path) -> None:
    found = explore(make_bank_corpus(tmp_path), tmp_path / "notes")
    corpus = found.workspace.corpus
    asked = quote('[word="bank" & sense="riv.*"]')
    assert "No senses are kept beside this corpus" in found.client.get(f"/word?q={asked}").text
    names = ["river" if number % 2 else "" for number in range(50)]
    keep_senses(corpus, "bank", find_uses(corpus, "bank").places, names, None, Path("bank.jsonl"))
    assert lines(found.get(f"/word?q={asked}")) == list(range(25))
    unknown = quote('[sense="sand"]')
    wrong = found.client.get(f"/word?q={unknown}&lang=zh")
    assert "已保存：bank: river" in html.unescape(wrong.text)
    found.workspace.close()


def test_senses_that_are_kept_again_are_found_as_they_are_now(tmp_path: Path) -> None:
    found = explore(make_bank_corpus(tmp_path), tmp_path / "notes")
    corpus = found.workspace.corpus
    places = find_uses(corpus, "bank").places
    asked = quote('[sense="river"]')
    for number in (20, 30, 31):
        names = ["river" if use < number else "" for use in range(len(places))]
        keep_senses(corpus, "bank", places, names, None, Path("bank.jsonl"))
        for page in ("word", "collocates"):
            assert f"{number} uses" in found.get(f"/{page}?q={asked}")
    assert len(found.workspace._words) == 1
    found.workspace.close()


def test_a_subcorpus_that_is_another_now_is_counted_anew(tmp_path: Path) -> None:
    found = explore(make_bank_corpus(tmp_path), tmp_path / "notes")
    corpus, pages = found.workspace.corpus, []
    for condition in ("year<1900", "year>=1900"):
        keep_subcorpus(corpus, "mine", parse_condition(condition, CorpusColumns(corpus)))
        query = quote('"bank" :: subcorpus=mine')
        pages.append(
            [
                found.get("/collocates?q=bank&where=subcorpus=mine"),
                found.get("/keywords?before=subcorpus=mine"),
                found.get(f"/word?q={query}"),
            ]
        )
    assert all(before != after for before, after in zip(*pages, strict=True))
    found.workspace.close()


def test_keywords_are_bars_to_either_side(explored: Explored) -> None:
    assert "Choose a part" in explored.get("/keywords")
    page = explored.get("/keywords?before=year<1900")
    found = polyseme.keywords(explored.workspace.corpus.folder, where="year<1900", top=30)
    assert page.count('<rect class="more"') == sum(each.log_ratio > 0 for each in found) > 0
    assert page.count('<rect class="less"') == sum(each.log_ratio < 0 for each in found) > 0
    words = re.findall(r'<th scope="row"><a href="[^"]+">([^<]+)</a>', page)
    assert words == [html.escape(each.word) for each in found]
    same = explored.client.get("/keywords?before=year<1900&after=year<1901")
    assert "cannot be compared" in same.text
