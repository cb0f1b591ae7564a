"""The most frequent words and characters of a corpus, held-out text not counted.

Both read `vocabulary.parquet` piece by piece: memory does not grow with the vocabulary.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from polyseme.data.char_vocabulary import CODE_POINTS, as_strings, code_points, utf8_of
from polyseme.storage.parquet import read_batches
from polyseme.text.corpus import damage_explained

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
