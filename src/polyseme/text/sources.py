"""What the user pointed at: files, folders and globs in, a list of `Source` out.

Nothing is read here but the first bytes of a file. Every file found is either a source or
named with the reason why it is not; none disappears.
"""

import codecs
import glob
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from polyseme.config import check_address
from polyseme.errors import InputError
from polyseme.limits import open_regular
from polyseme.storage.archives import Archive, ArchiveError
from polyseme.storage.files import ReadingHash
from polyseme.text.settings import CorpusConfig, InputFormat, TextLayout

Compression = Literal["gz", "bz2", "xz", "zst"]

_FORMATS: dict[str, InputFormat] = {
    ".txt": "text",
    ".text": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".conllu": "conllu",
    ".vrt": "vertical",
    ".vert": "vertical",
    ".xml": "tei",
    ".tei": "tei",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".epub": "epub",
    ".docx": "docx",
    ".pdf": "pdf",
}
_PACKED: frozenset[InputFormat] = frozenset(("parquet", "epub", "docx", "pdf"))
"""Formats that are compressed inside."""
_LOOKED_AT = 1024  # bytes of a file whose name does not tell the format, or may not tell it rightly
_COMPRESSIONS: dict[str, Compression] = {".gz": "gz", ".bz2": "bz2", ".xz": "xz", ".zst": "zst"}
LEAVES_FOLDER = "link that leads out of the folder; name it to have it read"


def ignore(_: int) -> None:
    """The listener where nobody listens."""


def ignore_span(_start: int, _stop: int) -> None:
    """What has to be done before a file of this machine is read."""


@dataclass(frozen=True, slots=True)
class Source:
    """One input file. `name` is its path below what the user named, the same on any machine."""

    path: Path
    name: str
    format: InputFormat
    compression: Compression | None
    bytes: int
    layout: TextLayout = "unwrapped"
    """Of plain text: as it was asked for, or detected; never `auto`."""
    outside: tuple[tuple[str, str | None], ...] = ()
    """Metadata that do not stand in it (`file_metadata.py`): columns and values."""
    on_read: Callable[[int], None] = field(default=ignore, compare=False, repr=False)
    """Called with how many more of its bytes have been read, again and again."""
    before_reading: Callable[[int, int], None] = field(
        default=ignore_span, compare=False, repr=False
    )
    """Called with a span of bytes that a plan is about to look at."""
    content: ReadingHash | None = field(default=None, compare=False, repr=False)
    """Told of its bytes as they are read."""


@dataclass(frozen=True, slots=True)
class FoundSources:
    """The sources, and the files passed over with the reason."""

    sources: list[Source]
    passed_over: list[tuple[str, str]]

    def summary(self) -> list[tuple[str, int, int]]:
        """Per kind of file: its description, how many, how many bytes."""
        files: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for source in self.sources:
            kind = source.format + (f", {source.compression}" if source.compression else "")
            files[kind] += 1
            sizes[kind] += source.bytes
        return [(kind, files[kind], sizes[kind]) for kind in sorted(files)]


def find_sources(inputs: Iterable[str], config: CorpusConfig) -> FoundSources:
    """All sources below the inputs, in the order given, each folder and glob sorted by name."""
    sources: list[Source] = []
    passed_over: list[tuple[str, str]] = []
    for given in inputs:
        for path, name, root in _files_of(given):
            source = _recognise(path, name, root, config.format)
            if isinstance(source, Source):
                sources.append(source)
            else:
                passed_over.append((_as_text(name), source))
    if not sources:
        raise InputError(
            f"No text was found in: {', '.join(inputs)}.",
            *(f"  {name}: {reason}" for name, reason in passed_over[:5]),
            f"Give files, folders or globs with names ending in {' '.join(_FORMATS)} "
            "(and .gz .bz2 .xz .zst), or say --format.",
        )
    twice = [name for name, count in Counter(s.name for s in sources).items() if count > 1]
    if twice:
        raise InputError(
            f"Two inputs have the same name: {twice[0]}. Documents are known by it. Name the "
            "folder that holds both, or rename one."
        )
    return FoundSources(sources, passed_over)


