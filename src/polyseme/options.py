"""Settings in, command-line options out: each setting is an option of the same name.

One definition serves the Python call, the TOML file and the command line. Settings of a nested
part appear under their own name; `--set part.setting=value` reaches any by its full name.
"""

import inspect
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from polyseme.config import AnySettings, build, overlay, put, read_toml

_ARGUMENTS = ("action", "task", "model", "folder", "inputs")
"""Settings that need no `--name`: what the verb is done to."""


def command_for(kind: type[AnySettings], do: Callable[[AnySettings], None]) -> Callable[..., None]:
    """A function with a parameter for every setting of `kind`, which builds it and calls `do`."""
    options = dict(_flatten(kind))

    def call(settings_file: Path | None, assignments: list[str], **given: Any) -> None:
        # Parts stand there empty, so that what is missing in one is named, not the part.
        values: dict[str, Any] = {path[0]: {} for path, _ in options.values() if len(path) > 1}
        values |= read_toml(settings_file) if settings_file else {}
        for name, value in given.items():
            if value:
                path, field = options[name]
                values = put(values, path, _split_list(value, field))
        for assignment in assignments:
            values = overlay(values, assignment)
        do(build(kind, values, {path: _shown(name) for name, (path, _) in options.items()}))

    parameters = [_parameter(name, field) for name, (_, field) in options.items()]
    signature = inspect.Signature([*parameters, *_general_parameters()])
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _flatten(
    kind: type[BaseModel], path: tuple[str, ...] = ()
) -> Iterator[tuple[str, tuple[tuple[str, ...], FieldInfo]]]:
    for name, field in kind.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _flatten(annotation, (*path, name))
        elif typing.get_origin(annotation) is not dict:  # what is in a dict, --set alone reaches
            yield name, ((*path, name), field)


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    """Typer's view of one setting. None, or False for a switch, means: not given."""
    text = " ".join((field.description or "").split())
    shape: Any
    if name in _ARGUMENTS:
        # None: a settings file may name it; that it is required, `build` will say.
        shape = {"inputs": list[str] | None, "action": str | None}.get(name, Path | None)
        marked: Any = Annotated[shape, typer.Argument(help=_escaped(text), show_default=False)]
        return _keyword(name, marked, None)
    flag = _shown(name)
    is_switch = field.annotation is bool
    shape = bool if is_switch else str | None
    marked = Annotated[
        shape,
        typer.Option(
            flag,
            help=_escaped(text + _default_text(field)),
            metavar=None if is_switch else _metavar(field),
            show_default=False,
        ),
    ]
    return _keyword(name, marked, False if is_switch else None)


def _shown(name: str) -> str:
    """A setting as a user types it."""
    if name in _ARGUMENTS:
        return name.upper()
    return "--" + name.rstrip("_").replace("_", "-")  # from_ is --from: a word Python keeps


def _general_parameters() -> list[inspect.Parameter]:
    """Options every verb has."""
    file_help = "Settings from a TOML file; options on the command line overrule it."
    file = Annotated[Path | None, typer.Option("--config", help=file_help, metavar="FILE")]
    set_help = "One setting by its full name, for example corpus.max_words=100."
    assign = Annotated[list[str], typer.Option("--set", help=set_help, metavar="NAME=VALUE")]
    return [_keyword("settings_file", file, None), _keyword("assignments", assign, [])]


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _metavar(field: FieldInfo) -> str:
    choices = [choice for choice in _literals(field.annotation) if isinstance(choice, str)]
    if choices:
        return "|".join(choices)
    shown = {"tuple": "A,B", "Path": "PATH", "int": "N", "float": "X"}
    return next((value for word, value in shown.items() if word in str(field.annotation)), "TEXT")


def _literals(annotation: Any) -> list[Any]:
    if typing.get_origin(annotation) is typing.Literal:
        return list(typing.get_args(annotation))
    return [choice for part in typing.get_args(annotation) for choice in _literals(part)]


def _default_text(field: FieldInfo) -> str:
    if field.is_required():
        return " [required]"
    value = field.default
    if isinstance(value, tuple):
        value = ",".join(map(str, value)) or None
    is_plain = value not in (None, ()) and not isinstance(value, bool)
    return f" [default: {value}]" if is_plain and field.default_factory is None else ""


def _split_list(value: Any, field: FieldInfo) -> Any:
    """`date,author` as typed becomes a list where the setting is one."""
    is_list = typing.get_origin(field.annotation) is tuple
    return value.split(",") if is_list and isinstance(value, str) else value


def _escaped(text: str) -> str:
    """Brackets as themselves, not as Rich's markup."""
    return text.replace("[", "\\[")
