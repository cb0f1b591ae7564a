"""Names to bytes, in a bucket or in a folder: the few operations that a run over shards needs.

    in   s3://BUCKET/PATH, gs://…, az://…, or file:///PATH
    out  list, read, fetch, put, create, replace_if, delete of the objects below it

There is no rename and no lock in a bucket. So an object appears whole or not at all, and two
operations are conditional: `create` lets one writer of a name win, and `replace_if` replaces what
was seen before and nothing else. Whoever commits by these two needs no lock.

Buckets are spoken to by obstore (extra [cluster]). Credentials are those of the environment, as
the tools of each cloud have them; none is part of an address, of a message or of a file of ours.
"""

import functools
import os
import re
import shutil
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from polyseme.config import REMOTE_SCHEMES
from polyseme.errors import ConfigError, StorageError, extra_needed_for
from polyseme.limits import JSON_BYTES, LimitError, check_size, open_regular, read_bytes
from polyseme.storage.files import hold_file, publish, scratch_for

Result = TypeVar("Result")

PARALLEL = 16
"""Requests in hand at once where many small objects are read: a bucket answers in tens of ms."""
_CHUNK = 8 << 20
_TRIES = 6
_FIRST_PAUSE = 0.2  # seconds; doubled after each try
_ADDRESS = re.compile(r"([a-z0-9]+):/+(.*)", re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """An object as a listing has it."""

    name: str
    size: int
    etag: str
    """Changes whenever the object does."""


class Listing:
    """Sizes of objects by name, in some 80 bytes each."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._names, self._ends, self._sizes = bytearray(), array("Q"), array("Q")
        for entry in entries:  # sorted by name
            self._names += entry.name.encode()
            self._ends.append(len(self._names))
            self._sizes.append(entry.size)

    def _name(self, number: int) -> str:
        return self._names[self._ends[number - 1] if number else 0 : self._ends[number]].decode()

    def size(self, name: str) -> int | None:
        """That of an object; None if it is not there."""
        at = bisect_left(range(len(self._sizes)), name, key=self._name)
        return self._sizes[at] if at < len(self._sizes) and self._name(at) == name else None


class Store(Protocol):
    """Objects below one address. Names are relative to it, with slashes; picklable."""

    @property
    def url(self) -> str:
        """The address, as it is shown."""

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """All objects whose names begin with a folder's name, sorted by name."""

    def head(self, name: str) -> Entry | None:
        """One object as a listing has it; None if there is none."""

    def read(self, name: str) -> tuple[bytes, str] | None:
        """All of a small object and its etag; None if there is none."""

    def fetch(self, name: str, into: IO[bytes], span: tuple[int, int], etag: str) -> None:
        """Write the bytes of a span to a file that is open at the right place.

        StorageError if the object is not there or has another etag by now.
        """

    def put(self, path: Path, name: str) -> None:
        """A local file as an object, which takes the place of one of this name."""

    def create(self, name: str, data: bytes) -> bool:
        """A small object; False if other bytes are there under this name, which are left alone."""

    def replace_if(self, name: str, data: bytes, etag: str | None) -> bool:
        """A small object in place of that with this etag (None: of none); False if other bytes
        are there by now."""

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects; those that are not there are no error."""


def is_url(where: str | os.PathLike[str]) -> bool:
    """Whether this is the address of a store, not a path. A `Path` keeps one slash of two."""
    found = _ADDRESS.match(os.fspath(where))
    return found is not None and found[1] in REMOTE_SCHEMES


def url_of(where: str | os.PathLike[str]) -> str:
    """The address of a store as it was given, also if it has been a `Path` since."""
    found = _ADDRESS.match(os.fspath(where))
    assert found is not None, where
    return f"{found[1]}://{'/' if found[1] == 'file' else ''}{found[2].strip('/')}"


def open_store(where: str | os.PathLike[str]) -> Store:
    """The store at an address. Nothing is sent yet."""
    url = url_of(where)
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query:
        raise ConfigError(
            f"The address of a store ({parts.scheme}://{parts.hostname or ''}…) holds a key. Give "
            "it without: keys are taken from the environment (AWS_ACCESS_KEY_ID and the like)."
        )
    if parts.scheme == "file":
        return FolderStore(Path(unquote(parts.path)))
    if not parts.netloc:
        raise ConfigError(f"{url} names no bucket. Write it as {parts.scheme}://BUCKET/PATH.")
    return Bucket(url)


def in_parallel(
    function: Callable[[Any], Result], values: Iterable[Any], at_once: int = PARALLEL
) -> Iterator[Result]:
    """A function of many small objects, each answer in its turn."""
    with ThreadPoolExecutor(at_once) as threads:
        yield from threads.map(function, values)


@dataclass(frozen=True)
class FolderStore:
    """A store in a folder of this machine or of a file system that all machines share."""

    folder: Path

    @property
    def url(self) -> str:
        """The address, as it is shown."""
        return self.folder.absolute().as_uri()

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """What has been published: no scratch files."""
        for path in sorted((self.folder / prefix).rglob("*")):
            name = path.relative_to(self.folder).as_posix()
            if path.is_file() and not any(part.startswith(".") for part in name.split("/")):
                yield Entry(name, path.stat().st_size, _etag(path))

    def head(self, name: str) -> Entry | None:
        """A file."""
        path = self.folder / name
        return Entry(name, path.stat().st_size, _etag(path)) if path.is_file() else None

    def read(self, name: str) -> tuple[bytes, str] | None:
        """All of a small file."""
        path = self.folder / name
        try:
            return read_bytes(path, JSON_BYTES), _etag(path)
        except FileNotFoundError:
            return None

    def fetch(self, name: str, into: IO[bytes], span: tuple[int, int], etag: str) -> None:
        """Copy bytes."""
        path = self.folder / name
        try:
            with open_regular(path) as stream:
                if _etag(path) != etag:
                    raise StorageError(_changed(self.url, name))
                stream.seek(span[0])
                left = span[1] - span[0]
                while left and (data := stream.read(min(_CHUNK, left))):
                    left -= into.write(data)
        except FileNotFoundError as error:
            raise StorageError(_gone(self.url, name)) from error

    def put(self, path: Path, name: str) -> None:
        """Copy, then publish."""
        with scratch_for(self.folder / name) as scratch:
            shutil.copyfile(path, scratch)

    def create(self, name: str, data: bytes) -> bool:
        """Nothing is replaced: whoever holds the name's lock first wins."""
        return self.replace_if(name, data, None)

    def replace_if(self, name: str, data: bytes, etag: str | None) -> bool:
        """Compared and replaced while nobody else can."""
        final = self.folder / name
        with hold_file(final, wait=60):
            found = self.read(name)
            if (found and found[1]) != etag:
                return found is not None and found[0] == data
            scratch = final.parent / f".{final.name}"
            scratch.write_bytes(data)
            publish(scratch, final)
        return True

    def delete(self, names: Iterable[str]) -> None:
        """Remove files."""
        for name in names:
            (self.folder / name).unlink(missing_ok=True)


def _etag(path: Path) -> str:
    status = path.stat()
    return f"{status.st_size:x}-{status.st_mtime_ns:x}-{status.st_ino:x}"


@dataclass(frozen=True)
class Bucket:
    """A store in S3, in Google Cloud Storage, in Azure, or in what speaks as one of them."""

    url: str

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """A thousand names a request."""
        with self._explained(prefix) as obstore:
            found = [
                Entry(meta["path"], meta["size"], meta["e_tag"] or "")
                for chunk in obstore.list(_client(self.url), prefix or None)
                for meta in chunk
            ]
        yield from sorted(found, key=lambda entry: entry.name)

    def head(self, name: str) -> Entry | None:
        """One request."""
        with self._explained(name) as obstore:
            try:
                meta = obstore.head(_client(self.url), name)
            except FileNotFoundError as error:
                _check_bucket(error)
                return None
            return Entry(name, meta["size"], meta["e_tag"] or "")

    def read(self, name: str) -> tuple[bytes, str] | None:
        """One request."""
        with self._explained(name) as obstore:
            try:
                found = obstore.get(_client(self.url), name)
                try:
                    check_size(f"{self.url}/{name}", found.meta["size"], JSON_BYTES)
                except LimitError as error:
                    raise StorageError(f"{error}.") from error
                return bytes(found.bytes()), found.meta["e_tag"] or ""
            except FileNotFoundError as error:
                _check_bucket(error)
                return None

    def fetch(self, name: str, into: IO[bytes], span: tuple[int, int], etag: str) -> None:
        """Ranges, each on condition that the object is still the one that was listed."""
        for start in range(span[0], span[1], _CHUNK):
            wanted = {"range": (start, min(start + _CHUNK, span[1])), "if_match": etag or None}
            with self._explained(name) as obstore:
                try:
                    found = obstore.get(_client(self.url), name, options=wanted)
                    into.write(found.bytes())
                except FileNotFoundError as error:
                    raise StorageError(_gone(self.url, name)) from error
                except obstore.exceptions.PreconditionError as error:
                    raise StorageError(_changed(self.url, name)) from error

    def put(self, path: Path, name: str) -> None:
        """In one request, or in parts that become an object when all have arrived."""
        with self._explained(name) as obstore:
            obstore.put(_client(self.url), name, path, chunk_size=_CHUNK, max_concurrency=4)

    def create(self, name: str, data: bytes) -> bool:
        """If-None-Match: one of several writers wins."""
        return self._put_if(name, data, "create")

    def replace_if(self, name: str, data: bytes, etag: str | None) -> bool:
        """If-Match."""
        return self._put_if(name, data, "create" if etag is None else {"e_tag": etag})

    def _put_if(self, name: str, data: bytes, mode: Any) -> bool:
        """A put whose answer was lost may have been done: so a refusal is none if it was ours."""
        pause = _FIRST_PAUSE
        for left in reversed(range(_TRIES)):
            with self._explained(name) as obstore:
                refused = (
                    obstore.exceptions.AlreadyExistsError,
                    obstore.exceptions.PreconditionError,
                )
                try:
                    obstore.put(_client(self.url), name, data, mode=mode)
                    return True
                except refused:
                    found = self.read(name)
                    return found is not None and found[0] == data
                except obstore.exceptions.GenericError:
                    if not left:
                        raise
            time.sleep(pause)
            pause *= 2
        raise AssertionError

    def delete(self, names: Iterable[str]) -> None:
        """Many names a request, where the store can."""
        chosen = sorted(names)
        with self._explained(chosen[0] if chosen else "") as obstore:
            try:
                if chosen:
                    obstore.delete(_client(self.url), chosen)
            except FileNotFoundError as error:
                _check_bucket(error)

    @contextmanager
    def _explained(self, name: str) -> Iterator[Any]:
        """obstore, its errors turned into ours: what it says may quote a key, so it is not told."""
        obstore = _obstore()
        try:
            yield obstore
        except (obstore.exceptions.BaseError, FileNotFoundError) as error:
            where = f"{self.url}/{name}" if name else self.url
            raise StorageError(f"{where}: {_reason(error)}") from None


def _check_bucket(error: FileNotFoundError) -> None:
    """No object is an answer; no bucket is an error."""
    if "NoSuchBucket" in str(error):
        raise error


@functools.lru_cache(maxsize=64)
def _client(url: str) -> Any:
    """The client of an address, with the credentials of this process's environment."""
    obstore = _obstore()
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
    try:
        return obstore.store.from_url(
            url,
            # An endpoint of one's own without TLS was chosen by whoever has set it.
            client_options={"allow_http": endpoint.startswith("http://"), "timeout": "60 seconds"},
            retry_config={
                "max_retries": int(os.environ.get("AWS_MAX_ATTEMPTS", "8")),
                "retry_timeout": timedelta(seconds=120),
                "backoff": {
                    "init_backoff": timedelta(seconds=0.1),
                    "max_backoff": timedelta(seconds=10),
                    "base": 2,
                },
            },
        )
    except (obstore.exceptions.BaseError, ValueError) as error:
        raise StorageError(f"{url}: {_reason(error)}") from None


def _obstore() -> Any:
    with extra_needed_for("Working from and to a bucket"):
        import obstore
        import obstore.exceptions
        import obstore.store
    return obstore


_CODE = re.compile(r"<Code>([A-Za-z]{1,64})</Code>")
_STATUS = re.compile(r"status code: (\d{3}[ A-Za-z]{0,40})")
_AGAIN = "Finished shards are kept: run the same command again and it goes on with the rest."


def _reason(error: Exception) -> str:
    """What went wrong and what to do, in words that hold no key and no signature."""
    text = str(error)
    code = next(iter(_CODE.findall(text) or _STATUS.findall(text)), "").strip()
    told = f" ({code})" if code else ""
    if "Expired" in code:
        return f"the credentials have expired{told}. Renew them. {_AGAIN}"
    kind = type(error).__name__
    if kind in ("PermissionDeniedError", "UnauthenticatedError") or "403" in code or "401" in code:
        return (
            f"the store refuses the credentials of the environment{told}. Set those of a user who "
            "may list, read, write and delete there (for S3: AWS_ACCESS_KEY_ID, "
            f"AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, or a role). {_AGAIN}"
        )
    if isinstance(error, FileNotFoundError):
        return "there is no such bucket. Make it, or check the name and AWS_ENDPOINT_URL."
    if kind == "GenericError":
        return (
            f"the store did not answer as it should, though asked again and again{told}. Check the "
            f"network, AWS_ENDPOINT_URL and AWS_REGION. {_AGAIN}"
        )
    return f"the store refused the request{told or f' ({kind})'}. {_AGAIN}"


def _changed(url: str, name: str) -> str:
    return (
        f"{url}/{name} was changed since it was listed. Let nothing write to it, then run the same "
        "command again."
    )


def _gone(url: str, name: str) -> str:
    return f"{url}/{name} was there when the run began and is gone. Put it back, and run again."
