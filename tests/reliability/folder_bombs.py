"""Folders of every kind, made to take far more memory than they weigh; their hashes all fit."""

import hashlib
import json
import os
import random
import shutil
import struct
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w
import torch
from embedding.bulk_cases import make_case

from polyseme.config import build
from polyseme.storage.files import canonical_json, describe_file
from polyseme.tasks.families.tagging import Tagged
from polyseme.tasks.task import Task, TaskConfig
from reliability.config_bombs import POSSIBLE, numbers_in, put
from reliability.hostile_safetensors import SAFETENSORS, header_of, joined

SIZES = [*POSSIBLE, 0, -1, 12_000, 10**6, 10**9, 1 << 31, 1 << 63, 10**30]
HUGE = 3 << 30
Harm = Callable[[Path, random.Random], None]


@dataclass(frozen=True)
class Honest:
    """A folder of each kind as it should be."""

    model: Path
    task: Path
    corpus: Path
    vectors: Path


def make_honest(folder: Path) -> Honest:
    """Small ones, once for all."""
    case = make_case(folder / "made")
    case.embed(folder / "vectors")
    characters = {
        "cnn": {"filters": [{"width": 3, "num_filters": 5}], "num_highway_layers": 1, "dim": 4}
    }
    values = {
        "data": {"train": "train", "reader": {"kind": "columns"}},
        "embeddings": {
            "words": {
                "vectors": {"kind": "new", "dim": 6},
                "trained": True,
                "characters": characters,
            },
            "model": {"kind": "frozen", "model": case.model, "cached": False},
        },
        "network": {"kind": "tagging", "context": {"dim": 8}},
    }
    torch.manual_seed(1)
    example = Tagged(("word1", "word2", "word3"), ("B-NAME", "I-NAME", "O"))
    Task.new(build(TaskConfig, values), [example], ["word1", "w"]).save(folder / "task")
    return Honest(case.model, folder / "task", case.corpus.folder, folder / "vectors")


def seal(folder: Path) -> None:
    """Make the manifest fit what is there, as whoever passes such a folder on would."""
    path = folder / "manifest.json"
    if not path.is_file() or path.stat().st_size > 1 << 24:
        return  # the manifest is itself what was harmed
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        for name, told in manifest["files"].items():
            if (folder / name).is_file():
                size = (folder / name).stat().st_size
                told.update(describe_file(folder / name) if size < HUGE else {"bytes": size})
        others = ("artifact", "format", "metadata_sha256", "files")
        told = {key: value for key, value in manifest.items() if key not in others}
        if "metadata_sha256" in manifest:
            manifest["metadata_sha256"] = hashlib.sha256(canonical_json(told).encode()).hexdigest()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
    path.write_text(canonical_json(manifest), encoding="utf-8")


# What the audit found, by name: a kind of folder, and what is done to it.


