"""A folder that is finished when its manifest is there, and believed when it fits.

    manifest.json   SHA-256 of every file, metadata, and a hash of that
    files.parquet   where there are very many files: what the manifest would have of each

Corpora, models, vectors and trained tasks are such folders. Models and tasks are passed on, so
nothing in one is believed before its hash fits. A name in any manifest or receipt is checked by
`listed_files`: it may not lead out of the folder.
"""

import hashlib
import re
from bisect import bisect_left
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any, NotRequired

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from polyseme.config import Settings, build, differences, read_toml
from polyseme.errors import ModelError, PolysemeError
from polyseme.limits import FILE_BYTES, WEIGHTS_BYTES, read_json
from polyseme.storage.files import (
    WORK,
    canonical_json,
    describe_file,
    is_as_written,
    scratch_for,
    write_text,
)


class FileInfo(TypedDict):
    """What a manifest has of a file."""

    bytes: int
    sha256: str
    rows: NotRequired[list[int]]
    """Of each row group, if it is Parquet: its footer need not be read again."""


def check_shape(value: Any, shape: Any) -> None:
    """A ValueError that names the first thing which is missing or of another type."""
    try:
        _adapter(shape).validate_python(value, strict=True)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise ValueError(f"{place or 'the whole'}: {problem['msg']}") from error


@lru_cache(maxsize=64)
def _adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)


MANIFEST = "manifest.json"
HF_PREFIX = "hf:"
"""How the name of an encoder of Hugging Face begins where a model can be named."""
SEED_PREFIX = "seed-"
"""How the folder of each seed begins, in that of a task."""
CONFIG = "config.toml"
"""The settings a folder was made with."""
_DIGEST = "metadata_sha256"  # of what stands beside the files, whose hashes are their own
# Plain letters only: what looks like a dot or a slash to people or to a file system is neither.
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_MOST_PARTS = 4


def is_inside(name: object) -> bool:
    """Whether a name from a file is relative, plain and without `..`: it stays in its folder."""
    if not isinstance(name, str):
        return False
    parts = name.split("/")
    return len(parts) <= _MOST_PARTS and all(map(_PART.fullmatch, parts))


