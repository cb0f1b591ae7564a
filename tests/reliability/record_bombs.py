"""Files with one record, sentence, word or value beyond its limit, in every format that is read.

Each is made in pieces, never whole in memory, and read in a process with little of it. Between good
neighbours stands one unit that is too large by a factor made by chance.
"""

import bz2
import gzip
import json
import lzma
import random
import resource
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from text.documents import make_pdf
from text.making import looked_into, make_config

from polyseme.limits import LONGEST_LINE
from polyseme.text.formats.marked import LONGEST_SENTENCE
from polyseme.text.formats.markup import DEEPEST, LONGEST_NAME, MAX_NAMES
from polyseme.text.plan import plan_shards
from polyseme.text.prepare import prepare_shard
from polyseme.text.records import LONGEST_VALUE, MAX_PARTS
from polyseme.text.segmenters import load_segmenter
from polyseme.text.settings import InputFormat
from polyseme.text.sources import Compression, Source

MEMORY = 3 << 29  # 1.5 GB, with all that is imported
Pieces = Iterator[bytes]
PACKED: tuple[Compression | None, ...] = (None, None, "gz", "gz", "bz2", "xz", "zst")


@dataclass(frozen=True)
class Shape:
    """A way of being too large. `make` takes a factor over 1 and a source of chance."""

    format: InputFormat
    make: Callable[[float, random.Random], Pieces]
    settings: dict[str, Any] = field(default_factory=dict)


def fill(size: float, chance: random.Random, between: str = " ") -> Pieces:
    """So many bytes of made-up words, as well packed as text is at best."""
    words = ["".join(chance.choices("abcdefghij", k=chance.randint(1, 9))) for _ in range(2_000)]
    block = (between.join(words) + between).encode()
    for begin in range(0, int(size), len(block)):
        yield block[: int(size) - begin]


def around(before: str, middle: Pieces, after: str) -> Pieces:
    yield before.encode()
    yield from middle
    yield after.encode()


def long(before: str, after: str, limit: int = LONGEST_LINE, between: str = " ") -> Any:
    """Something with too much text in one place."""
    return lambda factor, chance: around(before, fill(factor * limit, chance, between), after)


def many(before: str, unit: Callable[[int], str], number: int, after: str) -> Any:
    """Something with too many parts."""

    def make(factor: float, _: random.Random) -> Pieces:
        block: list[str] = []
        yield before.encode()
        for each in range(int(factor * number)):
            block.append(unit(each))
            if len(block) == 1_000:
                yield "".join(block).encode()
                block.clear()
        yield "".join([*block, after]).encode()

    return make


def word_line(form: str, lemma: str = "_") -> str:
    return f"1\t{form}\t{lemma}" + "\t_" * 7 + "\n"


GOOD_WORD = word_line("good") + "\n"
LARGE = "x" * 100_000
JSON_GOOD = '{"text": "good", "id": "g", "year": "1"}\n'
PAGE = ("<html><body><p>good</p>", "</body></html>")
TEI = ("<TEI><text><p>good</p>", "</text></TEI>")
DOCX = ("<d><body><p><r><t>good</t></r></p>", "</body></d>")
META: dict[str, Any] = {"meta": ("year",)}
ID: dict[str, Any] = {"id_column": "id"}
LEMMA: dict[str, Any] = {"word_attributes": ("lemma",)}


def in_elements(
    kind: InputFormat, first: str, last: str, paragraph: tuple[str, str]
) -> list[Shape]:
    """What all formats with elements must withstand."""
    begin, end = paragraph
    return [
        Shape(kind, long(first + begin, end + last)),
        Shape(kind, many(first + begin, lambda n: f"w{n}<br/>", MAX_PARTS, end + last)),
        Shape(kind, long(f'{first}<p a="', f'">one</p>{last}', 2 * LONGEST_LINE)),
        Shape(kind, many(first, lambda n: f"<a{n}>b</a{n}>", MAX_NAMES, last)),
        Shape(kind, many(first, lambda n: f'<a b{n}="c">b</a>', MAX_NAMES, last)),
        Shape(kind, long(f"{first}<a", f">b</a>{last}", 100 * LONGEST_NAME, "")),
        Shape(kind, many(first, lambda _: "<q>", DEEPEST, last)),
    ]


