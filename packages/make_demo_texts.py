"""Make the texts of the demo packages from the corpora they are taken from.

    python packages/make_demo_texts.py eltec-eng.jsonl.xz   packages/demo-en/polyseme_data/demo-en
    python packages/make_demo_texts.py zh-classical.jsonl.xz packages/demo-zh/polyseme_data/demo-zh

In comes one book a line, as JSON with `year`, `title`, `text` and perhaps `author` or `dynasty`.
Out goes `texts.jsonl.xz`, in the same form, with a `period`. Each book is cut at the end of a
paragraph, so that no book and no period outweighs the others and the package stays small. The same
input gives the same bytes.
"""

import json
import lzma
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TEXTS = "texts.jsonl.xz"


@dataclass(frozen=True)
class Period:
    """The years of a period, and how many characters of each of its books are taken."""

    name: str
    first: int
    last: int
    characters: int


ENGLISH = (Period("1840-1859", 1840, 1859, 262_000), Period("1900-1920", 1900, 1920, 210_000))
CHINESE = (Period("600年以前", -1000, 599, 300_000), Period("1300年以后", 1301, 2000, 158_000))
DYNASTIES = {"Han": "汉", "Jin": "晋", "Liu Song": "南朝宋", "Ming": "明", "Qing": "清"}
# In this edition it has notes of a modern editor between its paragraphs: originals only are taken.
LEFT_OUT = {"官场现形记"}
# The Chinese edition has tags around chapter headings, and spaces where quotation marks were.
_TAG = re.compile(r"</?[a-z]+/?>")
_SPACES = re.compile(r"(?<=[^\x00-\x7f]) +| +(?=[^\x00-\x7f])")


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The books of a packed file of JSON lines."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def cut(text: str, characters: int) -> str:
    """The beginning of a text, up to the last end of a paragraph within so many characters."""
    if len(text) <= characters:
        return text
    return text[:characters].rpartition("\n")[0]


def choose(books: Iterator[dict[str, Any]], periods: tuple[Period, ...]) -> Iterator[str]:
    """A JSON line for each book of these periods that has a text."""
    for book in books:
        period = next((p for p in periods if p.first <= book["year"] <= p.last), None)
        text = book.pop("text").strip()
        if period is None or not text or book["title"] in LEFT_OUT:
            continue
        if periods is CHINESE:
            text = _SPACES.sub("", _TAG.sub("", text))
            book["dynasty"] = DYNASTIES[book["dynasty"]]
        book["title"] = book["title"].removesuffix(": ELTec edition")
        kept = {**book, "period": period.name, "text": cut(text, period.characters)}
        yield json.dumps(kept, ensure_ascii=False) + "\n"


def main() -> None:
    """Read the file, write the folder, say how much it is."""
    source, folder = map(Path, sys.argv[1:])
    periods = CHINESE if source.name.startswith("zh") else ENGLISH
    lines = sorted(choose(read(source), periods), key=lambda line: json.loads(line)["year"])
    folder.mkdir(parents=True, exist_ok=True)
    packed = lzma.compress("".join(lines).encode("utf-8"), preset=9 | lzma.PRESET_EXTREME)
    (folder / TEXTS).write_bytes(packed)
    for period in periods:
        here = [b for b in map(json.loads, lines) if b["period"] == period.name]
        characters = sum(len(book["text"]) for book in here)
        print(f"{period.name}: {len(here)} books, {characters:,} characters")
    print(f"{folder / TEXTS}: {len(packed):,} bytes")


if __name__ == "__main__":
    main()
