"""The beginning of each file, looked at before any work starts.

    in   sources as their names describe them
    out  sources as their first bytes describe them, and what the user should know

A layout that was not stated is detected here. What is no text whatever its name says is passed
over with the reason, and text that does not look like the stated language is said aloud.
"""

import contextlib
import itertools
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from polyseme.errors import InputError
from polyseme.text.preprocessing import FINAL_MARKS
from polyseme.text.segmenters.patterns import SPACELESS
from polyseme.text.settings import CorpusConfig
from polyseme.text.sources import FoundSources, Source
from polyseme.text.streams import BrokenStreamError, encoding_of, read_blocks

_SAMPLE = 1 << 16  # bytes, unpacked
# What people rename to .txt, by the bytes it begins with.
_BINARY = {
    b"%PDF-": "a PDF; unpack it, and leave out --format",
    b"PK\x03\x04": "a zip archive; unpack it",
    b"{\\rtf": "rich text (RTF); save it as plain text",
    b"\xd0\xcf\x11\xe0": "an old Word document; save it as .docx or plain text",
}
_NOT_TEXT = frozenset(("parquet", "pdf", "epub", "docx"))
"""Formats whose first bytes are no letters; their readers say what is wrong with a file."""
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U000323af]")
_LETTER = re.compile(r"[^\W\d_]")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
"""A character in JSON that is all ASCII, as many programs write it."""
_WRITTEN_IN_HAN = {"zh", "ja", "yue", "lzh", "wuu"}
# Lines wrapped by hand or by a typewriter's habit. A longer one is a paragraph; shorter ones are
# verse or lists, where a line end has a meaning.
_SHORTEST, _LONGEST = 40, 100
_FEWEST_LINES = 4


@dataclass(frozen=True, slots=True)
class _Seen:
    """One source after a look at its beginning."""

    source: Source
    is_wrapped: bool
    has_articles: bool
    han_share: float
    """Share of Han characters among the letters; a negative number if there are no letters."""


def sniff(found: FoundSources, config: CorpusConfig) -> tuple[FoundSources, list[str]]:
    """The same files, known better, and what to say of them."""
    passed_over = list(found.passed_over)
    seen: list[_Seen] = []
    for source in found.sources:
        head = _head(source)
        reason = next((what for mark, what in _BINARY.items() if head.startswith(mark)), None)
        if reason is None or source.format in _NOT_TEXT:
            seen.append(_look(source, head, config))
        else:
            passed_over.append((source.name, f"not text but {reason}"))
    if not seen:
        reasons = "".join(f"\n  {name}: {reason}" for name, reason in passed_over[:5])
        raise InputError(f"None of the files is text.{reasons}")
    sources = [one.source for one in seen]
    return FoundSources(sources, passed_over), [
        *_on_empty(sources),
        *_on_layout(seen, config),
        *_on_language(seen, config),
    ]


def _on_empty(sources: Sequence[Source]) -> Iterator[str]:
    """A corpus has fewer documents than files then, which nothing else would explain."""
    empty = [source.name for source in sources if not source.bytes]
    if empty:
        more = ", …" if len(empty) > 1 else ""
        are = "are" if len(empty) > 1 else "is"
        yield f"{len(empty):,} of {len(sources):,} files {are} empty ({empty[0]}{more})."


def _head(source: Source) -> bytes:
    """The first bytes, unpacked; nothing of what cannot be read: its reader counts and says so."""
    head = b""
    with contextlib.suppress(BrokenStreamError, OSError):
        for block in read_blocks(source, 0, min(source.bytes, _SAMPLE), num_probed=0):
            head += block
            if len(head) >= _SAMPLE:
                break
    return head[:_SAMPLE]


def _look(source: Source, head: bytes, config: CorpusConfig) -> _Seen:
    encoding, mark = encoding_of(head[:4], config.encoding)
    text = "" if source.format in _NOT_TEXT else head[mark:].decode(encoding, errors="ignore")
    if source.format == "jsonl":
        text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    letters, han = count_letters(text)
    han_share = han / letters if letters else -1.0
    if source.format != "text":
        return _Seen(source, is_wrapped=False, has_articles=False, han_share=han_share)
    lines = text.split("\n")[:-1] if len(head) == _SAMPLE else text.split("\n")
    grouped = itertools.groupby((line.strip() for line in lines), key=bool)
    paragraphs = [list(group) for is_text, group in grouped if is_text]
    is_wrapped = _is_wrapped(paragraphs)
    layout = config.layout
    if layout == "auto":
        layout = "wrapped" if is_wrapped else "unwrapped"
    has_articles = not is_wrapped and _has_articles(paragraphs)
    return _Seen(replace(source, layout=layout), is_wrapped, has_articles, han_share)


