"""Examples of choice from a prepared corpus: the true next sentence among others.

    in   a corpus, whose documents have their sentences in order
    out  train.jsonl, dev.jsonl, test.jsonl, as the reader `choices` takes them

The wrong choices are next sentences of other places, so they differ from right ones in nothing but
what goes before. Documents are divided among the files: none is in two. In memory are the sentences
that are written, and one more.
"""

import json
import zlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from polyseme.errors import InputError, StorageError
from polyseme.progress import SILENT, Progress
from polyseme.storage.files import own_folder, scratch_for
from polyseme.storage.parquet import read_batches
from polyseme.text.corpus import Corpus, damage_explained

_NAMES = ("train", "dev", "test")
_FILES = ("test", "dev", *["train"] * 8)  # by a hash of the document's name
_SHORTEST, _LONGEST = 4, 128  # words of a sentence that is used


class _Pair(NamedTuple):
    before: list[str]
    after: list[str]


def write_choices(
    corpus: str | PathLike[str],
    out: str | PathLike[str],
    *,
    number: int = 2_000,
    choices: int = 4,
    seed: int = 1,
    progress: Progress = SILENT,
) -> dict[str, int]:
    """Write up to `number` training examples and an eighth as many of each other kind; returns how
    many each file has. Sentences are drawn from all of the corpus, alike for the same seed."""
    folder = own_folder(Path(out))
    for name in _NAMES:
        if (folder / f"{name}.jsonl").exists():
            raise StorageError(f"{folder} has a {name}.jsonl already. Choose another --out.")
    random = np.random.default_rng(seed)
    most = {name: number if name == "train" else max(choices, number // 8) for name in _NAMES}
    drawn: dict[str, list[_Pair]] = {name: [] for name in most}
    seen = dict.fromkeys(most, 0)
    for file, pair in _pairs(Corpus.open(corpus), progress):
        seen[file] += 1
        if len(drawn[file]) < most[file]:
            drawn[file].append(pair)
        elif (place := int(random.integers(seen[file]))) < most[file]:
            drawn[file][place] = pair  # every pair has the same chance (reservoir sampling)
    for name, pairs in drawn.items():
        if len(pairs) < choices:
            raise InputError(
                f"{corpus} has {len(pairs)} pairs of sentences for {name}.jsonl; {choices} or more "
                "are needed. Take a corpus with more documents of several sentences."
            )
    return {
        name: _write(folder / f"{name}.jsonl", pairs, choices, random)
        for name, pairs in drawn.items()
    }


def _pairs(corpus: Corpus, progress: Progress) -> Iterator[tuple[str, _Pair]]:
    """Every two sentences in a row, and the file that their document is for."""
    document, position = None, -1
    before: list[str] = []
    num_read = 0
    progress.start("Sampling sentences", corpus.read_stats["sentences"])
    for shard in corpus.shards:
        with damage_explained(shard):
            for batch in read_batches(shard, ["document", "position", "words"]):
                for row in batch.to_pylist():
                    is_next = row["document"] == document and row["position"] == position + 1
                    document, position, words = row["document"], row["position"], row["words"]
                    if is_next and _is_fit(before) and _is_fit(words):
                        yield _FILES[zlib.crc32(document.encode()) % 10], _Pair(before, words)
                    before = words
                num_read += batch.num_rows
                progress.update(num_read)


def _is_fit(words: list[str]) -> bool:
    return _SHORTEST <= len(words) <= _LONGEST


def _write(path: Path, pairs: list[_Pair], choices: int, random: np.random.Generator) -> int:
    written = 0
    with scratch_for(path) as scratch, scratch.open("w", encoding="utf-8", newline="\n") as stream:
        for number, pair in enumerate(pairs):
            shown = _wrong_choices(pairs, number, choices - 1, random)
            if len(shown) < choices - 1:
                continue
            label = int(random.integers(choices))
            shown.insert(label, pair.after)
            told = {"text": pair.before, "choices": shown, "label": label}
            stream.write(json.dumps(told, ensure_ascii=False) + "\n")
            written += 1
    return written


def _wrong_choices(
    pairs: list[_Pair], number: int, wanted: int, random: np.random.Generator
) -> list[list[str]]:
    """Next sentences of other places, no two of the same words: "Yes, sir." may be right twice."""
    others = len(pairs) - 1
    # A step of 1 to N - 1 never leads back to this pair. Twice as many as needed: some are alike.
    steps = 1 + random.choice(others, min(others, 2 * wanted), replace=False)
    found = {tuple(pairs[number].after): [""]}
    for step in steps:
        after = pairs[(number + int(step)) % len(pairs)].after
        found.setdefault(tuple(after), after)
    return list(found.values())[1 : 1 + wanted]
