"""What an index is made of: its words, then one index of all parts, in bounded memory.

    in   the vocabulary of a corpus; parts/*, each sorted by word, in the order of the corpus
    out  data/*-KEY.* and uses/KEY-*, as `folder.py` says

Sentences are joined here, part after part. Uses, of which nearly all bytes are, are sorted by word
wherever there are workers, a range of words at a time (`word_range.py`).

Spellings that differ only in case are one word: whoever looks for `bank` wants `Bank`, too. A new
index is complete beside the old one before the manifest, in one step, says that it is the one. Then
the old one's files are removed, and what the new one was made from.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from polyseme.config import build
from polyseme.embedding.corpus_parts import CorpusPart, parts_of
from polyseme.embedding.loading import fingerprint_of
from polyseme.embedding.model_work import environments_of
from polyseme.errors import InputError, PolysemeError, UseIndexError
from polyseme.executors import JobResult, ShardJob
from polyseme.executors.commit import RECEIPTS, Target
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.features.use_features import Syntax
from polyseme.meanings.index.folder import (
    ARTIFACT,
    COUNTS,
    DATA,
    PARTS,
    RANGES,
    USES,
    WORDS,
    IndexFolder,
    RowShape,
    file_names,
    range_file,
)
from polyseme.meanings.index.row_group import IndexPart, shape_of
from polyseme.meanings.index.word_range import HASHES, SHA256, WordRange, plan_ranges, sorting_job
from polyseme.meanings.settings import UseIndexConfig
from polyseme.storage.files import describe_files, publish, scratch_folder, scratch_for, sha256_of
from polyseme.storage.folders import MANIFEST, FileList, check_holds, write_manifest
from polyseme.storage.parquet import ParquetOutput, read_batches, required
from polyseme.storage.records import RecordWriter, map_array
from polyseme.storage.remote_folders import Output, SharedFile
from polyseme.text.corpus import Corpus, damage_explained

_FREQUENT = 1e-3  # the share of all words from which on a word is no content word
_ROWS = 1 << 16
_SCHEMA = pa.schema(required(word=pa.string(), count=pa.int64()))


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


_INTEGER = pa.int64()
_WORDS = pa.schema(
    required(word=pa.string(), count=_INTEGER, uses=_INTEGER, sha256=pa.string(), range=_INTEGER)
)
_PARTS = pa.schema(
    required(shard=_INTEGER, row_group=_INTEGER, first_sentence=_INTEGER, first_value=_INTEGER)
)
_SUBSTITUTES = pa.schema(required(word=pa.string()))


@dataclass(frozen=True)
class Merge:
    """The parts of an index and how they become one."""

    output: Output
    key: str
    parts: Sequence[CorpusPart]
    shape: RowShape
    sort: Callable[[ShardJob, Sequence[WordRange], Target], JobResult]
    """`run_job`, as the user has it: it has ranges of words sorted."""

    @property
    def folder(self) -> Path:
        """Where it is, or is made before it goes to a store."""
        return self.output.folder

    def run(
        self,
        corpus: Corpus,
        words: dict[str, int],
        substitutes: Sequence[str],
        syntax: Syntax | None,
        files: Mapping[str, Mapping[str, Any]],
    ) -> FileList:
        """Write all files, each whole or not at all, from the files of the parts."""
        with self._scratch() as scratch:
            sentences, values = (self._join(scratch, name) for name in ("sentences", "values"))
            numbers = {shard.resolve(): number for number, shard in enumerate(corpus.shards)}
            shards = [numbers[part.shard] for part in self.parts]
            groups = [part.group for part in self.parts]
            places = [shards, groups, sentences, values]
            self._write_table(scratch, "parts", pa.Table.from_arrays(places, schema=_PARTS))
            with RecordWriter(scratch / f"vocabulary-{self.key}") as writer:
                writer.extend(_words_of(corpus))
            table = pa.Table.from_arrays([list(substitutes)], schema=_SUBSTITUTES)
            self._write_table(scratch, "substitutes", table)
            self._write_table(scratch, "syntax", Syntax.as_table(syntax))
            made, columns = self._sort_uses(sentences, len(words), files)
            columns = [list(words), list(words.values()), *columns]
            self._write_table(scratch, "words", pa.Table.from_arrays(columns, schema=_WORDS))
        found = FileList(describe_files(self.folder, file_names(self.key)))
        found.add(made)  # in a table, where there are very many
        return found

    def _sort_uses(
        self, sentences: list[int], num_words: int, files: Mapping[str, Mapping[str, Any]]
    ) -> tuple[dict[str, Any], list[list[Any]]]:
        """The files of uses by word; of each word how many, their hash, and in which range."""
        table = self.folder / RANGES
        url = self.output.url
        parts = list(zip(self.parts, sentences, strict=True))
        uses, spans = plan_ranges(parts, files, self.shape, num_words, table)
        self.output.keep(RANGES)
        shared = SharedFile(table.resolve(), url, RANGES, sha256_of(table))
        ranges = [
            WordRange(number, uses[first:last], first, shared, self.folder.resolve(), url)
            for number, (first, last) in enumerate(spans)
        ]
        into = self.output.below(USES)
        result = self.sort(sorting_job(self.shape, self.key), ranges, into.target)
        names = [range_file(self.key, each.number) for each in ranges]
        into.fetch([f"{HASHES}/{name}" for name in names], result.files)
        numbers = [number for number, (first, last) in enumerate(spans) for _ in range(first, last)]
        hashes = [
            each.tobytes().hex()
            for name, (first, last) in zip(names, spans, strict=True)
            for each in map_array(into.folder / HASHES / name, SHA256, last - first)
        ]
        made = {f"{USES}/{name}": result.files[name] for name in names}
        return made, [uses.tolist(), hashes, numbers]

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        with scratch_folder(self.folder) as scratch:
            yield scratch
            for path in sorted(scratch.iterdir()):
                publish(path, self.folder / DATA / path.name)

    def _join(self, scratch: Path, name: str) -> list[int]:
        """The records of all parts one after another; where each part's begin."""
        firsts = []
        with RecordWriter(scratch / f"{name}-{self.key}") as writer:
            for part in self.parts:
                firsts.append(writer.count)
                writer.append_file(self.folder / PARTS / f"{part.name}.{name}")
        return firsts

    def _write_table(self, scratch: Path, name: str, table: pa.Table) -> None:
        path = scratch / f"{name}-{self.key}.parquet"
        with ParquetOutput(path, table.schema, compression="zstd") as output:
            output.write(table.columns, rows=_ROWS)