def without_endings(name: str) -> str:
    """A file's name without what tells its format and compression."""
    path = Path(name)
    if path.suffix.lower() in _COMPRESSIONS:
        path = path.with_suffix("")
    return path.stem if path.suffix.lower() in _FORMATS else path.name


def _files_of(given: str) -> list[tuple[Path, str, Path | None]]:
    """The files an input stands for, each with its name, and the folder that it must lie in."""
    try:
        check_address(given)
    except ValueError as error:
        raise InputError(f"{error}.") from error
    path = Path(given)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_symlink() or not file.is_dir())
        root = path.resolve()
        return [(file, file.relative_to(path).as_posix(), root) for file in files]
    if os.path.lexists(path):
        return [(path, path.name, None)]  # whoever names a link means what it leads to
    matches = sorted(glob.glob(given, recursive=True)) if glob.has_magic(given) else []  # noqa: PTH207
    if not matches:
        raise InputError(
            f"There is no file, folder or match for {given!r} (looked in {Path.cwd()})."
        )
    fixed = itertools.takewhile(lambda part: not glob.has_magic(part), path.parts)
    root = Path(*fixed).resolve()
    files = [Path(match) for match in matches if not Path(match).is_dir()]
    return [(file, file.name, root) for file in files]


def _recognise(
    path: Path, name: str, root: Path | None, stated: InputFormat | None
) -> Source | str:
    """The file as a source, or why it is not one."""
    if any(part.startswith(".") for part in Path(name).parts):
        return "hidden file"
    if not path.is_file():
        return _no_file(path)
    if root is not None and not path.resolve().is_relative_to(root):
        return LEAVES_FOLDER
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = _COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    if compression:
        suffixes.pop()
    named = _FORMATS.get(suffixes[-1]) if suffixes else None
    format_ = stated or (named if compression else _known_by_content(path, named) or named)
    if format_ is None:
        ending = path.suffix or "(no ending)"
        return f"unknown kind of file {ending}; make it plain text, or say --format if it is"
    if format_ in _PACKED and compression:
        return f"{format_} files are compressed inside; unpack this one"
    return Source(path, _as_text(name), format_, compression, path.stat().st_size)


def _known_by_content(path: Path, named: InputFormat | None) -> InputFormat | None:
    """The format that a file's first bytes show, where its name says another, or none.

    PDFs named .txt are common. Text is no such format: any file may look like it.
    """
    try:
        with open_regular(path) as stream:
            head = stream.read(_LOOKED_AT)
    except OSError:
        return None
    if head.startswith(b"%PDF-"):
        return "pdf"
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"PK\x03\x04"):
        return _kind_of_archive(path)
    start = head.removeprefix(codecs.BOM_UTF8).lstrip().lower()
    is_page = start.startswith((b"<!doctype html", b"<html"))
    return "html" if is_page and named in (None, "text") else None


def _kind_of_archive(path: Path) -> InputFormat | None:
    try:
        with Archive(path) as archive:
            names = set(archive.names)
    except (ArchiveError, OSError):
        return None
    if "META-INF/container.xml" in names:
        return "epub"
    return "docx" if "word/document.xml" in names else None


def _as_text(name: str) -> str:
    """A name need not be text on Linux; ours goes into every shard and into the manifest."""
    return name.encode("utf-8", errors="backslashreplace").decode("utf-8")


def _no_file(path: Path) -> str:
    """Why a path is not a file that can be read."""
    if not path.is_symlink():
        return "neither a file nor a folder"
    if path.is_dir():
        return "link to a folder, which is not followed; name the folder itself"
    return "link that leads to no file"  # where to, is of this machine; the manifest is not
