"""A folder of a few files that is finished when its manifest is there, and believed when it fits.

    manifest.json   SHA-256 of every file, what is told of them, and a hash of that

Models and trained tasks are such folders. They are passed on, so nothing in one is believed before
its hash fits. A name that any manifest or receipt tells is checked by `files_told`: it may not lead
out of the folder.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from polyseme.errors import ModelError, PolysemeError
from polyseme.files import canonical_json, describe_file, is_as_written, write_text
from polyseme.limits import FILE_BYTES, WEIGHTS_BYTES, read_json
from polyseme.shapes import FileFacts, check_shape

MANIFEST = "manifest.json"
SEED_PREFIX = "seed-"
"""How the folder of each seed begins, in that of a task."""
_SEAL = "told_sha256"  # of what is told beside the files, whose hashes are their own
# Plain letters only: what looks like a dot or a slash to people or to a file system is neither.
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_MOST_PARTS = 4


def is_inside(name: object) -> bool:
    """Whether a name from a file is relative, plain and without `..`: it stays in its folder."""
    if not isinstance(name, str):
        return False
    parts = name.split("/")
    return len(parts) <= _MOST_PARTS and all(map(_PART.fullmatch, parts))


def files_told(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What a manifest, or a receipt, tells of its files; ValueError if that cannot be believed."""
    files: dict[str, dict[str, Any]] = manifest["files"]
    check_shape(files, dict[str, FileFacts])
    for name in files:
        if not is_inside(name):
            raise ValueError(f"it names {name!r:.80}, which is no plain name inside its folder")
    return files


def check_holds(folder: Path, wanted: str, made_by: str, error: type[PolysemeError]) -> None:
    """Refuse a folder that holds no finished `wanted`, and say what it is instead.

    `made_by`: the command that makes one, but for its --out.
    """
    found = _what_holds(folder, wanted)
    if found is None:
        return
    raise error(f"{found} Make {_ARTICLES[wanted]} with: {made_by} --out {quote(str(folder))}")


_ARTICLES = {
    "corpus": "a corpus",
    "vectors": "a folder of vectors",
    "model": "a model",
    "task": "a task",
}
_SIGNS = (("vectors_format", "vectors"), ("accounting", "corpus"), ("feed", "task"))
"""What only one kind of manifest has."""


def _what_holds(folder: Path, wanted: str) -> str | None:
    """What stands where `wanted` was expected, in words; None if it may be that."""
    name = quote(str(folder))
    article = _ARTICLES[wanted]
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
    stopped = "that was stopped before its end (the same command again goes on with it)"
    if (folder / "checkpoints").is_dir() or any(folder.glob(f"{SEED_PREFIX}*")):
        return f"a training run {stopped}"
    if (folder / "receipts").is_dir():
        return f"a run of prepare or embed {stopped}"
    there = sorted(path.name for path in folder.iterdir())[:3]
    return f"other things ({', '.join(there)})" if there else "nothing"


def _kind_of(manifest: Path) -> str | None:
    """What a manifest is of, by its keys; None if it cannot be read: whoever opens it says why."""
    try:
        values = read_json(manifest)
        found = next((kind for key, kind in _SIGNS if key in values), None)
        return found or ("model" if "preparation" in values and "facts" in values else None)
    except (OSError, ValueError, TypeError):
        return None


@dataclass(frozen=True)
class Kind:
    """What a kind of folder must have."""

    name: str
    """What is in it: "model"."""
    version: int
    """The format that is written and read."""
    files: frozenset[str]
    """Those without which it is none."""
    told: tuple[str, ...]
    """What its manifest tells beside the files."""
    made_by: str
    """The command that makes one, but for its --out."""
    shape: Any = dict[str, Any]
    """What the manifest must look like, as a type: that which is read of it."""


def seal_folder(folder: Path, kind: Kind, files: Iterable[str], **told: Any) -> None:
    """Write the manifest of files that are there: it makes them a finished whole."""
    assert set(told) == set(kind.told), told.keys()
    manifest = {
        "format": kind.version,
        **told,
        _SEAL: _seal(told),
        "files": {name: describe_file(folder / name) for name in files},
    }
    write_text(folder / MANIFEST, canonical_json(manifest))


def open_sealed(folder: Path, kind: Kind, weights: Callable[[Path], Any]) -> dict[str, Any]:
    """What is told of the files in a finished folder, each held against its hash.

    `weights` looks at a file of weights first: hashing takes as long as a file says it is.
    """
    manifest = read_manifest(folder, kind)
    for name, described in manifest["files"].items():
        _check_size(folder / name, described)
        if name.endswith(".safetensors"):
            weights(folder / name)
    for name, described in manifest["files"].items():
        if not is_as_written(folder / name, described):
            raise ModelError(
                f"{folder / name} is missing or not as it was written (SHA-256 differs from "
                f"{MANIFEST}). Take the whole folder anew from where it came."
            )
    return {name: manifest[name] for name in kind.told}


def read_manifest(folder: Path, kind: Kind) -> dict[str, Any]:
    """The manifest, if it is whole and tells of a folder of this kind; files are not looked at."""
    path = folder / MANIFEST
    check_holds(folder, kind.name, kind.made_by, ModelError)
    try:
        manifest: dict[str, Any] = read_json(path)
        version = manifest["format"]
        files = files_told(manifest)
        check_shape(manifest, kind.shape)
        is_whole = manifest[_SEAL] == _seal({name: manifest[name] for name in kind.told})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{path} is damaged, or is not that of a {kind.name}: {error}. Take the folder anew."
        ) from error
    if version != kind.version:
        raise ModelError(
            f"{folder} has {kind.name} format {version}, this version of Polyseme reads "
            f"{kind.version}. Use the version that made it."
        )
    is_flat = all("/" not in name for name in files)
    if not (is_flat and files.keys() >= kind.files and is_whole):
        raise ModelError(
            f"{path} does not tell of a {kind.name}'s own files. Take the folder anew."
        )
    return manifest


def _check_size(path: Path, described: Mapping[str, Any]) -> None:
    limit = WEIGHTS_BYTES if path.suffix == ".safetensors" else FILE_BYTES
    size = path.stat().st_size if path.is_file() else None
    if size is None or size != described.get("bytes", size) or size > limit:
        raise ModelError(
            f"{path} is missing or not as it was written: {size or 0:,} bytes, {MANIFEST} tells of "
            f"{described.get('bytes')}, at most {limit:,} are read. Take the whole folder anew "
            "from where it came."
        )


def _seal(told: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(told).encode("utf-8")).hexdigest()