SHAPES = {
    "text": [
        Shape("text", long("good\n", "\ngood\n"), {"layout": layout})
        for layout in ("articles", "wrapped", "lines", "unwrapped")
    ]
    + [Shape("text", long("good\n", "\ngood\n", between="")), Shape("text", long("", ""))],
    "jsonl": [
        Shape("jsonl", long(JSON_GOOD + '{"text": "', '"}\n' + JSON_GOOD)),
        Shape("jsonl", long('{"text": "bad", "id": "', '"}\n' + JSON_GOOD, LONGEST_VALUE), ID),
        Shape("jsonl", long('{"text": "bad", "year": "', '"}\n' + JSON_GOOD, LONGEST_VALUE), META),
        Shape("jsonl", many('{"text": [', lambda _: "[],", 1 << 20, "[]]}\n" + JSON_GOOD)),
    ],
    "csv": [
        Shape("csv", long('text,year\ngood,1\n"', '",2\ngood,3\n')),
        Shape("csv", many('text\ngood\n"', lambda _: "\n", MAX_PARTS, "good\n")),
        Shape("csv", long("text,year\ngood,1\nbad,", "\ngood,3\n", LONGEST_VALUE), META),
        Shape("tsv", long("text\tyear\ngood\t1\n", "\t2\ngood\t3\n")),
    ],
    "conllu": [
        Shape("conllu", many(GOOD_WORD, lambda n: word_line(f"w{n}"), LONGEST_SENTENCE + 1, "\n"
                             + GOOD_WORD)),
        Shape("conllu", many(GOOD_WORD, lambda _: word_line(LARGE), 90, "\n" + GOOD_WORD)),
        Shape("conllu", many(GOOD_WORD, lambda _: word_line("w", LARGE), 90, "\n" + GOOD_WORD),
              LEMMA),
        Shape("conllu", long(f"{GOOD_WORD}# newdoc id = ", f"\n{GOOD_WORD}", LONGEST_VALUE)),
        Shape("conllu", long(f"{GOOD_WORD}# year = ", f"\n{GOOD_WORD}", LONGEST_VALUE), META),
        Shape("conllu", many("x\n", lambda n: f"# key{n} = {LARGE}\n", 100, "\n" + GOOD_WORD)),
        Shape("conllu", long(GOOD_WORD + "1\t", "\t_" * 8 + "\n\n" + GOOD_WORD)),
    ],
    "vertical": [
        Shape("vertical", many("<s>\ngood\n</s>\n<s>\n", lambda _: f"{LARGE}\n", 90, "</s>\n")),
        Shape("vertical", many("", lambda _: f"w\t{LARGE}\n", 90, "</s>\n"), LEMMA),
        Shape("vertical", long('<s>\ngood\n</s>\n<text id="', '">\nw\n', LONGEST_VALUE)),
        Shape("vertical", long('<text year="', '">\nw\n', LONGEST_VALUE), META),
        Shape("vertical", long("<s>\ngood\n", "\n</s>\n")),
    ],
    "tei": [
        *in_elements("tei", *TEI, ("<p>", "</p>")),
        Shape("tei", long("<TEI><teiHeader><year>", "</year></teiHeader><p>b</p></TEI>",
                          LONGEST_VALUE), META),
    ],
    "html": [
        # libxml2 cuts long names itself.
        *(each for n, each in enumerate(in_elements("html", *PAGE, ("<p>", "</p>"))) if n != 5),
        Shape("html", long('<meta name="year" content="', f'">{"".join(PAGE)}', LONGEST_VALUE),
              META),
    ],
    "epub": in_elements("epub", *PAGE, ("<p>", "</p>")),
    "docx": in_elements("docx", *DOCX, ("<p><r><t>", "</t></r></p>")),
    "parquet": [
        Shape("parquet", long("", "")),
        Shape("parquet", long("", "", LONGEST_VALUE), META),
    ],
    "pdf": [Shape("pdf", long("", ""))],
}  # fmt: skip
"""By format. A test holds the list against the formats there are."""


