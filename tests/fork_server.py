"""Processes that have loaded the large libraries, but nothing of Polyseme: a command in one of them
begins as in any other, and costs a second instead of four.

    python tests/fork_server.py

Reads requests from standard input, a line of JSON each: the words, the folder, the environment, and
the files for what is printed. Answers each with the exit code and the processor seconds.
"""

import contextlib
import importlib
import json
import os
import runpy
import sys
from typing import Any

# What most commands need: importing them takes longer than all else that a small command does.
LIBRARIES = (
    "numpy", "pyarrow", "pyarrow.parquet", "pyarrow.compute", "duckdb", "pydantic", "typer",
    "rich.progress", "spacy", "torch", "safetensors.torch", "scipy.stats", "scipy.sparse",
    "sklearn.linear_model", "sklearn.cluster",
)  # fmt: skip


def main() -> None:
    """Answer until there are no more requests."""
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert not [name for name in sys.modules if name.startswith("polyseme")]
    for line in sys.stdin:
        child = os.fork()
        if not child:
            run(**json.loads(line))
        _, status, used = os.wait4(child, 0)
        print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, flush=True)


def run(words: list[str], cwd: str, environment: dict[str, str], files: list[str]) -> None:
    """Be `python -m polyseme`; does not return."""
    for descriptor, file in enumerate([os.devnull, *files]):
        flags = os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(file, flags), descriptor)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode) for n, mode in _STREAMS)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["polyseme", *words]
    code: Any = 1
    try:
        runpy.run_module("polyseme", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001  # as the interpreter does at its end
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(ValueError):  # a stream that the command has closed
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code or 0)


_STREAMS = ((0, "r"), (1, "w"), (2, "w"))

if __name__ == "__main__":
    main()
