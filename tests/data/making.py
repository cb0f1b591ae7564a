"""What the tests of this room build by hand: tiny corpora, and batches read back as words."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from text.making import finish_corpus, stats_of

from polyseme.data.batch import BOS, EOS, Batch
from polyseme.data.stream import BatchConfig
from polyseme.data.vocabulary import Vocabulary, VocabularyConfig
from polyseme.text import shards
from polyseme.text.corpus import Corpus
from polyseme.text.shards import ShardWriter
from polyseme.text.word_counts import count_words

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
    count_words(paths, folder / "vocabulary.parquet", threads=1)
    documents = [document for part in parts for document in part]
    finish_corpus(folder, [f"shards/{path.name}" for path in paths], _account(documents))
    return Corpus.open(folder)


def _write(writer: ShardWriter, document: Document) -> None:
    for position, words in enumerate(document.sentences):
        row = (document.name, position, document.held_out, " ".join(words), words, [0] * len(words))
        writer.add((f"{document.name}:{position}:0", *row))


def _account(documents: Sequence[Document]) -> dict[str, Any]:
    def lengths(*, held_out: bool) -> list[int]:
        return [len(s) for d in documents if d.held_out == held_out for s in d.sentences]

    return stats_of(lengths(held_out=False), held_out=lengths(held_out=True))


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


def make_vocabulary(
    words: Sequence[str] = ("the", "of"), letters: str = LETTERS, **values: Any
) -> Vocabulary:
    """A vocabulary with these words and characters, no corpus behind it."""
    config = VocabularyConfig.model_validate(values)
    return Vocabulary(config, pa.array(words, pa.string()), np.ones(len(words), np.int64), letters)


def small_batches(words: int = 30, window: int = 2) -> BatchConfig:
    """Batches small enough that a tiny corpus has many."""
    return BatchConfig(words=words, window=window)


def read_back(batch: Batch, vocabulary: Vocabulary) -> list[tuple[str, ...]]:
    """The words of each row, special tokens too, read off the unicode characters."""
    tokens = {BOS: "<S>", EOS: "</S>"}
    written = []
    for identity, row in zip(batch.ids.tolist(), batch.char_ids.tolist(), strict=True):
        letters = [vocabulary.chars.characters[c - 8] for c in row if c >= 8]
        written.append(tokens.get(identity, "".join(letters)))
    rows = zip(batch.words.tolist(), batch.lengths.tolist(), strict=True)
    return [tuple(written[index] for index in row[:length]) for row, length in rows]
