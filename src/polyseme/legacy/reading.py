"""Weights out of untrusted files, without believing or running anything in them.

    in   an HDF5 file, or a torch file with a state dict
    out  float32 arrays by name

Files are parsed in a child process that is locked in (`sandbox.py`) and sends back a table: which
arrays lie where. Only after checking that table (`contents.py`) are the numbers read, here. A child
that crashes, hangs, or tells nonsense is a refused file. There is no other way in, and no switch.
"""

import contextlib
import importlib.util
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polyseme.errors import MissingExtraError, ModelError
from polyseme.legacy import sandbox
from polyseme.legacy.contents import Floats, RefusedError, check_specs, fetch, specs_from_json
from polyseme.legacy.hdf5 import write_hdf5
from polyseme.storage import archives

__all__ = ["extract_member", "read_hdf5", "read_member", "read_state_dict", "write_hdf5"]

PATIENCE = 60.0
"""Seconds a child may take; parsing takes a fraction of one, importing on a slow disk some."""
_LONGEST_ANSWER = 8 << 20
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from polyseme.legacy.child import main; main(sys.argv[2:])"
)


def read_member(archive: Path, name: str, *, limit: int) -> bytes:
    """The bytes of one member of a zip, at most `limit`."""
    with _refusal_explained(archive), archives.Archive(archive) as opened:
        return opened.read(name, limit=limit)


def extract_member(archive: Path, name: str, to: Path, *, limit: int) -> None:
    """The same into the file `to`: whole or not at all."""
    with _refusal_explained(archive):
        archives.extract_member(archive, name, to, limit=limit)


@contextlib.contextmanager
def _refusal_explained(archive: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise ModelError(f"There is no archive {archive}.") from error
    except archives.MissingMemberError as error:
        raise ModelError(f"In {archive}: {error}.") from error
    except archives.ArchiveError as error:
        raise ModelError(
            f"{archive} was refused: {error}. Copy it again from where it was published, or "
            "unpack it yourself and name the files in it."
        ) from error


def read_hdf5(path: Path) -> dict[str, Floats]:
    """The arrays of an HDF5 file by their full names, such as "CNN/W_cnn_0"."""
    if importlib.util.find_spec("h5py") is None:
        raise MissingExtraError.of("h5py", extra="hdf5", purpose="Reading HDF5 weights")
    return _read(path, "hdf5")


def read_state_dict(path: Path) -> dict[str, Floats]:
    """The tensors of a torch file that holds a state dict, in either of torch's containers."""
    return _read(path, "torch")


def _read(path: Path, kind: str) -> dict[str, Floats]:
    if not path.is_file():
        raise ModelError(f"There is no file {path}.")
    try:
        sandbox.check_system()
        with path.open("rb", buffering=0) as stream:
            size = os.fstat(stream.fileno()).st_size
            answer = _ask_child(kind, stream.fileno(), size)
            specs = specs_from_json(answer)
            check_specs(specs, size)
            return fetch(stream.fileno(), specs)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from error
    except sandbox.SandboxError as error:
        raise ModelError(f"{path} was not read. {error}") from error
    except RefusedError as error:
        raise ModelError(
            f"{path} was refused: {error}. Published weights are not like that; take the file "
            "again from where it was published, and compare its SHA-256 if one is given there."
        ) from error


def _ask_child(kind: str, descriptor: int, size: int) -> Any:
    """What a child says of the open file, or RefusedError."""
    text = _run_child([kind, str(descriptor), str(size)], descriptor)
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RefusedError("parsing it ended without an answer") from error
    if not isinstance(answer, dict) or len(answer) != 1:
        raise RefusedError("parsing it gave an invalid answer")
    if "no_sandbox" in answer:
        raise sandbox.SandboxError(_plain(answer["no_sandbox"]))
    if "arrays" not in answer:
        raise RefusedError(_plain(answer.get("refused", "parsing it gave an invalid answer")))
    return answer["arrays"]


def _run_child(arguments: list[str], descriptor: int) -> bytes:
    """Start the child, take what it says within limits of time and length, and see it end."""
    search = json.dumps([folder for folder in sys.path if folder])  # "" would be this folder
    child = subprocess.Popen(  # noqa: S603 - this same interpreter, and numbers
        [sys.executable, "-I", "-c", _START, search, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # an untrusted file's words have no business on our terminal
        pass_fds=[descriptor],
        env=_environment(),
    )
    assert child.stdout is not None
    try:
        text = _listen(child.stdout.fileno(), time.monotonic() + PATIENCE)
        code = child.wait(timeout=5)
    except subprocess.TimeoutExpired as error:
        raise RefusedError("parsing it did not come to an end") from error
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    if code:
        raise RefusedError(f"parsing it crashed (code {code})")
    return text


def _listen(pipe: int, deadline: float) -> bytes:
    parts: list[bytes] = []
    length = 0
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([pipe], [], [], left)[0]:
            break
        part = os.read(pipe, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)
        length += len(part)
        if length > _LONGEST_ANSWER:
            raise RefusedError("it has more arrays, or longer names, than any model")
    raise RefusedError(f"parsing it took more than {PATIENCE:.0f} seconds")


def _environment() -> dict[str, str]:
    """What finding shared libraries needs; one thread; and no plug-ins for HDF5."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PATH") if name in os.environ}
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return kept | threads | {"HDF5_PLUGIN_PRELOAD": "::"}


def _plain(told: Any) -> str:
    """A child's text without line breaks and terminal codes: parts of it come from the file."""
    text = told if isinstance(told, str) else "it was refused"
    return "".join(letter if letter.isprintable() else "?" for letter in text[:800])
