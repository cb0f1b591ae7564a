"""Folders of ours in a store: fetched to be read here, and written to by a run.

    in   s3://bucket/corpus, where manifest.json says what belongs to it
    out  a folder on this machine with the same files, or `Output` to write one there

A file of a folder in a store is an object whose name carries its hash: `shards/part-00017.parquet`
is `shards/part-00017-1f0c4b2a9d3e5f60.parquet`. So no writer can change what another one's records
and manifest stand on, whatever it is late with; the manifest itself is the same to the byte as in
a local folder. Folders that were copied there by other tools, under plain names, can be read, too.

What is fetched is held against its hash once and kept in a bounded cache, by that hash. A folder to
read is made of hard links into the cache and is gone with the process.
"""

import atexit
import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from polyseme.errors import ConfigError, StorageError
from polyseme.limits import JSON_BYTES, open_regular, parse_json, read_bytes
from polyseme.storage.files import (
    WORK,
    is_abandoned,
    is_as_written,
    make_output,
    new_name,
    own_folder,
    publish,
    sha256_of,
    write_text,
)
from polyseme.storage.folders import CONFIG, FILES, MANIFEST, FileList, is_inside, listed_files
from polyseme.storage.store import Entry, Store, in_parallel, is_url, open_store

_GIGABYTE = 1 << 30
_DEFAULT_GIGABYTES = 50
_AT_ONCE = 8  # files fetched at the same time


def object_name(name: str, sha256: str) -> str:
    """The name of a file in a store: `shards/part-00017.parquet` with its hash before the dot."""
    folder, slash, last = name.rpartition("/")
    stem, dot, suffix = last.partition(".")
    return f"{folder}{slash}{stem}-{sha256[:16]}{dot}{suffix}"


