"""Which words have an id, and which ids the characters of every word have.

    in   a corpus's `vocabulary.parquet`, held-out text not counted, read piece by piece
    out  a `Vocabulary`, kept beside a model as `vocabulary.parquet` and `characters.parquet`

The most frequent words have ids, so that they can be predicted; all words have characters.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from polyseme.config import Settings, build
from polyseme.data.batch import (
    CODE_POINTS,
    FIRST_ROW,
    FIRST_WORD,
    UNK,
    Batch,
    CharacterKind,
    CharIds,
    CharVocabulary,
    Integers,
    WordTable,
    as_strings,
    code_points,
    encode_words,
    pad,
    utf8_of,
    with_special_tokens,
)
from polyseme.errors import ConfigError, CorpusError
from polyseme.limits import LimitError, parse_json
from polyseme.storage.parquet import read_batches, read_table, write_table
from polyseme.text.corpus import VOCABULARY, Corpus, damage_explained

# Words looked at together, some 20 MB.
_PIECE = 1 << 18
_SCHEMA = pa.schema([("word", pa.string()), ("count", pa.int64())])
_ORDER = [("count", "descending"), ("word", "ascending")]


def frequent_words(vocabulary: Path, number: int, min_count: int) -> Any:
    """At most `number` words with their counts; equal counts in alphabetical order."""
    best = _SCHEMA.empty_table()
    for piece in training_counts(vocabulary):
        enough = piece.filter(pc.greater_equal(piece["count"], min_count))
        best = pa.concat_tables([best, enough]).sort_by(_ORDER).slice(0, number).combine_chunks()
    return best


def frequent_characters(vocabulary: Path, min_count: int) -> str:
    """Characters seen at least `min_count` times, by falling count, then by code point."""
    counts = np.zeros(CODE_POINTS, np.int64)
    for piece in training_counts(vocabulary):
        points, starts = code_points(*utf8_of(as_strings(piece["word"])))
        weights = np.repeat(piece["count"].to_numpy(), np.diff(starts))
        # Weights are summed as floats, exact below 2**53.
        summed = np.bincount(points, weights, CODE_POINTS)
        counts += summed.astype(np.int64)
    seen = np.flatnonzero(counts >= min_count)
    order = seen[np.argsort(-counts[seen], kind="stable")]
    return order.astype("<u4").tobytes().decode("utf-32-le")


def training_counts(vocabulary: Path) -> Any:
    """Tables of (word, count in the training part), words of held-out text alone left out."""
    with damage_explained(vocabulary):
        for piece in read_batches(vocabulary, ["word", "count", "held_out"], _PIECE):
            counts = pc.subtract(piece["count"], piece["held_out"])
            table = pa.Table.from_arrays([piece["word"], counts], schema=_SCHEMA)
            yield table.filter(pc.greater(counts, 0))


CHARACTERS = "characters.parquet"
_SETTINGS = b"polyseme.vocabulary"


class VocabularyConfig(Settings):
    """Which words a model can predict, and how it reads characters."""

    size: int = Field(default=50_000, gt=FIRST_WORD, le=100_000_000)
    """Vocabulary size, including special tokens: the most frequent words of the corpus."""
    min_count: int = Field(default=2, ge=1)
    """Minimum frequency of a word in the training part; rarer words have no id. A word seen once
    teaches its id nothing that its characters do not."""
    characters: CharacterKind = "unicode"
    """How words are spelled: in the characters of the corpus (unicode), in UTF-8 bytes with the ids
    of the published ELMo models (bytes), or not at all: word ids only (none)."""
    max_characters: int = Field(default=50, ge=4, le=1_000)
    """Maximum number of characters or bytes per word, including the markers of its begin and end;
    longer words are truncated."""
    min_character_count: int = Field(default=3, ge=1)
    """Minimum frequency of a Unicode character in the training part; rarer ones are unknown."""


class Vocabulary:
    """Which words have an id, and which ids the characters of every word have."""

    def __init__(
        self, config: VocabularyConfig, words: Any, counts: Integers, characters: str = ""
    ) -> None:
        self.config = config
        self.words: pa.StringArray = words
        """Words with an id, in the order of their ids; the first has id FIRST_WORD."""
        self.counts = counts
        """How often each of `words` occurs in the training part."""
        self.chars = CharVocabulary(config.characters, config.max_characters, characters)

    @classmethod
    def of(cls, corpus: Corpus, config: VocabularyConfig) -> "Vocabulary":
        """The vocabulary these settings ask for, from the training part of a corpus."""
        table = frequent_words(corpus.vocabulary, config.size - FIRST_WORD, config.min_count)
        if not len(table):
            raise CorpusError(
                f"No word of {corpus.folder} occurs {config.min_count} times outside the held-out "
                "documents. Prepare more text, or set vocabulary.min_count=1."
            )
        characters = ""
        if config.characters == "unicode":
            characters = frequent_characters(corpus.vocabulary, config.min_character_count)
        return cls(config, as_strings(table["word"]), table["count"].to_numpy(), characters)

    @property
    def size(self) -> int:
        """How many ids there are, special tokens counted."""
        return FIRST_WORD + len(self.words)

    @property
    def num_characters(self) -> int:
        """How many character ids there are, special ones counted; 0 if none are read."""
        return self.chars.num_characters

    @cached_property
    def special_token_chars(self) -> CharIds:
        """(FIRST_WORD, max_characters) those of the special tokens, in the order of their ids."""
        return self.chars.special_tokens()

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: n for n, word in enumerate(self.words.to_pylist(), start=FIRST_WORD)}

    def ids_of(self, words: Any) -> Integers:
        """The id of each word of an Arrow array, UNK for those without."""
        # A dict that lasts, not Arrow's index_in, which hashes the whole vocabulary at every call:
        # many times the cost of all the rest of a small batch.
        known = self._ids
        ids = (known.get(word, UNK) for word in words.to_pylist())
        return np.fromiter(ids, np.int64, len(words))

    def char_ids_of(self, words: Any) -> CharIds:
        """(number of words, max_characters) of each word of an Arrow array."""
        return self.chars.char_ids(as_strings(words))

    def table_of(self, words: Any) -> WordTable:
        """PAD, BOS, EOS and then these distinct words, all looked up."""
        ids = np.concatenate([np.arange(FIRST_ROW), self.ids_of(words)])
        char_ids = np.concatenate([self.special_token_chars[:FIRST_ROW], self.char_ids_of(words)])
        return WordTable(ids, char_ids, self.chars.char_lengths(char_ids))

    def batch(self, sentences: Sequence[Sequence[str]]) -> Batch:
        """Any sentences as one batch, a row each. Distinct words stand in alphabetical order."""
        lengths = np.array([len(sentence) for sentence in sentences], np.int64)
        encoded = encode_words(sentences)
        order = pc.sort_indices(encoded.dictionary).to_numpy()
        rows = np.empty(len(order), np.int32)
        rows[order] = np.arange(len(order)) + FIRST_ROW
        flat = with_special_tokens(rows[encoded.indices.to_numpy()], lengths)
        lengths += 2
        matrix = pad(flat, np.cumsum(lengths) - lengths, lengths)
        return self.table_of(encoded.dictionary.take(order)).batch(matrix, lengths)

    def save(self, folder: Path) -> None:
        """Write the vocabulary into a folder; the same vocabulary gives the same bytes."""
        metadata = {_SETTINGS: json.dumps(self.config.model_dump(mode="json"), sort_keys=True)}
        table = pa.table({"word": self.words, "count": self.counts})
        table = table.replace_schema_metadata(metadata)
        write_table(table, folder / VOCABULARY)
        if self.config.characters == "unicode":
            characters = pa.array(list(self.chars.characters), pa.string())
            write_table(pa.table({"character": characters}), folder / CHARACTERS)

    @classmethod
    def load(cls, folder: Path) -> "Vocabulary":
        """The vocabulary that was saved into a folder."""
        path = folder / VOCABULARY
        try:
            table = read_table(path, ["word", "count"])
            settings = (table.schema.metadata or {})[_SETTINGS]
            config = build(VocabularyConfig, parse_json(settings.decode()))
            words, counts = as_strings(table["word"]), table["count"].to_numpy()
            _check_vocabulary(words, counts)
            characters = ""
            if config.characters == "unicode":
                path = folder / CHARACTERS
                characters = _read_characters(path)
        except (OSError, pa.ArrowException, ConfigError, KeyError, TypeError, ValueError) as error:
            raise CorpusError(
                f"{path} is missing or not what a model's folder holds: {error}. "
                "Take the whole folder from where it was trained."
            ) from error
        return cls(config, words, counts, characters)


def _check_vocabulary(words: Any, counts: Any) -> None:
    """What an honest one always is: words once each, none of them empty, and whole numbers."""
    if words.null_count or len(pc.unique(words)) != len(words):
        raise LimitError(f"of {len(words):,} words some are missing or there twice")
    if counts.dtype != np.int64:
        raise LimitError(f"counts are {counts.dtype}, not int64")


def _read_characters(path: Path) -> str:
    found = read_table(path, ["character"])["character"]
    if len(found) > CODE_POINTS or pc.max(pc.utf8_length(found)).as_py() != 1:
        raise LimitError(f"its {len(found):,} rows are not one character each")
    return "".join(found.to_pylist())
