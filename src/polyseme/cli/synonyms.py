"""What an option that does not exist was meant to be, where its spelling does not tell.

Click suggests what is spelled alike: `--coarser` for `--corpus`. Here are the names that other
programs have given people, and what a setting that needs no option is called.
"""

from typing import Any

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
    "-n": ("--number", "--lines", "--top"),
    "--limit": ("--number", "--lines", "--top"),
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
    "--in": ("corpus", "folder", "inputs"),
    "--corpus": ("corpus", "folder"),
    "--input": ("inputs", "folder"),
    "--model": ("model",),
    "--text": ("inputs",),
    "--texts": ("inputs",),
}
"""An option, and settings it may stand for that need none."""


def meant_by(error: Any) -> str | None:
    """The message for an option that was called something else; None if we do not know better."""
    typed, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if not isinstance(typed, str) or context is None or not hasattr(error, "possibilities"):
        return None
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
