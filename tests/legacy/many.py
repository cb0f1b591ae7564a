"""Reads every file of a folder as untrusted weights, each in a locked process of its own.

    python many.py FORMAT FOLDER [MODE]

As `reading.py` does, except that the processes are forked from one that has imported everything
already: a thirtieth of the time. A listener in each (`sys.addaudithook`) ends it with code 99 if
Python is asked to run, import, open or start anything after the lock fell. Tells as JSON what
became of each file, and how much memory the largest process took.

Modes are for showing that the guards are what guards. All obey pickles with Python's own unpickler:
`watched` under the listener alone, `sandboxed` under the lock alone, `free` under neither.
"""

import json
import os
import pickle
import resource
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from polyseme.errors import ModelError
from polyseme.legacy import child, reading, sandbox
from polyseme.legacy.contents import ArraySpec, RefusedError

QUIET = {"object.__getattr__", "object.__setattr__", "object.__delattr__", "sys._getframe"}
QUIET |= {"builtins.id"}
LOUD = ("pickle.", "marshal.", "exec", "compile", "import", "os.system", "os.exec", "os.spawn",
        "os.posix_spawn", "subprocess.", "socket.", "ctypes.", "shutil.")  # fmt: skip
"""What the process that starts the others has no need of either."""
CODE = 99
MODE = "".join(sys.argv[3:])


def watch() -> None:
    """From now on, any event that parsing has no need of ends the process."""

    def listener(event: str, arguments: Any) -> None:
        if event not in QUIET and not event.startswith(("gc.", "cpython.", "array.", "mmap.")):
            os._exit(CODE)

    sys.addaudithook(listener)


def be_child(arguments: list[str], pipe: int) -> NoReturn:
    os.dup2(pipe, 1)
    lock = sandbox.lock

    def guard() -> None:
        if MODE in ("", "sandboxed"):
            lock()
        if MODE in ("", "watched"):
            watch()

    sandbox.lock = guard
    try:
        child.main(arguments)
    finally:
        os._exit(1)


def run_forked(arguments: list[str], descriptor: int) -> bytes:
    """In the place of `reading._run_child`. The descriptor is open here and so in the child."""
    theirs, ours = os.pipe()
    process = os.fork()
    if not process:
        be_child(arguments, ours)
    os.close(ours)
    try:
        text = reading._listen(theirs, time.monotonic() + reading.PATIENCE)
    finally:
        os.close(theirs)
        _, status = os.waitpid(process, 0)
    if status:
        code = os.waitstatus_to_exitcode(status)
        raise RefusedError(f"parsing it crashed (code {code})")
    return text


def obey(stream: BinaryIO, _: int) -> list[ArraySpec]:
    """What no reader must do."""
    pickle.load(stream)
    return []


def outcome(kind: str, path: Path) -> str:
    try:
        arrays = reading._read(path, kind)
    except ModelError as error:
        return f"refused: {str(error).partition('was refused: ')[2] or error}"
    size = sum(array.nbytes for array in arrays.values())
    return f"read {len(arrays)} arrays of {size} bytes"


def main() -> None:
    kind, folder = sys.argv[1], Path(sys.argv[2])
    reading._run_child = run_forked
    warm_up, find = child.FORMATS[kind]
    warm_up()
    child.FORMATS[kind] = (lambda: None, obey if MODE else find)
    heard: list[str] = []
    sys.addaudithook(lambda event, _: heard.append(event) if event.startswith(LOUD) else None)
    started = time.monotonic()
    outcomes = {path.name: outcome(kind, path) for path in sorted(folder.iterdir())}
    seconds = time.monotonic() - started
    told = {"outcomes": outcomes, "bytes": most_memory(), "seconds": seconds, "heard": heard}
    print(json.dumps(told))


def most_memory() -> int:
    """The most this process or one of its children ever held."""
    # Not getrusage for ourselves: it counts what the process that started us held.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    ours = int(status.partition("VmHWM:")[2].split()[0])
    return max(ours, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) << 10


if __name__ == "__main__":
    main()
