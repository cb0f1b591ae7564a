"""What the tests of this room build by hand: sources, pieces, settings, whole preparations."""

import bz2
import gzip
import json
import lzma
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from polyseme.config import to_toml
from polyseme.storage.files import describe_files, write_text
from polyseme.storage.folders import CONFIG, write_manifest
from polyseme.text.corpus import ARTIFACT, VOCABULARY
from polyseme.text.formats import read_piece
from polyseme.text.plan import Piece, plan_shards
from polyseme.text.prepare import prepare_shard
from polyseme.text.preprocessing import Preparation
from polyseme.text.records import Blank, ReadItem, ReadStats, Record, Rejected
from polyseme.text.sampling import sniff
from polyseme.text.settings import CorpusConfig, InputFormat
from polyseme.text.sources import Compression, FoundSources, Source


def make_config(**values: Any) -> CorpusConfig:
    """Settings with the simplest segmenter, so that expected words can be read off the text, and
    with the layout that has several documents in a file."""
    simplest = {"language": "en", "segmenter": "whitespace", "layout": "articles"}
    return CorpusConfig.model_validate({**simplest, **values})


def finish_corpus(
    folder: Path,
    shards: Sequence[str],
    read_stats: dict[str, Any],
    config: CorpusConfig | None = None,
) -> None:
    """Write settings and manifest of a corpus whose shards and vocabulary are there."""
    config = config or make_config()
    write_text(folder / CONFIG, to_toml(corpus=config))
    write_manifest(
        folder,
        ARTIFACT,
        describe_files(folder, [*shards, VOCABULARY, CONFIG]),
        preparation=Preparation.of(config).to_manifest(),
        inputs={"a.txt": 20},
        passed_over={},
        annotators={},
        read_stats=read_stats,
    )


def make_source(
    folder: Path, data: bytes, kind: InputFormat = "text", compression: Compression | None = None
) -> Source:
    """A file with these bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "input"
    path.write_bytes(data)
    return Source(path, "input", kind, compression, len(data), "articles")


def make_piece(source: Source) -> Piece:
    """All of a source."""
    return Piece(source, 0, source.bytes, source.bytes)


def read_all(
    folder: Path, data: bytes, kind: InputFormat = "text", config: CorpusConfig | None = None
) -> list[ReadItem]:
    """Every item a reader makes of these bytes."""
    config = config or make_config()
    (source,) = looked_into([make_source(folder, data, kind)], config)
    return list(read_piece(make_piece(source), config))


def looked_into(sources: Sequence[Source], config: CorpusConfig) -> list[Source]:
    """The sources with their layouts, as `prepare` would have them."""
    return sniff(FoundSources(list(sources), []), config)[0].sources


def texts(items: Sequence[ReadItem]) -> list[str]:
    """The texts of the records among the items."""
    return [item.text for item in items if isinstance(item, Record)]


def records(items: Sequence[ReadItem]) -> list[Record]:
    """The records among the items."""
    return [item for item in items if isinstance(item, Record)]


def reasons(items: Sequence[ReadItem]) -> list[str]:
    """Why the rejected ones among the items were rejected."""
    return [item.reason for item in items if isinstance(item, Rejected)]


def num_blank(items: Sequence[ReadItem]) -> int:
    """How many units among the items were blank."""
    return sum(item.units for item in items if isinstance(item, Blank))


def pack(data: bytes, compression: Compression) -> bytes:
    """One compressed stream."""
    match compression:
        case "gz":
            return gzip.compress(data, mtime=0)
        case "bz2":
            return bz2.compress(data)
        case "xz":
            return lzma.compress(data)
        case "zst":
            sink = pa.BufferOutputStream()
            with pa.CompressedOutputStream(sink, "zstd") as stream:
                stream.write(data)
            packed: bytes = sink.getvalue().to_pybytes()
            return packed


@dataclass(frozen=True)
class PreparedShards:
    """What came out of all shards together."""

    rows: list[dict[str, Any]]
    counts: dict[str, Any]
    quarantine: list[dict[str, Any]]
    num_shards: int


def prepare_all(sources: Sequence[Source], config: CorpusConfig, folder: Path) -> PreparedShards:
    """Plan, prepare every shard, and read everything back in order."""
    rows: list[dict[str, Any]] = []
    quarantine: list[dict[str, Any]] = []
    parts = []
    batches = plan_shards(looked_into(sources, config), config)
    for batch in batches:
        out = folder / batch.name
        out.mkdir(parents=True)
        parts.append(prepare_shard(config, batch, out)[0])
        rows += pq.read_table(out / "shards" / f"{batch.name}.parquet").to_pylist()
        rejected = out / "quarantine" / f"{batch.name}.jsonl"
        if rejected.is_file():
            lines = rejected.read_text(encoding="utf-8").split("\n")[:-1]
            quarantine += [json.loads(line) for line in lines]
    total = ReadStats.total(parts)
    total.check()
    return PreparedShards(rows, total.as_json(), quarantine, len(batches))


def stats_of(sentences: Sequence[int], *, held_out: Sequence[int] = ()) -> dict[str, Any]:
    """The counts of sentences with so many words, some of them held out, each a record."""
    made = ReadStats(lengths=Counter([*sentences, *held_out]))
    number, words = len(sentences) + len(held_out), sum(sentences) + sum(held_out)
    made.counts.update(read=number, kept=number, records=number, sentences_found=number)
    made.counts.update(sentences=number, words=words)
    made.counts.update(held_out_sentences=len(held_out), held_out_words=sum(held_out))
    return {**made.as_json(), "distinct_words": words}
