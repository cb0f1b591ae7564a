"""A corpus's vocabulary in, the words whose uses an index has out: each with its count, sorted.

Spellings that differ only in case are one word: whoever looks for `bank` wants `Bank`, too.
"""

from collections import Counter
from pathlib import Path

import pyarrow as pa

from polyseme.errors import InputError
from polyseme.meanings.settings import UseIndexConfig
from polyseme.storage.files import scratch_for
from polyseme.storage.parquet import read_batches
from polyseme.storage.parquet_writer import ParquetOutput
from polyseme.text.corpus import Corpus, damage_explained

_FREQUENT = 1e-3  # the share of all words from which on a word is no content word
_ROWS = 1 << 16
_SCHEMA = pa.schema(
    [
        pa.field("word", pa.string(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
    ]
)


def choose_words(corpus: Corpus, config: UseIndexConfig) -> dict[str, int]:
    """Words and their counts in the corpus, by word; memory grows with the vocabulary."""
    counts: Counter[str] = Counter()
    with damage_explained(corpus.vocabulary):
        for batch in read_batches(corpus.vocabulary, ["word", "count"], _ROWS):
            pairs = zip(batch["word"].to_pylist(), batch["count"].to_pylist(), strict=True)
            for word, count in pairs:
                counts[word.casefold()] += count
    if config.words:
        return _named(corpus, config, counts)
    most = _FREQUENT * counts.total()
    found = {
        word: count
        for word, count in sorted(counts.items())
        if config.min_uses <= count <= most and any(map(str.isalpha, word))
    }
    if not found:
        raise InputError(
            f"{corpus.folder} has no content word with at least {config.min_uses:,} uses. Lower "
            "--min-uses, or name the words with --words."
        )
    return found


def _named(corpus: Corpus, config: UseIndexConfig, counts: Counter[str]) -> dict[str, int]:
    wanted = sorted({word.casefold() for word in config.words})
    if missing := [word for word in wanted if word not in counts]:
        raise InputError(
            f"{corpus.folder} has no use of {', '.join(map(repr, missing[:3]))}"
            f"{' and others' if len(missing) > 3 else ''}. An index has single words, as they are "
            "in the corpus; `polyseme uses` finds near forms."
        )
    return {word: counts[word] for word in wanted}


def write_words(words: dict[str, int], final: Path) -> None:
    """The table that workers read."""
    with scratch_for(final) as scratch, ParquetOutput(scratch, _SCHEMA) as output:
        columns = [list(words), list(words.values())]
        output.write([pa.array(c, t) for c, t in zip(columns, _SCHEMA.types, strict=True)])