def _words_of(corpus: Corpus) -> Iterator[bytes]:
    with damage_explained(corpus.vocabulary):
        for batch in read_batches(corpus.vocabulary, ["word"], _ROWS):
            yield from (word.encode("utf-8", "surrogatepass") for word in batch["word"].to_pylist())


def finished(
    output: Output, model: str, corpus: Corpus, config: UseIndexConfig, *, may_differ: bool
) -> bool:
    """Whether this very index is there, whole. One of something else is refused."""
    folder = output.folder
    if not (folder / MANIFEST).exists():
        return False
    check_holds(folder, ARTIFACT.name, ARTIFACT.made_by, ARTIFACT.error)  # not a model, say
    try:
        found = IndexFolder.open(folder)
    except PolysemeError:
        if may_differ or (folder / DATA).is_dir():
            return False  # a damaged index: it is made again
        raise
    made_from = found.manifest["model"], found.manifest["corpus"]
    wanted = fingerprint_of(model, config.pooling), sha256_of(corpus.folder / MANIFEST)
    if made_from != wanted or build(UseIndexConfig, found.manifest["settings"]) != config:
        if may_differ:
            return False
        what = next(
            name
            for name, differs in (
                ("another model", made_from[0] != wanted[0]),
                ("another corpus, or of this one as it was", made_from[1] != wanted[1]),
                ("other words or settings", True),
            )
            if differs
        )
        raise UseIndexError(
            f"{found.address} holds an index of {what}. Choose another --out, or add --replace to "
            "rebuild it."
        )
    if not output.is_whole(found.manifest["files"]):
        return False
    _tidy(found, output)
    return True


def write_index(
    output: Output,
    work: IndexPart,
    encoder: ModelUseEncoder,
    corpus: Corpus,
    words: dict[str, int],
    result: JobResult,
    sort: Callable[[ShardJob, Sequence[WordRange], Target], JobResult],
) -> IndexFolder:
    """Make one index of all parts, and the folder an index."""
    folder = output.folder
    output.fetch((name for name in result.files if not name.endswith(".uses")), result.files)
    corpus_hash = sha256_of(corpus.folder / MANIFEST)
    key = hashlib.sha256(f"{work.key}\n{corpus_hash}".encode()).hexdigest()[:16]
    merge = Merge(output, key, parts_of(corpus), shape_of(encoder), sort)
    files = merge.run(corpus, words, encoder.words, encoder.syntax, result.files)
    write_manifest(
        folder,
        ARTIFACT,
        files,
        model=encoder.embedder.fingerprint,
        corpus=corpus_hash,
        key=key,
        settings=work.config.model_dump(mode="json"),
        environments=environments_of(result.counts),
        shape=merge.shape,
        columns=list(work.columns),
        counts={name: result.counts[name] for name in COUNTS},
    )
    output.publish()
    found = IndexFolder.open(folder)
    _tidy(found, output)
    return found


def _tidy(index: IndexFolder, output: Output) -> None:
    """Take away an older index's files, and what this one was made from."""
    for path in sorted(each for top in (DATA, USES) for each in (index.folder / top).glob("*")):
        name = path.relative_to(index.folder).as_posix()
        if path.is_file() and name not in index.manifest["files"]:
            path.unlink()
    output.remove(RECEIPTS, PARTS, WORDS, RANGES, *(f"{USES}/{top}" for top in (RECEIPTS, HASHES)))