def _vocabulary(word: str, number: int) -> Harm:
    """A model's vocabulary of one word again and again."""

    def harm(folder: Path, _: random.Random) -> None:
        path = folder / "vocabulary.parquet"
        metadata = pq.read_schema(path).metadata
        schema = pa.schema([("word", pa.string()), ("count", pa.int64())], metadata)
        rows = min(number, max(1, (1 << 27) // len(word)))
        same = np.zeros(rows, np.int32)
        words = pa.array([word]).take(pa.array(same))
        part = pa.table([words, pa.array(same.astype(np.int64) + 9)], schema=schema)
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for _part in range(-(-number // rows)):
                writer.write_table(part)

    return harm


def dotted(parts: int) -> str:
    return ".".join(["a"] * parts) + " = 1\n"


def _append(name: str, text: str) -> Harm:
    def harm(folder: Path, _: random.Random) -> None:
        with (folder / name).open("a", encoding="utf-8") as stream:
            stream.write(text)

    return harm


def _rewrite(name: str, text: str) -> Harm:
    def harm(folder: Path, _: random.Random) -> None:
        (folder / name).write_text(text, encoding="utf-8")

    return harm


def _words(change: Callable[[dict[str, Any]], Any]) -> Harm:
    def harm(folder: Path, _: random.Random) -> None:
        values = json.loads((folder / "words.json").read_text(encoding="utf-8"))
        change(values)
        (folder / "words.json").write_text(json.dumps(values), encoding="utf-8")

    return harm


def _setting(path: tuple[str, ...], value: Any) -> Harm:
    def harm(folder: Path, _: random.Random) -> None:
        values = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
        part = values
        for key in path[:-1]:
            part = part.setdefault(key, {})
        part[path[-1]] = value
        (folder / "config.toml").write_text(tomli_w.dumps(values), encoding="utf-8")

    return harm


def sparse(name: str, size: int = HUGE) -> Harm:
    def harm(folder: Path, _: random.Random) -> None:
        os.truncate(folder / name, size)

    return harm


def pipe(name: str) -> Harm:
    def harm(folder: Path, _: random.Random) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return harm


LABELS = {"labels": [f"B-{number}" for number in range(30_001)]}
NAMED: dict[str, tuple[str, Harm]] = {
    "20 million equal words": ("model", _vocabulary("w" * 7, 20_000_000)),
    "3,000 words of 1 MB": ("model", _vocabulary("w" * (1 << 20), 3_000)),
    "a dotted key of 20,000 parts": ("model", _append("config.toml", dotted(20_000))),
    "a dotted key of 50,000 parts": ("task", _append("config.toml", dotted(50_000))),
    "30,001 labels": ("task", _words(lambda values: values.update(LABELS))),
    "vocabulary.dim of a milliard": (
        "task",
        _words(lambda v: v["vocabulary"].update(dim=10**9)),
    ),
    "vocabulary.dim of 65,536": ("task", _words(lambda v: v["vocabulary"].update(dim=65_536))),
    "context.dim of 12,000": ("task", _setting(("network", "context", "dim"), 12_000)),
    "context.num_layers of 16": ("task", _setting(("network", "context", "num_layers"), 16)),
    "a million characters": (
        "task",
        _words(lambda v: v["vocabulary"].update(characters="x" * 10**6)),
    ),
    "a model's manifest of 3 GB": ("model", sparse("manifest.json")),
    "a task's manifest of 3 GB": ("task", sparse("manifest.json")),
    "a corpus's manifest of 3 GB": ("corpus", sparse("manifest.json")),
    "a vectors' manifest of 3 GB": ("vectors", sparse("manifest.json")),
    "words.json of 3 GB": ("task", sparse("words.json")),
    "config.toml of 3 GB": ("model", sparse("config.toml")),
    "weights of 3 GB": ("model", sparse("model.safetensors")),
    "a task's weights of 3 GB": ("task", sparse("model.safetensors")),
    "a vocabulary of 3 GB": ("model", sparse("vocabulary.parquet")),
    "a deep manifest": ("corpus", _rewrite("manifest.json", "[" * 10**6)),
    "a manifest of tables": ("vectors", _rewrite("manifest.json", f"[{'{},' * 9_999_999}{{}}]")),
    "an integer of 5,000 digits": ("model", _append("config.toml", "big = " + "9" * 5_000)),
    "an integer of 5,000 digits in JSON": ("task", _rewrite("words.json", "9" * 5_000)),
    "deep TOML": ("model", _append("config.toml", "deep = " + "[" * 50_000)),
    "a manifest that is a pipe": ("model", pipe("manifest.json")),
    "words.json that is a pipe": ("task", pipe("words.json")),
}


# The same again and again, by chance.


def _any_manifest(folder: Path, chance: random.Random) -> None:
    values = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    places = [path for path in _places(values) if path]
    for _ in range(chance.randint(1, 3)):
        path = chance.choice(places)
        value: Any = chance.choice(
            [*SIZES, "x" * 10**6, None, [], {}, [[[]]] * 1000, 1e308, "../x"]
        )
        part = values
        try:
            for key in path[:-1]:
                part = part[key]
            part[path[-1]] = value
        except (TypeError, KeyError, IndexError):
            continue  # what held it is gone
    (folder / "manifest.json").write_text(json.dumps(values), encoding="utf-8")


def _places(values: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    items = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in items:
        inner = isinstance(value, dict | list)
        found += _places(value, (*path, key)) if inner else [(*path, key)]
    return found


def _any_settings(folder: Path, chance: random.Random) -> None:
    values = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
    for path in chance.sample(places := list(numbers_in(values)), min(3, len(places))):
        try:
            put(values, path, chance.choice(SIZES))
        except (TypeError, KeyError, IndexError):
            continue
    try:
        (folder / "config.toml").write_text(tomli_w.dumps(values), encoding="utf-8")
    except (ValueError, TypeError):
        _append("config.toml", dotted(100))(folder, chance)


def _any_toml(folder: Path, chance: random.Random) -> None:
    number = chance.choice([17, 100, 5_000, 50_000, 200_000])
    deep = chance.choice(["[" * number, "{a=" * number, '"' + "x" * 10 * number, "1" * number,
                          "[" + "{}," * number + "]", "0." * number])  # fmt: skip
    text = chance.choice([dotted(number), f"x = {deep}\n", f"[{dotted(number)[:-5]}]\n",
                          f'"a" . {dotted(number)}',
                          f"x = {{ {dotted(number)[:-1]} }}\n"])  # fmt: skip
    _append("config.toml", text)(folder, chance)


def _any_json(folder: Path, chance: random.Random) -> None:
    number = chance.choice([1_000, 100_000, 3_000_000])
    name = chance.choice([path.name for path in folder.glob("*.json")])
    text = chance.choice(["[" * number, '{"a":' * number, "[" + "[]," * number + "[]]",
                          "9" * number, '"' + "\\u0000" * number + '"',
                          "[1e5" + ",1e5" * number + "]"])  # fmt: skip
    (folder / name).write_text(text, encoding="utf-8")


def _any_words(folder: Path, chance: random.Random) -> None:
    path = folder / "words.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    size = chance.choice(SIZES)
    many = ["w"] * max(0, min(size, 10**6))
    change = chance.choice(["labels", "dim", "words", "characters", "labelled_characters"])
    if change == "labels":
        values["labels"] = [f"B-{number}" for number in range(len(many))]
    else:
        values["vocabulary"][change] = {"dim": size, "characters": "".join(many)}.get(change, many)
    path.write_text(json.dumps(values), encoding="utf-8")


def _any_weights(folder: Path, chance: random.Random) -> None:
    path = folder / "model.safetensors"
    data = path.read_bytes()
    if chance.random() < 0.5:
        quick = [name for name in SAFETENSORS if "99 MB" not in name]
        path.write_bytes(SAFETENSORS[chance.choice(quick)](data))
        return
    header, body = header_of(data)
    told = header[chance.choice([name for name in header if name != "__metadata__"])]
    told["shape"] = [chance.choice(SIZES) for _ in range(chance.randint(0, 4))]
    if chance.random() < 0.5:
        told["data_offsets"][1] = chance.choice(SIZES)
    path.write_bytes(joined(header, body))


def _any_parquet(folder: Path, chance: random.Random) -> None:
    path = chance.choice(sorted(folder.rglob("*.parquet")))
    kind = chance.choice(["footer", "page", "length", "dictionary", "cell", "rows", "list"])
    if kind in ("footer", "page", "length"):
        data = bytearray(path.read_bytes())
        footer = struct.unpack("<I", data[-8:-4])[0]
        if kind == "length":
            data[-8:-4] = struct.pack(
                "<I", chance.choice([0, 1, len(data), 1 << 26, (1 << 32) - 1])
            )
        for _ in range(chance.randint(1, 6)):
            low, high = (len(data) - 8 - footer, len(data) - 8) if kind == "footer" else (4, 60)
            data[chance.randrange(low, high)] = chance.choice([0, 1, 127, 128, 255])
        path.write_bytes(data)
        return
    _fill(path, kind, chance)


def _fill(path: Path, kind: str, chance: random.Random) -> None:
    """The same columns, but of a few values that are long, or there without end."""
    schema = pq.read_schema(path)
    rows = chance.choice([1_024, 100_000, 3_000_000]) if kind == "rows" else 1_024
    long = "x " * chance.choice([1_000, 500_000, 20_000_000])
    text = {"dictionary": long[: 7 << 20], "cell": long}.get(kind, "x")
    rows = {"cell": 2, "list": 4}.get(kind, rows)
    inner = 5_000_000 if kind == "list" else 2
    columns = [_column(field.type, text, rows, inner) for field in schema]
    table = pa.table(dict(zip(schema.names, columns, strict=True)))
    pq.write_table(table.replace_schema_metadata(schema.metadata), path, compression="zstd")


def _column(kind: Any, text: str, rows: int, inner: int) -> Any:
    if pa.types.is_fixed_size_list(kind):
        values = pa.array([0.0] * kind.list_size, pa.float32()).cast(kind.value_type)
        return pa.FixedSizeListArray.from_arrays(values, type=kind).take(
            pa.array(np.zeros(rows, np.int32))
        )
    if pa.types.is_list(kind):
        offsets = pa.array(range(0, rows * inner + 1, inner), pa.int32())
        values = _column(kind.value_type, "x", rows * inner, 0)
        return pa.ListArray.from_arrays(offsets, values, type=kind)
    if pa.types.is_dictionary(kind):
        codes = pa.array(np.zeros(rows, np.int32))
        return pa.DictionaryArray.from_arrays(codes, pa.array([text]))
    if pa.types.is_string(kind):
        codes = pa.array(np.zeros(rows, np.int32))
        encoded = pa.DictionaryArray.from_arrays(codes, pa.array([text]))
        return encoded if len(text) * rows > 1 << 24 else encoded.cast(pa.string())
    return pa.nulls(rows, pa.int64()).fill_null(1).cast(kind)


def _any_file(folder: Path, chance: random.Random) -> None:
    """A file that is none, or is longer than it is."""
    name = chance.choice([path.name for path in sorted(folder.iterdir()) if path.is_file()])
    harm = chance.choice(
        [sparse(name, 1 << 26), sparse(name, HUGE), sparse(name, 1 << 40), pipe(name)]
    )
    harm(folder, chance)


ANY: dict[str, list[Harm]] = {
    "model": [_any_manifest, _any_settings, _any_settings, _any_toml, _any_json, _any_weights,
              _any_parquet, _any_file],
    "task": [_any_manifest, _any_settings, _any_settings, _any_toml, _any_json, _any_words,
             _any_words, _any_weights, _any_file],
    "corpus": [_any_manifest, _any_json, _any_parquet, _any_parquet, _any_file],
    "vectors": [_any_manifest, _any_json, _any_parquet, _any_parquet, _any_file],
}  # fmt: skip


def make_bomb(honest: Honest, to: Path, kind: str, harm: Harm, chance: random.Random) -> None:
    """A harmed copy of an honest folder."""
    shutil.copytree(getattr(honest, kind), to)
    harm(to, chance)
    seal(to)
