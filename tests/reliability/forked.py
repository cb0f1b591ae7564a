"""Processes that begin with everything imported, to be killed or traced: each costs what it does,
and not the seconds that Python and torch take to begin."""

import functools
import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_IMPORTED = [
    # The last two are what pyarrow and torch's optimizers load when they are first used.
    *("pytest", "duckdb", "spacy", "pandas", "torch._dynamo"),
    *("polyseme.cli.app", "polyseme.cli.terminal"),
    *("polyseme.text.shards", "polyseme.text.word_counts", "polyseme.tasks.comparison"),
    *(f"polyseme.commands.{name}" for name in ("compare", "embed", "index", "prepare")),
    *(f"polyseme.commands.{name}" for name in ("pretrain", "push", "train")),
]


@functools.cache
def context() -> Any:
    """Of `multiprocessing`: what it starts is forked from one that has imported all this."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(_IMPORTED)
    return found


class Forked:
    """A function in a process of its own, with the environment of this one; what it says goes to a
    file. One that is held does nothing until it is let go."""

    def __init__(
        self, function: Callable[..., object], *given: object, said: Path, is_held: bool = False
    ) -> None:
        gate, self._key = context().Pipe()
        place = (dict(os.environ), str(Path.cwd()), str(said))
        self._process = context().Process(target=_begin, args=(gate, place, function, given))
        self._process.start()
        gate.close()  # the process has its own; if it dies, nobody waits for it
        self.said = said
        if is_held:
            self._key.recv_bytes()  # until it has imported the function
        else:
            self.let_go()

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    def let_go(self) -> None:
        self._key.send_bytes(b"go")

    def poll(self) -> int | None:
        """The exit code, or None while it works."""
        found: int | None = self._process.exitcode
        return found

    def wait(self, seconds: float | None = None) -> int | None:
        self._process.join(seconds)
        return self.poll()

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()


def _begin(gate: Any, place: tuple[dict[str, str], str, str], function: Any, given: Any) -> None:
    environment, folder, said = place
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for stream in (1, 2):
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    sys.dont_write_bytecode = True  # or the first of several would do more than the others
    gate.send_bytes(b"here")
    gate.recv_bytes()
    code = function(*given)
    sys.exit(code if isinstance(code, int) else 0)


def polyseme(*words: object) -> None:
    """The command line, where nothing else is done."""
    from polyseme.cli.app import main

    sys.argv = ["polyseme", *map(str, words)]
    main()
