"""What a command line that is refused was meant to be, where its spelling does not tell.

Click suggests what is spelled alike: `--coarser` for `--corpus`. Here are the names that other
programs have given people, what a setting that needs no option is called, and how commands were
called before they all had one grammar.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polyseme.errors import ConfigError
from polyseme.storage.folders import HF_PREFIX, holds
from polyseme.storage.installed import MODELS

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
    is_task = command == "predict" and holds(Path(first), "task")
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
        usage = " ".join(param.metavar for param in context.command.params if _is_argument(param))
        return (
            f"{typed} is not an option here: {arguments[0].upper()} is named without one, as in "
            f"{context.command_path} {usage}"
        )
    return None


def _is_argument(param: Any) -> bool:
    return bool(param.param_type_name == "argument")
