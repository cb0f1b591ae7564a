"""The process in which an untrusted file is parsed: it locks itself in, looks, tells, and ends.

    in   arguments: which format, the descriptor of the open file, its size
    out  one JSON object on standard output: {"arrays": [...]}, {"refused": why} or
         {"no_sandbox": why}

Started by `reading.py` and by nobody else. All that is needed is imported before the lock falls.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import BinaryIO, NoReturn

from polyseme.legacy import hdf5, sandbox, torch_files
from polyseme.legacy.contents import ArraySpec, RefusedError

FORMATS: dict[str, tuple[Callable[[], None], Callable[[BinaryIO, int], list[ArraySpec]]]] = {
    "hdf5": (hdf5.warm_up, hdf5.find_arrays),
    "torch": (torch_files.warm_up, torch_files.find_tensors),
}


def main(arguments: list[str]) -> None:
    """Parse one file and tell what is in it."""
    kind, descriptor, size = arguments[0], int(arguments[1]), int(arguments[2])
    stream = os.fdopen(descriptor, "rb")
    warm_up, find = FORMATS[kind]
    warm_up()
    try:
        sandbox.lock()
    except sandbox.SandboxError as error:
        _tell({"no_sandbox": error.reason})
    try:
        specs = find(stream, size)
        _tell({"arrays": [spec.to_json() for spec in specs]})
    except RefusedError as error:
        _tell({"refused": str(error)[:500]})
    except MemoryError:
        _tell({"refused": "reading it takes more memory than weights need"})


def _tell(answer: dict[str, object]) -> NoReturn:
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    # Without the interpreter's farewell, in which libraries would still touch the file.
    os._exit(0)