def cache_folder() -> Path:
    """Where fetched files are kept: POLYSEME_CACHE, or where this system has its caches."""
    given = os.environ.get("POLYSEME_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(home) / "polyseme"


def cache_limit() -> int:
    """Bytes that fetched files may take: POLYSEME_CACHE_GB."""
    given = os.environ.get("POLYSEME_CACHE_GB", str(_DEFAULT_GIGABYTES))
    try:
        return int(float(given) * _GIGABYTE)
    except ValueError as error:
        raise ConfigError(
            f"POLYSEME_CACHE_GB is {given!r}; it is a number of gigabytes, as 50."
        ) from error


def local_folder(where: str | os.PathLike[str], *, without: tuple[str, ...] = ()) -> Path:
    """A folder on this machine: the one that is named, or what an address stands for, fetched.

    It is there as long as this process. Later it may be fetched again, from the cache if it is the
    same. `without`: folders in it that are not fetched.
    """
    if not is_url(where):
        return Path(where)
    store = open_store(where)
    found = {entry.name: entry for entry in store.list()}
    manifests = [name for name in found if name.rpartition("/")[2] == MANIFEST and is_inside(name)]
    if not manifests:
        there = f"holds other things ({min(found)}, …)" if found else "holds nothing"
        raise StorageError(
            f"{store.url} {there}: there is no {MANIFEST}, which the folder of a finished corpus, "
            "model, task, index or of vectors has. If a run there was interrupted, the same "
            "command resumes it."
        )
    contents = tuple(_read_manifest(store, name) for name in sorted(manifests))
    return _linked(store.url, contents, tuple(found.values()), without)


def _read_manifest(store: Store, name: str) -> tuple[str, bytes]:
    found = store.read(name)
    if found is None:
        raise StorageError(f"{store.url}/{name} is gone since it was listed. Try again.")
    return name, found[0]


@lru_cache(maxsize=64)
def _linked(
    url: str,
    manifests: tuple[tuple[str, bytes], ...],
    entries: tuple[Entry, ...],
    without: tuple[str, ...],
) -> Path:
    """A new folder with all files that the manifests name, the manifests last."""
    store = open_store(url)
    wanted: list[tuple[str, Mapping[str, Any], Entry]] = []
    there = {entry.name: entry for entry in entries}
    for name, content in manifests:
        top = name[: -len(MANIFEST)]
        for file, described in _files_of(store, name, content).items():
            if file.split("/")[0] in without:
                continue
            wanted.append((top + file, described, _entry(store, there, top + file, described)))
    size = sum(entry.size for _, _, entry in wanted)
    if size > cache_limit():
        raise StorageError(
            f"{store.url} has {size / _GIGABYTE:,.1f} GB, and the cache in {cache_folder()} is "
            f"limited to {cache_limit() / _GIGABYTE:,.1f} GB. Set POLYSEME_CACHE_GB to more, if "
            "the disk has space, or mount the store and give that path."
        )
    folder = new_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    make_room(size)

    def fetch(each: tuple[str, Mapping[str, Any], Entry]) -> None:
        name, described, entry = each
        link(cached(store, entry, described["sha256"]), folder / name)

    for _ in in_parallel(fetch, wanted, _AT_ONCE):
        pass
    for name, content in manifests:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    _ADDRESSES[folder] = store.url
    return folder


_ADDRESSES: dict[Path, str] = {}


def is_finished(where: str | os.PathLike[str]) -> bool:
    """Whether a folder, here or in a store, has its manifest."""
    if is_url(where):
        return open_store(where).head(MANIFEST) is not None
    return (Path(where) / MANIFEST).is_file()


def address_of(folder: Path) -> str:
    """How a folder is shown: by the address that it was fetched from, if it was."""
    return _ADDRESSES.get(folder, str(folder))


def is_fetched(folder: Path) -> bool:
    """Whether a folder stands for one in a store, which other machines can reach, too."""
    return folder in _ADDRESSES


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A file that workers read, wherever they are."""

    path: Path
    """Where it is, at least on the machine that started the run."""
    url: str
    """The store it can be fetched from; empty if all workers see the path."""
    name: str
    sha256: str

    @classmethod
    def of(cls, path: Path, folder: Path, sha256: str) -> "SharedFile":
        """A file of a folder, which may stand for one in a store."""
        name = path.relative_to(folder).as_posix()
        return cls(path.resolve(), _ADDRESSES.get(folder, ""), name, sha256)

    def local(self) -> Path:
        """The file on this machine."""
        return self.path if not self.url or self.path.exists() else self.fetched()

    def fetched(self) -> Path:
        """The file in the cache."""
        store = open_store(self.url)
        entry = self._entry(store)
        make_room(entry.size)
        return cached(store, entry, self.sha256)

    def read_into(self, stream: IO[bytes], span: tuple[int, int]) -> None:
        """Some bytes of the file, from wherever it is."""
        if not self.url or self.path.exists():
            with open_regular(self.path) as file:
                file.seek(span[0])
                stream.write(file.read(span[1] - span[0]))
        else:
            store = open_store(self.url)
            entry = self._entry(store)
            store.fetch(entry.name, stream, span, entry.etag)

    def _entry(self, store: Store) -> Entry:
        for known_as in (object_name(self.name, self.sha256), self.name):
            if (entry := store.head(known_as)) is not None:
                return entry
        raise StorageError(f"{self.url}/{self.name} is gone since the run began.")


def _files_of(store: Store, name: str, content: bytes) -> Mapping[str, Mapping[str, Any]]:
    try:
        files = listed_files(parse_json(content.decode("utf-8")))
        if FILES not in files:
            return files
        table, sha256 = name[: -len(MANIFEST)] + FILES, files[FILES]["sha256"]
        return FileList.read(SharedFile(Path(), store.url, table, sha256).fetched(), files)
    except (ValueError, LookupError, TypeError) as error:
        raise StorageError(
            f"{store.url}/{name} is damaged, or is not a manifest of Polyseme: {error}."
        ) from error


def _entry(
    store: Store, there: Mapping[str, Entry], name: str, described: Mapping[str, Any]
) -> Entry:
    """The object that is a file of a manifest: by its name with the hash, or by its plain one."""
    for known_as in (object_name(name, described["sha256"]), name):
        if known_as in there:
            return there[known_as]
    raise StorageError(
        f"{store.url}/{name} is missing, and the manifest names it. Run the command that made the "
        "folder again, or copy it there again, whole."
    )


def new_folder() -> Path:
    """An empty folder in the cache, for as long as this process lives."""
    work = own_folder(own_folder(cache_folder()) / WORK)
    for path in work.iterdir():
        if is_abandoned(path.name):
            shutil.rmtree(path, ignore_errors=True)
    folder = work / new_name()
    folder.mkdir()
    return folder


@contextlib.contextmanager
def scratch_space() -> Iterator[Path]:
    """An empty folder in the cache, for as long as it is needed."""
    folder = new_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def link(cached_file: Path, final: Path) -> None:
    """A file of the cache under a name of its own; removing it from the cache leaves it there."""
    final.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(cached_file, final)
    except OSError:  # another disk
        shutil.copyfile(cached_file, final)


def cached(store: Store, entry: Entry, sha256: str) -> Path:
    """A file with this hash, from the cache, or fetched and held against the hash."""
    objects = own_folder(own_folder(cache_folder()) / "objects")
    final = objects / sha256
    with contextlib.suppress(FileNotFoundError):
        if final.stat().st_size == entry.size:
            os.utime(final)  # what was used last goes last
            return final
    scratch = own_folder(objects / WORK) / new_name()
    try:
        with scratch.open("wb") as stream:
            store.fetch(entry.name, stream, (0, entry.size), entry.etag)
        if (found := sha256_of(scratch)) != sha256:
            raise StorageError(
                f"{store.url}/{entry.name} is not as it was written: its SHA-256 is {found[:16]}…, "
                f"its manifest has {sha256[:16]}…. Make or copy it again."
            )
        publish(scratch, final)
    finally:
        scratch.unlink(missing_ok=True)
    return final


def make_room(size: int) -> None:
    """Remove what was not used for longest, until so many bytes more may be fetched."""
    objects = cache_folder() / "objects"
    if not objects.is_dir():
        return
    there = []
    for path in objects.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if path.name != WORK:
                there.append((path.stat(), path))
    taken = sum(status.st_size for status, _ in there)
    for status, path in sorted(there, key=lambda each: each[0].st_mtime_ns):
        if taken + size <= cache_limit():
            return
        path.unlink(missing_ok=True)
        taken -= status.st_size


@dataclass
class Output:
    """Where a run writes: a folder, or one on this machine whose files go to a store."""

    folder: Path
    store: Store | None = None
    before: tuple[bytes, str] | None = None
    """The manifest that a store had when the run began, and its etag."""

    @property
    def target(self) -> "Path | Store":
        """Where workers put shards."""
        return self.folder if self.store is None else self.store

    @property
    def url(self) -> str:
        """The address of the store; empty if it is a folder."""
        return "" if self.store is None else self.store.url

    @property
    def has_shards(self) -> bool:
        """Whether a run has put any there."""
        if self.store is None:
            return any((self.folder / "receipts").glob("*.json"))
        return next(self.store.list("receipts"), None) is not None

    def keep(self, name: str) -> None:
        """Put a file there before the end, for workers and for whoever resumes the run. CONFIG says
        with which settings work began: a run with others is refused from then on."""
        if self.store is not None:
            self.store.put(self.folder / name, name)

    def recall(self, name: str) -> None:
        """Bring what a run before has kept."""
        if self.store is not None and (entry := self.store.head(name)) is not None:
            with (self.folder / name).open("wb") as stream:
                self.store.fetch(name, stream, (0, entry.size), entry.etag)

    def below(self, name: str) -> "Output":
        """A folder in it, for what a run writes on its way."""
        if self.store is None:
            return Output(own_folder(self.folder / name))
        return Output(self.folder / name, open_store(f"{self.store.url}/{name}"))

    def remove(self, *tops: str) -> None:
        """Remove files and folders that are needed no more, here and there."""
        for top in tops:
            path = self.folder / top
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            if self.store is not None:
                self.store.delete([top, *(entry.name for entry in self.store.list(top))])

    def publish(self) -> None:
        """Put the files that the manifest names, then the manifest: it replaces what was there when
        the run began, and nothing else. A local folder has all of it already."""
        if self.store is None:
            return
        content = read_bytes(self.folder / MANIFEST, JSON_BYTES)
        files = _files_of(self.store, MANIFEST, content)
        here = {name: each for name, each in files.items() if (self.folder / name).is_file()}
        for name, described in here.items():
            put_file(self.store, self.folder / name, name, described["sha256"])
        if self.before is not None and self.before[0] == content:
            return
        if not self.store.replace_if(MANIFEST, content, self.before and self.before[1]):
            raise StorageError(
                f"Another run has finished {self.store.url} with a different result while this one "
                "was working. The folder has the result of that run. The shards of this run are "
                "kept: to use them instead, run the command again with --replace."
            )
        if self.before is not None:
            old = _objects(_files_of(self.store, MANIFEST, self.before[0]))
            self.store.delete(old - _objects(files))

    def fetch(self, names: Iterable[str], files: Mapping[str, Mapping[str, Any]]) -> None:
        """Bring files that workers have put there into the folder."""
        if self.store is None:
            return
        store, there = self.store, {entry.name: entry for entry in self.store.list()}
        missing = [name for name in names if not (self.folder / name).exists()]
        make_room(sum(files[name]["bytes"] for name in missing))

        def fetch(name: str) -> None:
            entry = _entry(store, there, name, files[name])
            link(cached(store, entry, files[name]["sha256"]), self.folder / name)

        for _ in in_parallel(fetch, missing, _AT_ONCE):
            pass

    def is_whole(self, files: Mapping[str, Mapping[str, Any]]) -> bool:
        """Whether all files of a manifest are as they were written; of a store, nothing is read."""
        if self.store is None:
            return all(is_as_written(self.folder / name, each) for name, each in files.items())
        there = {entry.name: entry.size for entry in self.store.list()}
        return all(
            there.get(object_name(name, each["sha256"])) == each["bytes"]
            for name, each in files.items()
        )


def _objects(files: Mapping[str, Mapping[str, Any]]) -> set[str]:
    return {object_name(name, described["sha256"]) for name, described in files.items()}


def put_file(store: Store, path: Path, name: str, sha256: str) -> None:
    """A finished file, under the name that carries its hash."""
    store.put(path, object_name(name, sha256))


@contextlib.contextmanager
def open_output(where: Path, besides: Iterable[str] = ()) -> Iterator[Output]:
    """The place a command writes to; of a store, with what tells whether it may.

    `besides`: what may be there before CONFIG is.
    """
    if not is_url(where):
        make_output(where)
        yield Output(where)
        return
    store = open_store(where)
    found, settings = store.read(MANIFEST), store.read(CONFIG)
    if found is None and settings is None:
        others = (each.name for each in store.list() if each.name.split("/")[0] not in besides)
        first, settings = next(others, None), store.read(CONFIG)  # another run may just begin
        if first is not None and settings is None:
            raise StorageError(
                f"{store.url} holds other things ({first}, …). Choose a new or empty place for "
                "--out."
            )
    folder = new_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _ADDRESSES[folder] = store.url
    if settings is not None:
        write_text(folder / CONFIG, settings[0].decode("utf-8"))
    if found is not None:
        write_text(folder / MANIFEST, found[0].decode("utf-8"))
    yield Output(folder, store, found)
