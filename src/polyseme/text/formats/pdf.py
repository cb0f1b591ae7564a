"""PDF: the text of its pages as paragraphs. A file is a document.

A PDF has no paragraphs, only letters at places. Lines are joined as those of a hard-wrapped text;
a short line ends a paragraph. Words divided at a line's end are joined, and so is a sentence that
goes on over the page. Ligatures (ﬁ) and radicals that fonts give for characters (⾏ for 行) become
the letters they stand for. Headers, footers and page numbers are left alone: they come as
paragraphs of their own.
"""

import contextlib
import importlib.util
import re
import subprocess
import threading
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polyseme.errors import MissingExtraError
from polyseme.limits import LONGEST_LINE, open_regular, parse_json
from polyseme.processes import python_process
from polyseme.text.plan import Piece
from polyseme.text.preprocessing import FINAL_MARKS
from polyseme.text.records import (
    Blank,
    ReadItem,
    ReadItems,
    Record,
    RecordSize,
    Rejected,
    quote,
)
from polyseme.text.segmenters.patterns import SPACELESS
from polyseme.text.settings import CorpusConfig

PATIENCE = 60
"""Seconds that one page may take."""
_LIGATURE = re.compile("[\ufb00-\ufb06\u2e80-\u2fd5]")
# Radicals of Unicode's supplement that NFKC leaves as they are (EquivalentUnifiedIdeograph.txt).
_RADICALS = str.maketrans(
    "⺠⻄⻅⻆⻉⻋⻓⻔⻘⻙⻚⻛⻜⻝⻢⻣⻤⻥⻦⻧⻨⻩⻪⻬⻮⻰",
    "民西见角贝车长门青韦页风飞食马骨鬼鱼鸟卤麦黄黾齐齿龙",
)
_DIVIDED = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
_SHORT = 0.75
"""A line shorter than this share of a page's long lines ends a paragraph."""


_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?")
_CLOSING = "\"'”’»)]」』）】"
_LONGEST_ANSWER = 6 * LONGEST_LINE + 100  # a character in JSON takes up to six bytes


class _UnreadableError(Exception):
    """The PDF cannot be read further: a reason for the quarantine, and its detail."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail
        super().__init__(reason)


def read(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per paragraph. A scan, or a file that needs a password, is rejected by that name."""
    if importlib.util.find_spec("pypdf") is None:
        raise MissingExtraError.of("pypdf", extra="documents", purpose="Reading PDF")
    meta: tuple[str | None, ...] = (None,) * len(config.meta)
    number, num_blank = 0, 0
    joiner = _PageJoiner()

    def items(paragraphs: list[str]) -> Iterator[ReadItem]:
        nonlocal number
        for text in paragraphs:
            is_too_long = len(text) > LONGEST_LINE
            rejected = Rejected(number, "line-too-long", quote(text))
            yield rejected if is_too_long else Record(piece.source.name, text, number, meta)
            number += 1

    fault = None
    try:
        for name, value in _answers(piece.source.path):
            if name == "info":
                meta = tuple(_described(value, key) for key in config.meta)
            elif name == "bad_page":
                yield from items(joiner.finish())
                yield Rejected(number, "broken-page", "", value)
                number += 1
            else:
                num_blank += not value.strip()
                yield from items(joiner.add_page(value))
    except _UnreadableError as error:
        fault = error
    yield from items(joiner.finish())
    if fault is not None:
        yield Rejected(number, fault.reason, "", fault.detail)
    elif num_blank and not number:
        detail = "no page has text: a scan, or letters drawn as shapes; make text of it by OCR"
        yield Rejected(0, "no-text-layer", "", detail, units=num_blank)
        num_blank = 0
    if num_blank:
        yield Blank(num_blank)
    piece.source.on_read(piece.size)


def _described(info: Any, key: str) -> str | None:
    """What a PDF says of itself; its date as 2020-01-31."""
    value = info.get(key)
    found = _DATE.match(value) if key == "date" and value else None
    return "-".join(filter(None, found.groups())) if found else value


class _PageJoiner:
    """Lines of pages become paragraphs; one may go on over a page's end."""

    def __init__(self) -> None:
        self._held: list[str] = []  # fragments of the paragraph that is not finished
        self._size = RecordSize()

    def add_page(self, page: str) -> list[str]:
        """The paragraphs that are finished with this page."""
        lines = [line.strip() for line in normalize_letters(page).strip().splitlines()]
        widths = sorted(_width(line) for line in lines if line)
        long = _SHORT * widths[int(0.9 * len(widths))] if widths else 0
        done: list[str] = []
        # Does it begin inside the sentence with which the last one ended?
        first = next(filter(None, lines), "")[:1]
        is_end = not (first.islower() or SPACELESS.match(first))
        for line in lines:
            if self._held and (is_end or not line):
                done += self.finish()
            if line:
                self._add(line)
                is_end = _width(line) < long
        text = self._held[-1].rstrip(_CLOSING) if self._held else ""
        if is_end or text.endswith(tuple(FINAL_MARKS)):
            done += self.finish()
        return done

    def finish(self) -> list[str]:
        """The paragraph that was held, if there is one."""
        text = "".join(self._held)
        self._held.clear()
        self._size.clear()
        return [text] if text else []

    def _add(self, line: str) -> None:
        if self._size.is_exceeded:  # it is rejected at its end, however far that is
            return
        self._size.add(len(line))
        if self._held:
            last = self._held[-1]
            if _DIVIDED.search(last) and line[0].islower():
                self._held[-1] = last[:-1]
            elif not (SPACELESS.match(last[-1]) and SPACELESS.match(line)):
                self._held.append(" ")
        self._held.append(line)


def normalize_letters(text: str) -> str:
    """Ligatures and radicals as the letters they stand for; all else as it is."""
    plain = _LIGATURE.sub(lambda found: unicodedata.normalize("NFKC", found.group()), text)
    return plain.translate(_RADICALS)


def _width(line: str) -> int:
    """How wide a line is on the page, where a Chinese character takes the room of two letters."""
    return len(line) + len(SPACELESS.findall(line))


def _answers(path: Path) -> Iterator[tuple[str, Any]]:
    """What a process with limits tells: info, then each page's text, or what is wrong with it."""
    with open_regular(path) as stream:
        child = subprocess.Popen(  # noqa: S603 - this same interpreter
            python_process("polyseme.text.formats.pdf_child", "main"),
            stdin=stream,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    assert child.stdout is not None
    with contextlib.closing(child.stdout):
        try:
            while answer := _next_answer(child):
                name, value = next(iter(answer.items()))
                if name == "end":
                    return
                if name == "fault":
                    raise _UnreadableError(value, answer["detail"])
                yield name, value
        finally:
            child.kill()
            child.wait()
    raise _UnreadableError("broken-file", "the rest of the file: parsing it crashed")


def _next_answer(child: "subprocess.Popen[bytes]") -> dict[str, Any]:
    assert child.stdout is not None
    is_late = threading.Event()

    def stop() -> None:
        is_late.set()
        child.kill()

    watchdog = threading.Timer(PATIENCE, stop)
    watchdog.start()
    try:
        line = child.stdout.readline(_LONGEST_ANSWER)
    finally:
        watchdog.cancel()
    if is_late.is_set():
        raise _UnreadableError("broken-file", f"a page took more than {PATIENCE} seconds")
    try:
        return dict(parse_json(line.decode("ascii"))) if line else {}
    except ValueError as error:
        raise _UnreadableError("broken-file", str(error)) from error
