"""Twice the text takes twice the time: every pattern and scanner against hostile input."""

import contextlib
import re
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from required import need_package
from slack import allowed
from tasks.readers.making import reader
from text.making import make_config, make_piece, make_source

from polyseme.tasks.readers import read_examples
from polyseme.tasks.texts import ExampleStats
from polyseme.text.formats import marked, read_piece
from polyseme.text.plan import _BLANK_LINE, _NEW_DOCUMENT, _NEW_TEXT, plan_shards
from polyseme.text.prepare import _no_cycle_collection
from polyseme.text.preprocessing import UnfitTextError, normalize, split_sentences
from polyseme.text.segmenters import load_segmenter
from polyseme.text.segmenters.patterns import WordSpans
from polyseme.text.segmenters.spacy_rules import SpacyRules
from polyseme.text.settings import InputFormat
from polyseme.text.streams import split_lines

Work = Callable[[str], object]
MEGABYTE = 1 << 20
LARGEST_GROWTH = 2.5
SECONDS_PER_MEGABYTE = 2.0
# A chunk that spaCy was never asked before costs it some 30 microseconds and more, and hostile
# text can be all such chunks. That is slow, but no blow-up.
SECONDS_PER_NEW_MEGABYTE = 40.0
# A line costs some 2 to 5 microseconds however short it is, and a file can be all line ends.
SECONDS_PER_MEGABYTE_OF_LINES = 10.0
TOO_SHORT_TO_TELL = 0.020
_MOST_TURNS = 9
QUICK = (MEGABYTE // 32, MEGABYTE // 16)
FULL = (MEGABYTE // 4, MEGABYTE // 2, MEGABYTE)


def fill(pattern: str, size: int) -> str:
    """The pattern again and again, up to `size` bytes."""
    return pattern * (size // len(pattern.encode()) + 1)


def fill_distinct(pattern: str, size: int) -> str:
    """Chunks of the pattern, no two alike."""
    chunks, length, number = [], 0, 0
    while length < size:
        chunks.append(f"{pattern * 3}{number:x}{pattern}")
        length += len(chunks[-1].encode()) + 1
        number += 1
    return " ".join(chunks)


def measure(prepare: Callable[[], Work], text: str) -> float:
    """Seconds of work. It begins afresh: nothing is remembered."""
    work = prepare()
    with _no_cycle_collection():  # as in `prepare_shard`
        began = time.process_time()
        work(text)
        return time.process_time() - began


def check_growth(
    prepare: Callable[[], Work],
    make: Callable[[int], str],
    sizes: tuple[int, ...],
    limit: float = SECONDS_PER_MEGABYTE,
) -> None:
    """The promise: at most 2.5 times as long for twice as much, and never beyond the limit.

    Sizes take turns and are compared within a turn, so that a slow minute falls on all of them;
    the middle turn counts. Other programs only ever add time: for the limit the least counts.
    """
    texts = [make(size) for size in sizes]
    turns: list[list[float]] = []
    for turn in range(_MOST_TURNS):
        turns.append([measure(prepare, text) for text in texts])
        if turn >= 1 and _is_kept(turns, sizes, limit):
            return
    raise AssertionError(f"{sizes} bytes took {turns} s")


def _is_kept(turns: list[list[float]], sizes: tuple[int, ...], limit: float) -> bool:
    least = [min(times) for times in zip(*turns, strict=True)]
    growths = zip(*([u / t for t, u in pairwise(times)] for times in turns), strict=True)
    told = (median(g) for t, g in zip(least, growths, strict=False) if t >= TOO_SHORT_TO_TELL)
    is_steady = all(growth <= LARGEST_GROWTH for growth in told)
    return is_steady and least[-1] <= allowed(limit) * max(sizes[-1] / MEGABYTE, 0.125)


@pytest.fixture(params=[QUICK, pytest.param(FULL, marks=pytest.mark.slow)], ids=["quick", "full"])
def sizes(request: pytest.FixtureRequest) -> tuple[int, ...]:
    """The sizes of the input, in bytes."""
    chosen: tuple[int, ...] = request.param
    return chosen


SPACY = SpacyRules("en")
BOUNDARIES = {"blank line": _BLANK_LINE, "text": _NEW_TEXT, "document": _NEW_DOCUMENT}


def spacy_afresh() -> Work:
    SPACY._young, SPACY._old = {}, {}
    return SPACY.split


def segmenter(name: Any) -> Work:
    if name == "jieba":
        need_package("jieba")
    return load_segmenter(name, "zh").split


def split_into_sentences(words: list[str], text: str) -> object:
    many = words * (len(text) // len(words))
    return split_sentences(WordSpans(many, list(range(0, 2 * len(many), 2))))


def clean(form: Any, text: str) -> None:
    with contextlib.suppress(UnfitTextError):
        normalize(text, make_config(unicode_normalization=form))


def converter() -> Work:
    need_package("opencc")
    config = make_config(language="zh", script="simplified")
    return lambda text: normalize(text, config)


def search(name: str, text: str) -> None:
    for _ in BOUNDARIES[name].finditer(text.encode()):
        pass


def match_tags(text: str) -> None:
    marked._TAG.fullmatch(f"<a {text}")
    marked._TAG.fullmatch(f"<a {text}>")
    marked._ATTRIBUTE.findall(text)


def find_lines(encoding: str, text: str) -> None:
    data = text.encode(encoding)
    blocks = (data[i : i + 4096] for i in range(0, len(data), 4096))
    for _ in split_lines(blocks, newline="\n".encode(encoding)):
        pass


Prepare = Callable[[], Work]
SPACY_PATTERNS = [
    *("(", "a(", "'s", "😀", ".", "a-", "1,", "http://a", "a.b@", "a/", ":)", "_", "$1", "n't"),
    *('"', "“a”,", "A.B.", "don't ", "(a ", "a\u0301", "-", "'", "中"),
]
WORDS = ["a", "a.", "中", "(", " ", "e\u0301", "\u0301", "a中", "_"]
CHINESE = ["的", "龘", "中国", "我是", "a", "1.", "，", "龘a", "%", "é"]
CLEAN = ["a", "\x01", "é", "e\u0301", "\u0301\u0316", "a" + "\u0301\u0316" * 100, "ﷺ", "가", "\r\n"]
BREAKS = ["\n", "\n ", " ", "\n\t", "\n<text", "\n<text ", "\n<text a", "\n\n# newdoc"]
TAGS = ["<", "<s", "<a ", '"', '<a "', 'a="b" ', "/", "<a>", '""', ' a="']
SENTENCES = [["."], ["a", "."], ["?!"], [")"], [".", '"'], ["..."], [".", ")"], ["a"]]
ENCODINGS = ("utf-8", "utf-16-le", "utf-32-be")
LINES = ["a", "\n", "\u0a00", "\u0a0a", "a\n", "\r\n"]
PLAIN, OF_LINES = SECONDS_PER_MEGABYTE, SECONDS_PER_MEGABYTE_OF_LINES
# What is done to text, patterns that it is filled with, and how many seconds a megabyte may take.
WORK: list[tuple[Prepare, list[str], float]] = [
    (spacy_afresh, SPACY_PATTERNS, PLAIN),
    *((partial(segmenter, name), WORDS, PLAIN) for name in ("characters", "whitespace")),
    # Its model of unknown words is plain Python, some 10 microseconds a character.
    (partial(segmenter, "jieba"), CHINESE, 15.0),
    *((partial(partial, split_into_sentences, words), ["x"], PLAIN) for words in SENTENCES),
    *((partial(partial, clean, form), CLEAN, PLAIN) for form in (None, "NFC", "NFKD")),
    (converter, ["国", "国a", "後", "乾隆", "a", "龘"], PLAIN),
    (partial(partial, match_tags), TAGS, PLAIN),
    *((partial(partial, search, name), BREAKS, PLAIN) for name in BOUNDARIES),
    *((partial(partial, find_lines, name), LINES, OF_LINES) for name in ENCODINGS),
]


@pytest.mark.parametrize(
    ("prepare", "pattern", "limit"),
    [(prepare, pattern, limit) for prepare, patterns, limit in WORK for pattern in patterns],
)
def test_work_grows_with_the_text(
    prepare: Prepare, pattern: str, limit: float, sizes: tuple[int, ...]
) -> None:
    check_growth(prepare, partial(fill, pattern), sizes, limit)


@pytest.mark.parametrize("pattern", ["(", "'s", "a-", "_", "http://a/", "é", "1,"])
def test_spacys_words_grow_with_the_text_where_no_two_are_alike(
    pattern: str, sizes: tuple[int, ...]
) -> None:
    make = partial(fill_distinct, pattern)
    check_growth(spacy_afresh, make, sizes, limit=SECONDS_PER_NEW_MEGABYTE)


def test_cleaning_a_mountain_of_marks_takes_no_time(sizes: tuple[int, ...]) -> None:
    def make(size: int) -> str:
        return "a" + "\u0301" * (size // 4) + "\u0316" * (size // 4)

    def run(text: str) -> None:
        with pytest.raises(UnfitTextError):
            normalize(text, make_config(unicode_normalization="NFC"))

    check_growth(lambda: run, make, sizes)


@pytest.mark.parametrize("begin", ["\n ", "\n<text a"])
@pytest.mark.parametrize("name", BOUNDARIES)
def test_a_boundary_is_found_after_any_length_of_one_sign(
    name: str, begin: str, sizes: tuple[int, ...]
) -> None:
    make = lambda size: begin + begin[-1] * size  # noqa: E731
    check_growth(lambda: partial(search, name), make, sizes)


READERS: list[tuple[InputFormat, str, str]] = [
    ("jsonl", "", "["),
    ("jsonl", '{"text":', '{"a":'),
    ("jsonl", '{"text":"', "\\u0041"),
    ("csv", "text\n", '"'),
    ("csv", 'text\n"', "a\n"),
    ("csv", "text\n", "a,"),
    ("csv", "text\n", '"a"b\n'),
    ("tei", "<TEI><text>", "<div>"),
    ("tei", "<TEI><text>", "<p>"),
    ("tei", "<TEI><text><p>", "<note>"),
    ("tei", "<TEI><text><p>", "a<lb/>"),
    ("tei", "<TEI><text><p>", "&lt;"),
    ("conllu", "", "1\ta\n"),
    ("conllu", "", "# a = b\n"),
    ("conllu", "", "1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n"),
    ("vertical", "", "a\n"),
    ("vertical", "", "&amp"),
    ("vertical", "", "<text>\n"),
    ("text", "", "a\n"),
    ("text", "", "\n"),
]


@pytest.mark.parametrize(("kind", "head", "pattern"), READERS)
def test_readers_grow_with_the_file(
    kind: InputFormat, head: str, pattern: str, tmp_path: Path, sizes: tuple[int, ...]
) -> None:
    def read(text: str) -> None:
        source = make_source(tmp_path, (head + text).encode(), kind)
        for _ in read_piece(make_piece(source), make_config()):
            pass

    check_growth(lambda: read, partial(fill, pattern), sizes, SECONDS_PER_MEGABYTE_OF_LINES)


EXAMPLES: list[tuple[dict[str, Any], str, str]] = [
    ({"kind": "columns"}, "", "a O\n"),
    ({"kind": "columns"}, "", "a\n\n"),
    ({"kind": "columns"}, "", "a "),
    ({"kind": "conllu", "label": "upos"}, "", "1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n"),
    ({"kind": "conllu", "label": "Case"}, "1\ta\t_\tX\t_\t", "A=b|"),
    ({"kind": "propbank", "word": 1, "predicate": 2, "arguments": 3}, "", "a V (A0*)\n"),
    ({"kind": "propbank", "word": 1, "predicate": 2, "arguments": 3}, "a V ", "(A0*"),
    ({"kind": "table", "format": "csv", "text": "1", "label": "2", "header": False}, "", '"'),
    (
        {"kind": "table", "format": "csv", "text": "1", "label": "2", "header": False},
        'a,b\n"',
        "a,b\n",
    ),
    ({"kind": "table", "format": "tsv", "text": "1", "label": "2", "header": False}, "", "a\tb\n"),
    ({"kind": "table", "format": "jsonl", "text": "a", "label": "b"}, "", "["),
    ({"kind": "labelled"}, "", "x a b\n"),
    ({"kind": "labelled"}, "x ", "a "),
    ({"kind": "segmented"}, "", "中 "),
    ({"kind": "trees", "subtrees": True}, "", "("),
    ({"kind": "trees", "subtrees": True}, "", "(1 a)"),
    ({"kind": "trees", "subtrees": True}, "", "(1 a)\n"),
    ({"kind": "senses"}, "", "0\tan a\n"),
]


@pytest.mark.parametrize(("config", "head", "pattern"), EXAMPLES)
def test_readers_of_examples_grow_with_the_file(
    config: dict[str, Any], head: str, pattern: str, tmp_path: Path, sizes: tuple[int, ...]
) -> None:
    path = tmp_path / "examples.data.txt"
    senses = tmp_path / "examples.gold.txt"  # read by one of them: a line for each

    def read(text: str) -> None:
        path.write_text(head + text, encoding="utf-8")
        senses.write_text("0\n" * text.count("\n"), encoding="utf-8")
        for _ in read_examples(path, reader(**config), ExampleStats()):
            pass

    check_growth(lambda: read, partial(fill, pattern), sizes, SECONDS_PER_MEGABYTE_OF_LINES)


@pytest.mark.parametrize("pattern", ["a", "a\n", "\n ", " "])
def test_planning_grows_with_the_file(pattern: str, tmp_path: Path, sizes: tuple[int, ...]) -> None:
    def plan(text: str) -> None:
        plan_shards([make_source(tmp_path, b"\n" + text.encode())], make_config(shard_bytes=65536))

    check_growth(lambda: plan, partial(fill, pattern), sizes, SECONDS_PER_MEGABYTE_OF_LINES)


def test_a_pattern_known_to_blow_up_fails_the_check() -> None:
    quadratic = re.compile("a*b")
    with pytest.raises(AssertionError):
        check_growth(lambda: quadratic.findall, partial(fill, "a"), (8192, 16384))


def test_a_slow_but_steady_function_fails_the_check() -> None:
    def dawdle(text: str) -> None:
        until = time.process_time() + 0.010
        while time.process_time() < until:
            pass

    check_growth(lambda: dawdle, partial(fill, "a"), (1024,), limit=1.0)
    with pytest.raises(AssertionError):
        check_growth(lambda: dawdle, partial(fill, "a"), (1024,), limit=0.010)