def _is_wrapped(paragraphs: Sequence[Sequence[str]]) -> bool:
    """Whether lines end where the page did, not where a paragraph does.

    Only a line followed by another of the same paragraph can have been wrapped. Of these, most
    have nearly the same length, and most break off within a sentence.
    """
    inner = [line for lines in paragraphs for line in lines[:-1]]
    if len(inner) < _FEWEST_LINES or len(paragraphs) < 2:
        return False
    lengths = [len(line) * (2 if SPACELESS.match(line[-1]) else 1) for line in inner]
    middle = statistics.median(lengths)
    is_even = sum(0.6 * middle <= length <= 1.4 * middle for length in lengths) >= 0.8 * len(inner)
    breaks_off = sum(line[-1] not in FINAL_MARKS for line in inner) >= 0.6 * len(inner)
    return _SHORTEST <= middle <= _LONGEST and is_even and breaks_off


def _has_articles(paragraphs: Sequence[Sequence[str]]) -> bool:
    """Whether blank lines stand between groups of whole paragraphs."""
    longest = max((len(line) for lines in paragraphs for line in lines), default=0)
    several = sum(len(lines) > 1 for lines in paragraphs)
    return len(paragraphs) > 2 and several >= len(paragraphs) / 3 and longest > _LONGEST


def _on_layout(seen: Sequence[_Seen], config: CorpusConfig) -> Iterator[str]:
    plain = [one for one in seen if one.source.format == "text"]
    wrapped = [one.source.name for one in plain if one.is_wrapped]
    if wrapped and config.layout == "auto":
        yield (
            f"{_files(wrapped, len(plain))} hard-wrapped lines: lines up to a blank line are "
            "joined into a paragraph. If each line stands for itself: --layout unwrapped."
        )
    elif wrapped and config.layout != "wrapped":
        yield (
            f"{_files(wrapped, len(plain))} hard-wrapped lines, and with --layout {config.layout} "
            "each line ends a sentence. --layout wrapped joins them."
        )
    articles = [one.source.name for one in plain if one.has_articles]
    if articles and config.layout == "auto":
        yield (
            f"{_files(articles, len(plain))} blank lines between groups of paragraphs. A file is "
            "one document; if blank lines separate documents here: --layout articles."
        )


def count_letters(text: str) -> tuple[int, int]:
    """How many letters a text has, and how many of them are Han characters."""
    return len(_LETTER.findall(text)), len(_HAN.findall(text))


def wrong_script(han_share: float, language: str) -> str:
    """What speaks against the language that was stated; nothing if nothing does.

    `han_share` is that of Han characters among letters, negative where there are none.
    """
    code = language.partition("-")[0].lower()
    if han_share > 0.3 and code not in _WRITTEN_IN_HAN:
        return (
            f"mostly Chinese characters, but --language is {language}: the words will be wrong. "
            "For Chinese: --language zh."
        )
    if 0 <= han_share < 0.02 and code in {"zh", "yue", "lzh", "wuu"}:
        return (
            f"hardly any Chinese characters, but --language is {language}. For English: "
            "--language en."
        )
    return ""


def _on_language(seen: Sequence[_Seen], config: CorpusConfig) -> Iterator[str]:
    told: dict[str, list[str]] = {}
    for one in seen:
        if wrong := wrong_script(one.han_share, config.language):
            told.setdefault(wrong, []).append(one.source.name)
    for wrong, names in told.items():
        yield f"{_files(names, len(seen))} {wrong}"


def _files(names: Sequence[str], of: int) -> str:
    """How many of all files, and one of them by name."""
    if of == 1:
        return f"{names[0]} has"
    verb = "has" if len(names) == 1 else "have"
    return f"{len(names):,} of {of:,} files ({names[0]}{', …' * (len(names) > 1)}) {verb}"
