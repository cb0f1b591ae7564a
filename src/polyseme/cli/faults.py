"""What went wrong as an error a user can act on: outside Polyseme, inside it, or in what was typed.

Click suggests what is spelled alike: `--coarser` for `--corpus`. Here are the names that other
programs have given people, what a setting that needs no option is called, and how commands were
called before they all had one grammar.
"""

import errno
import os
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polyseme.errors import (
    AccessError,
    ConfigError,
    InputError,
    InternalError,
    OutOfMemoryError,
    PolysemeError,
    StorageError,
)
from polyseme.storage.files import WORK
from polyseme.storage.folders import HF_PREFIX, holds
from polyseme.storage.installed import MODELS, TASKS

# Torch, Arrow, DuckDB and C++ say so in words only.
_OUT_OF_MEMORY = (
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "out of memory",
    "bad_alloc",
    "bad allocation",
)
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}
_NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG}


def explain(error: Exception) -> PolysemeError:
    """The error to show: this one, if it is written for users, or one that explains it."""
    if isinstance(error, PolysemeError):
        return error
    if _is_out_of_memory(error):
        return OutOfMemoryError(
            f"There was not enough memory ({_first_line(error)}). Finished work is kept. "
            "Use fewer --workers, smaller batches (--set batches.words=1024, or training.batch=8 "
            "of a task), a smaller model or vocabulary, or a machine with more memory."
        )
    if isinstance(error, OSError) and error.errno is not None:
        return _explain_system(error)
    return _explain_bug(error)


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    # Only what libraries raise: a file name that says so proves nothing.
    text = "" if isinstance(error, OSError | ValueError | LookupError) else str(error).lower()
    return any(words in text for words in _OUT_OF_MEMORY)


def _explain_system(error: OSError) -> PolysemeError:
    """What the operating system refused, by its number."""
    given = [os.fsdecode(name) for name in (error.filename, error.filename2) if _is_name(name)]
    names = list(dict.fromkeys(map(_as_named, given)))
    where = " and ".join(names) or "A file"
    reason = os.strerror(error.errno or 0)
    if error.errno in _NOT_ALLOWED:
        return AccessError(
            f"{where} cannot be read or written by this user: {reason}. Change its permissions "
            "(ls -ld shows them), or name another place."
        )
    if error.errno in _NOT_THERE:
        return InputError(
            f"{where} cannot be opened: {reason}. Check the name, and that nothing else moved it."
        )
    return StorageError(
        f"{where} could not be read or written: {reason}. Finished work is kept: fix that "
        "and run the same command again."
    )


def _as_named(path: str) -> str:
    """A path as its user knows it: without what only we put into a folder while we work."""
    folder, found, _ = path.partition(f"{os.sep}{WORK}")
    return folder if found else path.removesuffix(f"{os.sep}.lock")


def _is_name(value: object) -> bool:
    return isinstance(value, str | bytes | os.PathLike)


