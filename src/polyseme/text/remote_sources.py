"""Texts in a store, planned and read as local files are.

    in   s3://bucket/texts, also with * and ** in the path
    out  files of the same names and sizes on this machine, empty but for what was fetched

A stand-in is as long as the text but takes no room: only its beginning is fetched, to see what it
is, its end, where Parquet and archives say what is in them, and what a plan must look at. A worker
makes a stand-in of its own for each piece, and fetches what the piece is. What a shard is made from
is known by the objects' etags: nothing is read again to find it done.
"""

import contextlib
import fnmatch
import glob
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from polyseme.errors import InputError
from polyseme.limits import open_regular
from polyseme.storage.files import stamp_of
from polyseme.storage.remote_folders import scratch_space
from polyseme.storage.store import Entry, Store, in_parallel, is_url, open_store, url_of
from polyseme.text.plan import Piece, ShardPieces, byte_ranges
from polyseme.text.sources import Source, ignore_span

_HEAD = 128 << 10
_PACKED_HEAD = 1 << 20  # a block of bzip2 gives nothing before its end
_TAIL = 64 << 10
_PACKED = (".gz", ".bz2", ".xz", ".zst")
_MARK = 4096  # the beginning of a file says how it is encoded


@dataclass(frozen=True)
class RemoteFile:
    """An object that is a text."""

    store: Store
    entry: Entry

    @property
    def identity(self) -> str:
        """What changes whenever the text does."""
        return f"{self.store.url}/{self.entry.name} {self.entry.etag} {self.entry.size}"

    def make(self, path: Path) -> None:
        """A stand-in, with nothing in it yet."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as stream:
            stream.truncate(self.entry.size)

    def fill(self, path: Path, start: int, stop: int) -> None:
        """Fetch a span of it into a stand-in."""
        span = max(0, start), min(stop, self.entry.size)
        if span[0] < span[1]:
            with path.open("rb+") as stream:
                stream.seek(span[0])
                self.store.fetch(self.entry.name, stream, span, self.entry.etag)

    def fill_ends(self, path: Path) -> None:
        """Fetch what tells what it is."""
        size = self.entry.size
        head = _PACKED_HEAD if path.suffix.lower() in _PACKED else _HEAD
        self.fill(path, 0, head)
        self.fill(path, max(head, size - _TAIL), size)
        self.fill_footer(path)

    def fill_footer(self, path: Path) -> None:
        """Fetch the whole footer, if it is Parquet; its last bytes are there."""
        with open_regular(path) as stream:
            stream.seek(max(0, self.entry.size - 8))
            tail = stream.read(8)
        if tail[4:] == b"PAR1":
            length = struct.unpack("<I", tail[:4])[0] + 8
            self.fill(path, self.entry.size - length, self.entry.size - min(length, _TAIL))


class RemoteInputs:
    """The inputs of a run, those in stores as stand-ins."""

    def __init__(self, inputs: Sequence[str], folder: Path) -> None:
        self._files: dict[Path, RemoteFile] = {}
        self.inputs = tuple(
            self._stand_in(given, folder / str(number)) if is_url(given) else given
            for number, given in enumerate(inputs)
        )
        """The same, all of this machine."""

    def _stand_in(self, given: str, folder: Path) -> str:
        url = url_of(given)
        fixed, magic = url, ""
        if glob.has_magic(url):
            parts = url.split("/")
            first = next(number for number, part in enumerate(parts) if glob.has_magic(part))
            fixed, magic = "/".join(parts[:first]), "/".join(parts[first:])
        store = open_store(fixed)
        found = [entry for entry in store.list() if _may_match(entry.name, magic)]
        top = folder / (fixed.rpartition("/")[2] or "bucket")
        if not found and not magic:
            fixed, _, name = url.rpartition("/")
            store = open_store(fixed) if fixed.count("/") >= 2 and name else store
            one = store.head(name)
            if one is None:
                raise InputError(f"There is no object, and nothing below it, at {url}.")
            found, top, magic = [one], folder, name
        for entry in found:
            path = top / entry.name
            if not path.resolve().is_relative_to(top.resolve()):
                raise InputError(f"{store.url}/{entry.name} leads out of its folder. Rename it.")
            self._files[path] = RemoteFile(store, entry)
            self._files[path].make(path)
        files = [path for path in self._files if path.is_relative_to(top)]
        for _ in in_parallel(lambda path: self._files[path].fill_ends(path), files):
            pass
        return str(top / magic) if magic else str(top)

    def known(self, sources: Sequence[Source]) -> list[Source]:
        """The sources, those in stores with a way to look at more of them."""
        return [
            replace(source, before_reading=_Filler(found, source.path))
            if (found := self._files.get(source.path))
            else source
            for source in sources
        ]

    def shards(self, planned: Sequence[ShardPieces]) -> list["ShardPieces | RemotePieces"]:
        """What the workers are given: those with pieces in stores fetch them."""
        return [self._shard(each) for each in planned]

    def _shard(self, planned: ShardPieces) -> "ShardPieces | RemotePieces":
        files = tuple(self._files.get(piece.source.path) for piece in planned.pieces)
        if not any(files):
            return planned
        plain = tuple(
            replace(piece, source=replace(piece.source, before_reading=ignore_span))
            for piece in planned.pieces
        )
        return RemotePieces(replace(planned, pieces=plain), files)


@dataclass(frozen=True)
class _Filler:
    file: RemoteFile
    path: Path

    def __call__(self, start: int, stop: int) -> None:
        self.file.fill(self.path, start, stop)


def _may_match(name: str, magic: str) -> bool:
    """Whether a name may fit a pattern; with ** in it, what fits is found out later."""
    if not magic or "**" in magic:
        return True
    pairs = zip(name.split("/"), magic.split("/"), strict=False)
    return name.count("/") == magic.count("/") and all(fnmatch.fnmatchcase(*each) for each in pairs)


@contextlib.contextmanager
def local_inputs(inputs: Sequence[str]) -> Iterator[RemoteInputs]:
    """The inputs of a run, for as long as it is planned and worked on."""
    if not any(map(is_url, inputs)):
        yield RemoteInputs(inputs, Path())
        return
    with scratch_space() as folder:
        yield RemoteInputs(inputs, folder)


@dataclass(frozen=True)
class RemotePieces:
    """The pieces that become one shard, some of them in a store."""

    planned: ShardPieces
    files: tuple[RemoteFile | None, ...]

    @property
    def name(self) -> str:
        """The shard's name."""
        return self.planned.name

    @property
    def size(self) -> int:
        """Input bytes of all pieces."""
        return self.planned.size

    def digest(self) -> str:
        """Hash of everything it is made from. Of what is in a store, nothing is read."""
        return self._digest(lambda piece: piece.content_hash().hexdigest())

    def identity(self) -> str:
        """The same, and nothing is read of local files either."""
        return self._digest(lambda piece: str(stamp_of(piece.source.path)))

    def _digest(self, of_local: Callable[[Piece], str]) -> str:
        return self.planned.digest(
            [
                of_local(piece) if file is None else file.identity
                for piece, file in zip(self.planned.pieces, self.files, strict=True)
            ]
        )

    def staged(self, folder: Path) -> ShardPieces:
        """The same pieces, fetched."""
        pieces = tuple(
            piece if file is None else _fetched(piece, file, folder / str(number))
            for number, (piece, file) in enumerate(
                zip(self.planned.pieces, self.files, strict=True)
            )
        )
        return replace(self.planned, pieces=pieces)


def _fetched(piece: Piece, file: RemoteFile, folder: Path) -> Piece:
    path = folder / piece.source.path.name
    file.make(path)
    moved = replace(piece, source=replace(piece.source, path=path))
    if piece.source.format == "parquet":
        file.fill(path, file.entry.size - _TAIL, file.entry.size)
        file.fill_footer(path)
        spans = byte_ranges(moved)
    else:
        spans = [(0, min(piece.start, _MARK)), (piece.start, piece.stop)]
    for start, stop in spans:
        file.fill(path, start, stop)
    return moved
