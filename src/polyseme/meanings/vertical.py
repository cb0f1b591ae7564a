"""A corpus as vertical text: a word a line, its attributes and its sense in columns.

    in   a corpus; the senses that were kept beside it
    out  FILE.vrt, as CWB, CQPweb, Sketch Engine and NoSketch Engine read it

    <text id="d1" year="1850">
    <s id="d1:0">
    bank    bank    NOUN    river

A word of no known sense, or without a value, has `__UNDEF__`, which is CWB's own. Of a sense of
several words each has it. Where a sentence's document changes, another text begins.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from polyseme.meanings.concordance.conditions import Condition, columns_of, rows_meeting
from polyseme.meanings.concordance.kept_senses import KeptSenses, places_in
from polyseme.meanings.concordance.search import ShardGroups, all_groups
from polyseme.meanings.concordance.sentence_table import DOCUMENT, Integers, TextColumn
from polyseme.progress import SILENT, Progress
from polyseme.storage.files import disk_faults_explained, scratch_for
from polyseme.storage.parquet import ParquetReader
from polyseme.text.corpus import Corpus, damage_explained, words_of
from polyseme.text.shards import GroupWords, ShardWords

UNDEFINED = "__UNDEF__"
_SPACES = dict.fromkeys(map(ord, "\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), " ")


@dataclass
class VerticalCounts:
    """What was written."""

    words: int = 0
    sentences: int = 0
    texts: int = 0
    senses: int = 0


def write_vertical(
    corpus: Corpus,
    senses: Sequence[KeptSenses],
    where: Condition,
    path: Path,
    progress: Progress = SILENT,
) -> VerticalCounts:
    """The sentences that meet a condition, to a file that is there whole or not at all."""
    parts, counts = all_groups(corpus), VerticalCounts()
    places = _all_places(senses)
    progress.start("Writing", len(parts))
    with (
        disk_faults_explained(path.parent),
        scratch_for(path) as scratch,
        scratch.open("w", encoding="utf-8", newline="\n") as file,
    ):
        last: str | None = None
        for done, part in enumerate(parts, start=1):
            for document, facts, lines, num_words, num_senses in _sentences(
                corpus, part, places, where
            ):
                if document != last:
                    file.write("</text>\n" if last is not None else "")
                    file.write(f"<text id={_quoted(document)}{facts}>\n")
                    last, counts.texts = document, counts.texts + 1
                file.writelines(lines)
                counts.words += num_words
                counts.sentences += 1
                counts.senses += num_senses
            progress.update(done)
        file.write("</text>\n" if last is not None else "")
    return counts


def encode_command(corpus: Corpus, path: Path, *, has_senses: bool) -> str:
    """How CWB compiles it."""
    attributes = [*corpus.config.attributes, *(["sense"] if has_senses else [])]
    words = "".join(f" -P {name}" for name in attributes)
    facts = "".join(f"+{name}" for name in ("id", *corpus.config.meta))
    name = path.stem.lower()
    return (
        f"cwb-encode -c utf8 -xsB -d {name}.cwb -R registry/{name} -f {path}{words} "
        f"-S s:0+id -S text:0{facts} && cwb-make -r registry {name.upper()}"
    )


def _all_places(senses: Sequence[KeptSenses]) -> tuple[Integers, list[str]]:
    """(N, 6): the places of all senses, and the number of each one's name."""
    names = [name for each in senses for name in each.senses]
    found = [places for each in senses for places in each.senses.values()]
    rows = [np.insert(places, 5, n, axis=1) for n, places in enumerate(found)]
    return np.concatenate([np.empty((0, 6), np.int64), *rows]), names


def _sentences(
    corpus: Corpus, part: ShardGroups, senses: tuple[Integers, list[str]], where: Condition
) -> Iterator[tuple[str, str, list[str], int, int]]:
    config = corpus.config
    facts = tuple(dict.fromkeys([DOCUMENT, *config.meta, *columns_of(where)]))
    columns = [*facts, "sentence_id"]
    places, names = senses
    with damage_explained(part.path), ParquetReader(part.path, list(columns)) as reader:
        shard = ShardWords(words_of(part.path))
        for group in part.groups:
            table, words = reader.read_group(group), shard[group]
            values = {n: TextColumn.from_arrow(table[n].chunks) for n in facts}
            offsets = words.offsets
            each = [_cells(words), *(_cells(words.attribute(name)) for name in config.attributes)]
            if names:
                each.append(_senses(places, names, (part.shard, group), offsets))
            texts = {n: values[n].take(slice(None)) for n in facts}
            ids = table["sentence_id"].to_pylist()
            bounds = offsets.tolist()
            for row in np.flatnonzero(rows_meeting(where, values)).tolist():
                begin, end = bounds[row : row + 2]
                own = [column[begin:end] for column in each]
                told = "".join(f" {name}={_quoted(texts[name][row] or '')}" for name in config.meta)
                lines = ["\t".join(cells) + "\n" for cells in zip(*own, strict=True)]
                head = f"<s id={_quoted(ids[row])}>\n"
                has_sense = sum(cell != UNDEFINED for cell in own[-1]) if names else 0
                document = texts[DOCUMENT][row] or ""
                yield document, told, [head, *lines, "</s>\n"], end - begin, has_sense


def _senses(
    places: Integers, names: list[str], place: tuple[int, int], offsets: Integers
) -> list[str]:
    """The sense of each word of a row group."""
    found = [UNDEFINED] * int(offsets[-1])
    for row, begin, end, number in places_in(places, place).tolist():
        first = int(offsets[row])
        found[first + begin : first + end] = [_cell(names[number])] * (end - begin)
    return found


def _cells(words: GroupWords) -> list[str]:
    spellings = [*map(_cell, words.spell())]
    return [spellings[code] for code in words.codes.tolist()]


def _cell(text: str) -> str:
    return escape(text.translate(_SPACES)) or UNDEFINED


def _quoted(text: str) -> str:
    return quoteattr(text.translate(_SPACES), {"'": "&apos;"})