def listed_files(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The files of a manifest, or a receipt; ValueError if one of them is impossible."""
    files: dict[str, dict[str, Any]] = manifest["files"]
    check_shape(files, dict[str, FileInfo])
    for name in files:
        if not is_inside(name):
            raise ValueError(f"it names {name!r:.80}, which is not a plain name inside its folder")
    return files


FILES = "files.parquet"
"""The table of files that a manifest has beside it if they are many."""
_MOST_IN_JSON = 1_000  # files; with more, a manifest is no longer read at a glance
_PACKED = 4_096  # files that are packed into columns at once
_INSIDE = f"^{_PART.pattern}(/{_PART.pattern}){{0,{_MOST_PARTS - 1}}}$"


class FileList(Mapping[str, Mapping[str, Any]]):
    """What a manifest has of each file, by name: some 120 bytes a file, however many there are."""

    def __init__(self, own: Mapping[str, Any] | None = None) -> None:
        self.own = dict(own or {})
        """Those that are not in the table."""
        self._chunks: list[Any] = []
        self._waiting: list[tuple[Any, ...]] = []
        self._sorted: Any = None

    def add(self, files: Mapping[str, Mapping[str, Any]]) -> None:
        """Enter the files of a shard into the table."""
        for name, each in files.items():
            self._waiting.append((name, each["bytes"], each["sha256"], each.get("rows")))
        self._sorted = None
        if len(self._waiting) >= _PACKED:
            self._pack()

    def _pack(self) -> None:
        import pyarrow as pa

        columns = zip(*self._waiting, strict=True) if self._waiting else [()] * 4
        arrays = [pa.array(c, k) for c, k in zip(columns, _schema().types, strict=True)]
        self._chunks.append(pa.Table.from_arrays(arrays, schema=_schema()))
        self._waiting = []

    @property
    def table(self) -> Any:
        """The table, sorted by name."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._sorted is None:
            self._pack()
            whole = pa.concat_tables(self._chunks)
            self._chunks = []  # memory holds two of them, not three
            whole = whole.combine_chunks()
            self._sorted = whole.take(pc.sort_indices(whole["name"])).combine_chunks()
            self._chunks = [self._sorted]
        return self._sorted

    def under(self, *tops: str) -> "FileList":
        """Only the files in these folders."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = FileList({n: each for n, each in self.own.items() if n.split("/")[0] in tops})
        top = pc.replace_substring_regex(self.table["name"], "/.*", "")
        found._sorted = self.table.filter(
            pc.is_in(top, pa.array(tops, pa.string()))
        ).combine_chunks()
        found._chunks = [found._sorted]
        return found

    def write(self, folder: Path) -> None:
        """Write the table as a file."""
        import pyarrow.parquet as pq

        with scratch_for(folder / FILES) as scratch, scratch.open("wb") as stream:
            pq.write_table(
                self.table,
                stream,
                compression="zstd",
                use_dictionary=False,  # no name and no hash comes twice
                column_encoding={"name": "DELTA_BYTE_ARRAY"},
                row_group_size=1 << 15,
            )

    @classmethod
    def read(cls, path: Path, own: Mapping[str, Any]) -> "FileList":
        """The files of a manifest with a table; ValueError if one of them is impossible."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from polyseme.storage.parquet import read_batches

        found = cls(own)
        batches = list(read_batches(path, _schema().names, 1 << 16))
        try:
            table = pa.Table.from_batches(batches, _schema() if not batches else None)
            table = table.cast(_schema()).combine_chunks()
        except (pa.ArrowException, ValueError) as error:
            raise ValueError(f"{FILES} is of another shape: {error}") from error
        names = table["name"]
        if any(table[name].null_count for name in ("name", "bytes", "sha256")):
            raise ValueError(f"{FILES} has gaps")
        if not pc.all(pc.match_substring_regex(names, _INSIDE), min_count=0).as_py():
            raise ValueError(f"{FILES} names what is not a plain name inside its folder")
        if not pc.all(pc.less(names[:-1], names[1:]), min_count=0).as_py():
            raise ValueError(f"{FILES} is not sorted by name")
        found._chunks, found._sorted = [table], table
        return found

    def folders(self) -> set[str]:
        """The folders that files lie in; empty for the top one."""
        import pyarrow.compute as pc

        there = pc.unique(pc.replace_substring_regex(self.table["name"], "/?[^/]*$", ""))
        return {name.rpartition("/")[0] for name in self.own} | set(there.to_pylist())

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        if name in self.own:
            found: Mapping[str, Any] = self.own[name]
            return found
        names = self.table["name"].chunk(0) if len(self.table) else []
        at = bisect_left(range(len(names)), name, key=lambda number: names[number].as_py())
        if at == len(names) or names[at].as_py() != name:
            raise KeyError(name)
        return _described(*(column[0].as_py() for column in self.table.slice(at, 1).columns[1:]))

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        for batch in self.table.select(["name"]).to_batches(max_chunksize=_PACKED):
            yield from batch.column(0).to_pylist()

    def __len__(self) -> int:
        return len(self.own) + len(self.table)

    def items(self) -> ItemsView[str, Mapping[str, Any]]:
        """All of them, those of the table in order of their names."""
        return _FileItems(self)


class _FileItems(ItemsView[str, Mapping[str, Any]]):
    """Row by row, not name by name."""

    _mapping: FileList

    def __iter__(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        yield from self._mapping.own.items()
        for batch in self._mapping.table.to_batches(max_chunksize=_PACKED):
            for name, *rest in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield name, _described(*rest)


def _described(num_bytes: int, sha256: str, rows: list[int] | None) -> Mapping[str, Any]:
    described: dict[str, Any] = {"bytes": num_bytes, "sha256": sha256}
    return described if rows is None else {**described, "rows": rows}


def _schema() -> Any:
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("name", pa.string(), nullable=False),
            pa.field("bytes", pa.int64(), nullable=False),
            pa.field("sha256", pa.string(), nullable=False),
            pa.field("rows", pa.list_(pa.int32())),  # of each row group, if it is Parquet
        ]
    )