def write(path: Path, shape: Shape, packing: Compression | None, pieces: Pieces) -> Source:
    """The file, made a piece at a time."""
    match shape.format:
        case "parquet":
            large = b"".join(pieces).decode()
            values = {"text": ["good", large, "good"], "year": ["1", "2", "3"]}
            if shape.settings:
                values = {"text": ["good", "bad", "good"], "year": ["1", large, "3"]}
            pq.write_table(pa.table(values), path)
        case "pdf":  # a paragraph that goes on from page to page
            line = b"".join(pieces).decode()[:4_000]
            path.write_bytes(make_pdf([[line] * 100] * 24))
        case "epub" | "docx":
            write_archive(path, shape.format, pieces)
        case _:
            with open_packed(path, packing) as stream:
                for piece in pieces:
                    stream.write(piece)
    return Source(path, "input", shape.format, packing, path.stat().st_size, "articles")


def open_packed(path: Path, packing: Compression | None) -> Any:
    match packing:
        case "gz":
            return gzip.open(path, "wb", 1)
        case "bz2":
            return bz2.open(path, "wb", 1)
        case "xz":
            return lzma.open(path, "wb", preset=0)
        case "zst":
            return pa.CompressedOutputStream(path, "zstd")
        case None:
            return path.open("wb")


def write_archive(path: Path, kind: str, pieces: Pieces) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        name = "word/document.xml"
        if kind == "epub":
            name = "a.xhtml"
            root = '<c><rootfiles><rootfile full-path="book.opf"/></rootfiles></c>'
            archive.writestr("META-INF/container.xml", root)
            item, ref = f'<item id="a" href="{name}"/>', '<itemref idref="a"/>'
            archive.writestr("book.opf", f"<package>{item}<spine>{ref}</spine></package>")
        with archive.open(name, "w") as member:
            for piece in pieces:
                member.write(piece)


def cases(number: int, seed: int, slow: int) -> list[tuple[str, int, Compression | None, float]]:
    """So many, each format as often as the others but PDF, of which there are `slow`."""
    chance = random.Random(seed)
    kinds = [kind for kind in SHAPES if kind != "pdf"]
    chosen = [(kinds[i % len(kinds)], i // len(kinds)) for i in range(number - slow)]
    return [
        (kind, turn % len(SHAPES[kind]), chance.choice(PACKED), chance.uniform(1.01, 1.5))
        for kind, turn in [*chosen, *[("pdf", 0)] * slow]
    ]


def read(case: tuple[str, int, Compression | None, float], folder: Path) -> dict[str, Any]:
    """What came of one file: its counts, its reasons, and the most memory there was."""
    kind, number, packing, factor = case
    shape = SHAPES[kind][number]
    packing = None if shape.format in ("epub", "docx", "parquet", "pdf") else packing
    folder.mkdir()
    source = write(folder / "input", shape, packing, shape.make(factor, random.Random(7)))
    config = make_config(**shape.settings)
    began = time.process_time()
    counts = {"read": 0, "kept": 0, "blank": 0, "quarantined": 0}
    reasons: dict[str, int] = {}
    for batch in plan_shards(looked_into([source], config), config):
        (folder / batch.name).mkdir()
        found, _ = prepare_shard(config, batch, folder / batch.name)
        counts = {name: counts[name] + found[name] for name in counts}
        for reason, units in found["quarantine_reasons"].items():
            reasons[reason] = reasons.get(reason, 0) + units
    return {"case": case, **counts, "reasons": reasons, "seconds": time.process_time() - began}


def main(number: str, seed: str, slow: str, folder: str) -> None:
    """A line of JSON for each, so that a death is dated."""
    load_segmenter("whitespace", "en")
    load_segmenter("spacy", "en")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for i, case in enumerate(cases(int(number), int(seed), int(slow))):
        place = Path(folder) / str(i)
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins again
        told = read(case, place)
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        peak = 1024 * next(int(line.split()[1]) for line in status.split("\n") if "VmHWM" in line)
        print(json.dumps({**told, "peak": peak}), flush=True)
        for path in sorted(place.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
