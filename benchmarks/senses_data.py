"""Labelled uses of words, as several data sets have them."""

import ast
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gains import unpacked
from polyseme.embedding.word_embedder import WordEmbedder

GivenUse = tuple[list[str], tuple[int, int]]
"""The words of a sentence, and the use: from, to."""
Pair = tuple[GivenUse, GivenUse, bool]
"""Two uses, and whether they have the same sense."""
Pairs = tuple[list[Pair], dict[str, list[int]]]
"""All pairs, and the numbers of those in each part."""


@dataclass(frozen=True)
class LabelledUse:
    """A use with the sense a person gave it."""

    words: list[str]
    span: tuple[int, int]
    word: str
    sense: str
    is_train: bool


def read_coarsewsd(folder: Path) -> Iterator[LabelledUse]:
    root = next(path for path in folder.rglob("CoarseWSD-20") if path.is_dir())
    for word in sorted(path for path in root.iterdir() if path.is_dir()):
        for part in ("train", "test"):
            lines = (word / f"{part}.data.txt").read_text("utf-8").rstrip("\n").split("\n")
            senses = (word / f"{part}.gold.txt").read_text("utf-8").split()
            for line, sense in zip(lines, senses, strict=True):
                at, text = line.split("\t")
                yield LabelledUse(
                    text.split(), (int(at), int(at) + 1), word.name, sense, part == "train"
                )


def read_senseval(folder: Path) -> Iterator[LabelledUse]:
    """Every second instance of each sense is for training: there is no official split."""
    for path in sorted(folder.rglob("*.pos")):
        seen: Counter[str] = Counter()
        for block in path.read_text("utf-8", "replace").split("<instance ")[1:]:
            sense = re.search(r'senseid="([^"]*)"', block)
            head = re.search(r"<head>.*?</head>", block, re.S)
            if not sense or not head:
                continue
            before, after = (_plain(block[: head.start()]), _plain(block[head.end() :]))
            target = _plain(head[0])
            seen[sense[1]] += 1
            words = [*before, *target, *after]
            span = (len(before), len(before) + len(target))
            if target and len(words) <= 200:
                yield LabelledUse(words, span, path.stem, sense[1], bool(seen[sense[1]] % 2))


def _plain(block: str) -> list[str]:
    return re.findall(r"<wf[^>]*>([^<]+)</wf>", block)


def read_sememe(folder: Path) -> Iterator[LabelledUse]:
    """Words with at least 40 uses and two senses; every second use of a sense is for training."""
    path = next(folder.rglob("dataset.txt"))
    found = [
        ast.literal_eval(line) for line in path.read_text("utf-8").splitlines() if line.strip()
    ]
    by_word: dict[str, list[Any]] = defaultdict(list)
    for each in found:
        by_word[each["target_word"]].append(each)
    for word, uses in sorted(by_word.items()):
        senses = ["/".join(sorted(use["sense"])) for use in uses]
        counts = Counter(senses)
        enough = {sense for sense, count in counts.items() if count >= 2}
        if len(uses) < 40 or len(enough) < 2:
            continue
        seen: Counter[str] = Counter()
        for use, sense in zip(uses, senses, strict=True):
            if sense not in enough:
                continue
            seen[sense] += 1
            at = use["target_position"]
            words = [word if w == "<target>" else w for w in use["context"]]
            yield LabelledUse(words, (at, at + 1), word, sense, bool(seen[sense] % 2))


def read_wic(data: Path, scratch: Path, embedder: WordEmbedder) -> Pairs:
    folder = unpacked(data, "pairs-en", scratch)
    pairs: list[Pair] = []
    split: dict[str, list[int]] = {}
    for part, name in (("train", "train"), ("dev", "validation")):
        lines = next(folder.rglob(f"wic/{name}.tsv")).read_text("utf-8").splitlines()
        split[part] = []
        for line in lines[1:]:
            _, _, one, two, start1, start2, end1, end2, label = line.split("\t")
            split[part].append(len(pairs))
            first = _at(embedder, one, int(start1), int(end1))
            second = _at(embedder, two, int(start2), int(end2))
            pairs.append((first, second, label == "1"))
    return pairs, split


def read_mcl(data: Path, scratch: Path, embedder: WordEmbedder, language: str) -> Pairs:
    """English has a training part; for Chinese the development part stands for it."""
    folder = unpacked(data, "mcl-wic", scratch)
    both = f"{language}-{language}"
    parts = {"train": f"training.{both}", "dev": f"dev.{both}", "test": f"test.{both}"}
    if language != "en":
        parts = {"train": f"dev.{both}", "test": f"test.{both}"}
    pairs: list[Pair] = []
    split: dict[str, list[int]] = {}
    for part, name in parts.items():
        rows = json.loads(next(folder.rglob(f"{name}.data")).read_text("utf-8"))
        gold = json.loads(next(folder.rglob(f"{name}.gold")).read_text("utf-8"))
        tags = {row["id"]: row["tag"] == "T" for row in gold}
        split[part] = []
        for row in rows:
            uses = [_at(embedder, row[f"sentence{n}"], int(row[f"start{n}"]), int(row[f"end{n}"]))
                    for n in (1, 2)]  # fmt: skip
            split[part].append(len(pairs))
            pairs.append((*uses, tags[row["id"]]))
    return pairs, split


def _at(embedder: WordEmbedder, text: str, start: int, end: int) -> GivenUse:
    """The words of a text as one sentence, and those that a span of characters touches."""
    normalized, length = embedder.normalize(text), end - start
    if normalized[start:end] != text[start:end]:
        start = max(0, normalized.find(text[start:end]))
        end = start + length
    found = embedder.preprocessor.split_words(normalized)
    touched = [n for n, (at, word) in enumerate(zip(found.starts, found.words, strict=True))
               if at < end and at + len(word) > start]  # fmt: skip
    touched = touched or [0]
    return found.words, (touched[0], touched[-1] + 1)
