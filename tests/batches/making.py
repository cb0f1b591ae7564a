"""What the tests of this room build by hand: tiny corpora, and batches read back as words."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from text.making import make_config

from polyseme.batches import END, START, Batch, BatchConfig, Lexicon, LexiconConfig
from polyseme.files import describe_file
from polyseme.text import shards
from polyseme.text.corpus import MANIFEST, Corpus
from polyseme.text.prepare import FORMAT_VERSION
from polyseme.text.shards import ShardWriter
from polyseme.text.vocabulary import count_words

LETTERS = "abcdefghijklmnopqrstuvwxyz.0123456789<>/S"


@dataclass(frozen=True)
class Document:
    """Sentences of words; held out or not."""

    name: str
    sentences: list[list[str]]
    held_out: bool = False


def make_corpus(
    folder: Path, parts: Sequence[Sequence[Document]], *, row_group: int = 10_000
) -> Corpus:
    """A finished corpus with one shard for each part, in row groups of this many sentences."""
    paths = []
    with patch.object(shards, "_ROW_GROUP", row_group):
        for number, part in enumerate(parts):
            folder.mkdir(exist_ok=True)
            paths.append(folder / "shards" / f"part-{number:05}.parquet")
            with ShardWriter(paths[-1], ()) as writer:
                for document in part:
                    _write(writer, document)
    count_words(paths, folder / "vocabulary.parquet", folder / "work", threads=1)
    documents = [document for part in parts for document in part]
    manifest = {
        "preparation": {"format": FORMAT_VERSION},
        "settings": make_config().model_dump(mode="json"),
        "accounting": _account(documents),
        "files": {path.relative_to(folder).as_posix(): describe_file(path) for path in paths},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return Corpus.open(folder)


def _write(writer: ShardWriter, document: Document) -> None:
    for position, words in enumerate(document.sentences):
        row = (document.name, position, document.held_out, " ".join(words), words, [0] * len(words))
        writer.add(row)


def _account(documents: Sequence[Document]) -> dict[str, int]:
    held = [document for document in documents if document.held_out]
    return {
        "sentences": sum(len(d.sentences) for d in documents),
        "held_out_sentences": sum(len(d.sentences) for d in held),
        "words": sum(len(s) for d in documents for s in d.sentences),
        "held_out_words": sum(len(s) for d in held for s in d.sentences),
    }


def numbered_documents(number: int, *, prefix: str = "d") -> list[Document]:
    """Documents of 1 to 5 sentences, each sentence with a word no other has; one in 4 held out."""
    documents = []
    for n in range(number):
        name = f"{prefix}{n}"
        sentences = [
            ["the", f"{name}.{s}", *["word", "of", "it"][: (n + s) % 4]] for s in range(1 + n % 5)
        ]
        documents.append(Document(name, sentences, held_out=n % 4 == 3))
    return documents


def sentences_of(documents: Sequence[Document], *, held_out: bool) -> list[tuple[str, ...]]:
    """The training or the held-out sentences, in order."""
    return [tuple(s) for d in documents if d.held_out == held_out for s in d.sentences]


def make_lexicon(
    words: Sequence[str] = ("the", "of"), alphabet: str = LETTERS, **values: Any
) -> Lexicon:
    """A lexicon with these words and characters, no corpus behind it."""
    config = LexiconConfig.model_validate(values)
    return Lexicon(config, pa.array(words, pa.string()), np.ones(len(words), np.int64), alphabet)


def small_batches(words: int = 30, window: int = 2) -> BatchConfig:
    """Batches small enough that a tiny corpus has many."""
    return BatchConfig(words=words, window=window)


def read_back(batch: Batch, lexicon: Lexicon) -> list[tuple[str, ...]]:
    """The words of each row, marks as they are written, read off the unicode characters."""
    marks = {START: "<S>", END: "</S>"}
    spelt = []
    for identity, row in zip(batch.ids.tolist(), batch.characters.tolist(), strict=True):
        letters = [lexicon.alphabet.characters[c - 8] for c in row if c >= 8]
        spelt.append(marks.get(identity, "".join(letters)))
    rows = zip(batch.words.tolist(), batch.lengths.tolist(), strict=True)
    return [tuple(spelt[place] for place in row[:length]) for row, length in rows]
