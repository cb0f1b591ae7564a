"""A folder that is finished when its manifest is there, and believed when it fits.

    manifest.json   SHA-256 of every file, metadata, and a hash of that

Corpora, models, vectors and trained tasks are such folders. Models and tasks are passed on, so
nothing in one is believed before its hash fits. A name in any manifest or receipt is checked by
`listed_files`: it may not lead out of the folder.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any

from polyseme.config import Settings, build, differences, read_toml
from polyseme.errors import ModelError, PolysemeError
from polyseme.limits import FILE_BYTES, WEIGHTS_BYTES, read_json
from polyseme.storage.files import WORK, canonical_json, is_as_written, write_text
from polyseme.storage.shapes import FileInfo, check_shape

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
    if not (kind or is_hf or folder.is_file() or _holds_other_things(folder)):
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


def _holds_other_things(folder: Path) -> bool:
    return folder.is_dir() and _unfinished(folder).startswith("other things")


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
    """The format that is written and read."""
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
        if version == artifact.version:
            check_shape(manifest, artifact.shape)
            _check_whole(manifest, files, artifact)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise artifact.damaged(folder, error) from error
    if version != artifact.version:
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


def _check_whole(
    manifest: Mapping[str, Any], files: Mapping[str, Any], artifact: ArtifactType
) -> None:
    if manifest[_DIGEST] != _digest({name: manifest[name] for name in artifact.metadata_keys}):
        raise ValueError(f"{_DIGEST} does not fit")
    for name in files:
        top, _, rest = name.rpartition("/")
        if top and (top not in artifact.folders or not rest):
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