def _explain_bug(error: Exception) -> PolysemeError:
    """Nobody's fault but ours: say so, and keep what is needed to mend it."""
    lines = traceback.format_exception(error)
    try:
        handle, name = tempfile.mkstemp(prefix="polyseme-", suffix=".traceback.txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(lines)
        where = [f"Please report it with the file {name}, which has the details."]
    except OSError:
        where = ["Please report it with these lines:", *"".join(lines).splitlines()]
    return InternalError(
        f"This is a bug in Polyseme ({_first_line(error)}). Finished work is kept.",
        *where,
    )


def _first_line(error: Exception) -> str:
    line = next(iter(str(error).splitlines()), "")[:300]
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


_SYNONYMS = {
    "--corpus": ("--in",),
    "--folder": ("--in",),
    "--dir": ("--in",),
    "--input": ("--in",),
    "--filter": ("--where",),
    "--query": ("--where",),
    "-o": ("--out",),
    "--output": ("--out",),
    "--html": ("--report",),
    "-m": ("--model",),
    "--model-path": ("--model",),
    "--model-name": ("--model",),
    "--lang": ("--language",),
    "-l": ("--language",),
    "--tokenizer": ("--segmenter", "--tokenizer-from"),
    "--clusters": ("--groups",),
    "--num-clusters": ("--groups",),
    "--num-groups": ("--groups",),
    "--senses": ("--groups",),
    "-n": ("--top", "--lines", "--samples"),
    "--limit": ("--top", "--lines", "--samples"),
    "--number": ("--top", "--lines", "--samples"),
    "--lr": ("--learning-rate",),
    "--gpu": ("--device",),
    "--seed": ("--seeds",),
    "--overwrite": ("--replace",),
    "--force": ("--replace",),
    "--jobs": ("--workers",),
    "-j": ("--workers",),
}
"""An option as people type it, and what it may be called here, in the order of preference."""
_ARGUMENTS = {
    "--in": ("corpus", "inputs"),
    "--corpus": ("corpus",),
    "--input": ("inputs", "weights"),
    "--model": ("model", "model_or_task"),
    "--task": ("task", "model_or_task"),
    "--text": ("inputs",),
    "--texts": ("inputs",),
}
"""An option, and settings it may stand for that need none."""


_NOW = {
    "embed": "polyseme embed CORPUS --model MODEL --out VECTORS",
    "index": "polyseme index CORPUS --model MODEL --out INDEX",
    "score": "polyseme score TEXT --model MODEL",
    "generate": "polyseme generate PROMPT --model MODEL",
    "evaluate": "polyseme evaluate MODEL --in CORPUS, or polyseme evaluate TASK --data FILE",
    "predict": "polyseme predict TEXT --task TASK",
    "convert import": "polyseme convert import WEIGHTS --out FOLDER",
    "convert export": "polyseme convert export MODEL --out FOLDER",
}
"""Commands that took a model or a task first, or two arguments, and how they are called now."""
_RENAMED = {
    ("predict", "--file"): "--input-file",
    ("nearest", "--number"): "--top",
    ("substitutes", "--number"): "--top",
    ("choices", "--number"): "--examples",
}
"""Options that had other names."""


def check_order(command: str, inputs: Sequence[str]) -> None:
    """Refuse a model or a task where texts are expected: it was the first argument once."""
    if command not in _NOW or len(inputs) < 1:
        return
    first = inputs[0]
    is_task = command == "predict" and (first in TASKS or holds(Path(first), "task"))
    if is_task or first.startswith(HF_PREFIX) or first in MODELS or holds(Path(first), "model"):
        what = "task" if command == "predict" else "model"
        raise ConfigError(f"{first} is the {what}, which is an option. Write: {_NOW[command]}")


def meant_by(error: Any, command: str) -> str | None:
    """The message for words of a command that it does not know; None if we do not know better."""
    typed, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if context is not None and type(error).__name__ == "UsageError" and command in _NOW:
        return f"{error.format_message()} Write: {_NOW[command]}"
    if not isinstance(typed, str) or context is None or not hasattr(error, "possibilities"):
        return None
    if (now := _RENAMED.get((command, typed))) is not None:
        return f"{typed} is called {now} now."
    names = {name for param in context.command.params for name in param.opts}
    meant = [name for name in _SYNONYMS.get(typed, ()) if name in names]
    if meant:
        return f"{typed} is not an option here. Did you mean {meant[0]}?"
    asked = (typed, *_SYNONYMS.get(typed, ()))
    arguments = [name for each in asked for name in _ARGUMENTS.get(each, ()) if name in names]
    if arguments:
        params = context.command.params
        usage = " ".join(each.metavar for each in params if each.param_type_name == "argument")
        return (
            f"{typed} is not an option here: {arguments[0].upper()} is named without one, as in "
            f"{context.command_path} {usage}"
        )
    return None