def all_files(folder: Path, own: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """The files of a manifest, with those of its table if it has one in this folder."""
    if FILES not in own:
        return own
    if not is_as_written(folder / FILES, own[FILES]):
        raise ValueError(f"{FILES} is missing or not as it was written")
    return FileList.read(folder / FILES, own)


def check_holds(folder: Path, wanted: str, made_by: str, error: type[PolysemeError]) -> None:
    """Refuse a folder that holds no finished `wanted`, and say what it is instead.

    `made_by`: the command that makes one, but for its --out.
    """
    found = _what_holds(folder, wanted)
    if found is None:
        return
    if near := _nearest_beside(folder, wanted):
        raise error(f"{found} Did you mean {quote(str(near))}?")
    raise error(f"{found} {_how_to_make(folder, wanted, made_by)}")


def _nearest_beside(folder: Path, wanted: str) -> Path | None:
    """What a folder that is not there was meant to be: one beside it with a name much like it."""
    if folder.exists() or not folder.parent.is_dir():
        return None
    with suppress(OSError):  # not ours to read
        beside = [path.name for path in islice(folder.parent.iterdir(), _MOST_BESIDE)]
        for name in get_close_matches(folder.name, beside, n=3, cutoff=0.75):
            if holds(folder.parent / name, wanted):
                return folder.parent / name
    return None


def _how_to_make(folder: Path, wanted: str, made_by: str) -> str:
    """The next command. It never writes into a folder, or over a file, that holds something else:
    what is there may be what the command is made from."""
    name, make = quote(str(folder)), f"Make {_ARTICLES[wanted]} with:"
    kind = _kind_of(folder / MANIFEST) if (folder / MANIFEST).is_file() else None
    is_hf = str(folder).startswith(HF_PREFIX)
    has_others = folder.is_dir() and _unfinished(folder).startswith("other things")
    if not (kind or is_hf or folder.is_file() or has_others):
        return f"{make} {made_by} --out {name}"
    given = "" if is_hf else _PLACEHOLDERS.get(kind or "text", "")
    command = made_by.replace(given, name, 1) if given else made_by
    return f"{make} {command} --out {_PLACES[wanted]}/NEW"


def holds(folder: Path, wanted: str) -> bool:
    """Whether a folder says that it holds a finished `wanted`."""
    return (folder / MANIFEST).is_file() and _kind_of(folder / MANIFEST) == wanted


def check_holds_no_other(folder: Path, wanted: str, error: type[PolysemeError]) -> None:
    """Refuse to write a `wanted` into a folder that holds something else of ours."""
    if not (folder / MANIFEST).is_file():
        return
    kind = _kind_of(folder / MANIFEST)
    if kind != wanted:
        what = _ARTICLES[kind] if kind else "something else"
        raise error(f"{folder} holds {what}. Choose a new or empty folder for --out.")


_ARTICLES = {
    "corpus": "a corpus",
    "vectors": "a folder of vectors",
    "model": "a model",
    "task": "a task",
    "index": "an index",
}
_PLACES = {
    "corpus": "corpus",
    "vectors": "vectors",
    "model": "models",
    "task": "tasks",
    "index": "index",
}
"""Where the documents keep each kind."""
_PLACEHOLDERS = {"text": "TEXTS", "corpus": "CORPUS", "model": "MODEL"}
"""What a command is made from, as it is written in `made_by`."""
_MOST_BESIDE = 1_000


def _what_holds(folder: Path, wanted: str) -> str | None:
    """What stands where `wanted` was expected, in words; None if it may be that."""
    name = quote(str(folder))
    article = _ARTICLES[wanted]
    if str(folder).startswith(HF_PREFIX):
        return f"{name} is a Hugging Face encoder; {article} of Polyseme's own was expected."
    if not folder.exists():
        return f"There is no folder {name}; {article} was expected there."
    if not folder.is_dir():
        return f"{name} is a file; the folder of {article} was expected."
    if (folder / MANIFEST).is_file():
        found = _kind_of(folder / MANIFEST) or wanted
    else:
        found = "task" if any(folder.glob(f"{SEED_PREFIX}*/{MANIFEST}")) else ""
    if found:
        return None if found == wanted else f"{name} holds {_ARTICLES[found]}, not {article}."
    return f"{name} holds {_unfinished(folder)}; {article} was expected there."


def _unfinished(folder: Path) -> str:
    """What is in a folder that holds nothing finished."""
    stopped = "that was interrupted (the same command resumes it)"
    if (folder / "checkpoints").is_dir() or any(folder.glob(f"{SEED_PREFIX}*")):
        return f"a training run {stopped}"
    if (folder / "receipts").is_dir():
        return f"a run of prepare, embed or index {stopped}"
    there = sorted(path.name for path in folder.iterdir())[:3]
    return f"other things ({', '.join(there)})" if there else "nothing"


def _kind_of(manifest: Path) -> str | None:
    """What a manifest is of; None if it cannot be read: whoever opens it says why."""
    try:
        found = read_json(manifest)["artifact"]
        return found if found in _ARTICLES else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


@dataclass(frozen=True)
class ArtifactType:
    """What a kind of folder must have."""

    name: str
    """What is in it: "model"."""
    version: int
    """The format that is written."""
    files: frozenset[str]
    """Those without which it is none."""
    metadata_keys: tuple[str, ...]
    """What its manifest holds beside the files."""
    made_by: str
    """The command that makes one, but for its --out."""
    shape: Any = dict[str, Any]
    """What the manifest must look like, as a type: that which is read of it."""
    folders: frozenset[str] = frozenset()
    """Folders in it that its files may lie in."""
    remedy: str = "Copy the whole folder again from where it came."
    """What to do if it is damaged."""
    error: type[PolysemeError] = ModelError
    """What is raised if it is."""
    older: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Formats that are read, too, and what their manifests hold beside the files."""

    def damaged(self, folder: Path, reason: object) -> PolysemeError:
        """The error for a manifest that cannot be believed."""
        return self.error(
            f"{folder / MANIFEST} is damaged, or is not that of {_ARTICLES[self.name]}: {reason}. "
            f"{self.remedy}"
        )


def check_same_settings(
    folder: Path,
    settings: Settings,
    *,
    table: str,
    error: type[PolysemeError],
    refusal: str,
    may_differ: bool,
    besides: frozenset[str] = frozenset(),
) -> None:
    """Refuse to write over something made with other settings, or over something not ours.

    `table`: the settings in CONFIG. `refusal`: how it is said that they differ, with {} for where.
    `besides`: what may be there before CONFIG is.
    """
    path = folder / CONFIG
    tables = read_toml(path) if path.is_file() else {}
    if table not in tables:  # nothing is there yet, or a model, a corpus, ... of someone's
        others = {other.name for other in folder.iterdir()} - {".lock", WORK} - besides
        if others:
            raise error(
                f"{folder} holds other things ({', '.join(sorted(others)[:3])}). "
                "Choose a new or empty folder for --out."
            )
        return
    before = build(type(settings), tables[table])
    if before != settings and not may_differ:
        raise error(f"{folder} {refusal.format(differences(before, settings))}")


def write_manifest(
    folder: Path, artifact: ArtifactType, files: Mapping[str, Any], **metadata: Any
) -> None:
    """Write the manifest of files that are there: it makes them a finished whole."""
    assert set(metadata) == set(artifact.metadata_keys), metadata.keys()
    if isinstance(files, FileList):
        if len(files) > _MOST_IN_JSON:
            files.write(folder)
            files = {**files.own, FILES: describe_file(folder / FILES)}
        else:
            (folder / FILES).unlink(missing_ok=True)
            files = dict(files)
    manifest = {
        "artifact": artifact.name,
        "format": artifact.version,
        **metadata,
        _DIGEST: _digest(metadata),
        "files": files,
    }
    write_text(folder / MANIFEST, canonical_json(manifest))


def open_artifact(
    folder: Path, artifact: ArtifactType, weights: Callable[[Path], Any]
) -> dict[str, Any]:
    """The metadata of a finished folder, each of its files held against its hash.

    `weights` looks at a file of weights first: hashing takes as long as a file says it is.
    """
    manifest = read_manifest(folder, artifact)
    for name, described in manifest["files"].items():
        _check_size(folder / name, described)
        if name.endswith(".safetensors"):
            weights(folder / name)
    for name in damaged_files(folder, manifest):
        raise artifact.error(
            f"{folder / name} is missing or not as it was written (SHA-256 differs from "
            f"{MANIFEST}). {artifact.remedy}"
        )
    return {name: manifest[name] for name in artifact.metadata_keys}


def read_manifest(folder: Path, artifact: ArtifactType) -> dict[str, Any]:
    """The manifest, if it is whole and of a folder of this kind; files are not looked at."""
    check_holds(folder, artifact.name, artifact.made_by, artifact.error)
    try:
        manifest: dict[str, Any] = read_json(folder / MANIFEST)
        files, version = listed_files(manifest), manifest.get("format")
        keys = {artifact.version: artifact.metadata_keys, **artifact.older}
        if version in keys:
            check_shape(manifest, artifact.shape)
            manifest["files"] = all_files(folder, files)
            _check_whole(manifest, keys[version], artifact)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise artifact.damaged(folder, error) from error
    if version not in keys:
        found = f"format {version}" if isinstance(version, int) else "an older format"
        raise artifact.error(
            f"{folder} has {artifact.name} {found}, this version of Polyseme reads format "
            f"{artifact.version}. Recreate it, or use the version that made it."
        )
    return manifest


def damaged_files(
    folder: Path, manifest: Mapping[str, Any], on_file: Callable[[int], None] = lambda _: None
) -> Iterator[str]:
    """Files that are missing or not as they were written; reads everything."""
    for number, (name, described) in enumerate(manifest["files"].items(), start=1):
        if not is_as_written(folder / name, described):
            yield name
        on_file(number)


def _check_whole(manifest: Mapping[str, Any], keys: Iterable[str], artifact: ArtifactType) -> None:
    if manifest[_DIGEST] != _digest({name: manifest[name] for name in keys}):
        raise ValueError(f"{_DIGEST} does not fit")
    files: Mapping[str, Any] = manifest["files"]
    if isinstance(files, FileList):
        folders = files.folders()
    else:
        folders = {name.rpartition("/")[0] for name in files}
    if strange := sorted(folders - artifact.folders - {""}):
        name = next(name for name in files if name.startswith(f"{strange[0]}/"))
        raise ValueError(f"it names {name}, which is not a file of {_ARTICLES[artifact.name]}")
    if missing := sorted(artifact.files - files.keys()):
        raise ValueError(f"it does not name {missing[0]}")


def _check_size(path: Path, described: Mapping[str, Any]) -> None:
    limit = WEIGHTS_BYTES if path.suffix == ".safetensors" else FILE_BYTES
    size = path.stat().st_size if path.is_file() else None
    if size is None or size != described.get("bytes", size) or size > limit:
        raise ModelError(
            f"{path} is missing or not as it was written: {size or 0:,} bytes, {MANIFEST} has "
            f"{described.get('bytes')}, at most {limit:,} are read. Copy the whole folder again "
            "from where it came."
        )


def _digest(metadata: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(metadata).encode("utf-8")).hexdigest()
