"""Settings in, command-line options out: each setting is an option of the same name.

One definition serves the Python call, the TOML file and the command line. Settings of a nested
part appear under their own name; `--set part.setting=value` reaches any by its full name.
"""

import inspect
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from polyseme.cli.faults import check_order
from polyseme.cli.help import GENERAL
from polyseme.config import AnySettings, Option, build, flat_names, overlay, put, read_toml

_LONGEST_METAVAR = 18


def command_for(
    kind: type[AnySettings],
    do: Callable[[AnySettings, bool], None],
    *,
    command: str = "",
    has_json: bool = False,
) -> Callable[..., None]:
    """A function with a parameter for every setting of `kind`, which builds it and calls `do`.

    Settings listed in `kind.arguments` are taken by position, all others as options.
    `has_json`: there is also `--json`, which `do` is told of.
    """
    arguments: tuple[str, ...] = getattr(kind, "arguments", ())
    shown = {
        name: name.upper() if name in arguments else _shown(name, field)
        for name, (_, field) in flat_names(kind).items()
    }
    # What is in a dict, --set alone reaches.
    options = {
        name: (path, field)
        for name, (path, field) in flat_names(kind).items()
        if typing.get_origin(field.annotation) is not dict
    }

    def call(
        settings_file: Path | None, assignments: list[str], as_json: bool = False, **given: Any
    ) -> None:
        check_order(command, given.get("inputs") or ())
        # Parts stand there empty, so that what is missing in one is named, not the part.
        values: dict[str, Any] = {path[0]: {} for path, _ in options.values() if len(path) > 1}
        values |= read_toml(settings_file) if settings_file else {}
        for name, value in given.items():
            if value:
                path, field = options[name]
                values = put(values, path, _split_list(value, field))
        for assignment in assignments:
            values = overlay(values, assignment)
        names = {path: shown[name] for name, (path, _) in options.items()}
        do(build(kind, values, names), as_json)

    parameters = [
        _argument(name, field, shown[name])
        if name in arguments
        else _option(name, field, shown[name], panel=_panel(kind, path))
        for name, (path, field) in options.items()
    ]
    general = _general_parameters(has_json=has_json)
    signature = inspect.Signature([*parameters, *general])
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _panel(kind: type[BaseModel], path: tuple[str, ...]) -> str:
    """The heading of an option in the help: what its part of the settings is."""
    description = kind.model_fields[path[0]].description if len(path) > 1 else None
    return (description or "Options").rstrip(".")


def _argument(name: str, field: FieldInfo, shown: str) -> inspect.Parameter:
    """Typer's view of a setting that needs no name."""
    parts = (field.annotation, *typing.get_args(field.annotation))
    is_list = typing.get_origin(field.annotation) is tuple
    shape: Any = list[str] if is_list else Path if Path in parts else str
    text = _escaped(" ".join((field.description or "").split()))
    argument = typer.Argument(help=text, metavar=shown, show_default=False)
    # None: a settings file may name it; that it is required, `build` will say.
    return _keyword(name, Annotated[shape | None, argument], None)


def _option(name: str, field: FieldInfo, shown: str, *, panel: str) -> inspect.Parameter:
    """Typer's view of one setting. None, or False for a switch, means: not given."""
    text = " ".join((field.description or "").split())
    is_switch = field.annotation is bool
    is_repeated = _marked(field).is_repeated
    shape: Any = bool if is_switch else list[str] | None if is_repeated else str | None
    choices = [each for each in _literals(field.annotation) if isinstance(each, str)]
    option = typer.Option(
        shown,
        help=_escaped(text + _choices_text(text, choices) + _default_text(field)),
        metavar=None if is_switch else "TEXT" if is_repeated else _metavar(field, choices),
        show_default=False,
        rich_help_panel=panel,
        # No `Choice` of Click's: what does not fit is told by `build`, as of a file.
        autocompletion=(lambda: choices) if choices else None,
    )
    return _keyword(name, Annotated[shape, option], False if is_switch else None)


def _shown(name: str, field: FieldInfo) -> str:
    """An option as a user types it."""
    return _marked(field).name or "--" + name.replace("_", "-")


def _marked(field: FieldInfo) -> Option:
    return next((each for each in field.metadata if isinstance(each, Option)), Option())


def _general_parameters(*, has_json: bool) -> list[inspect.Parameter]:
    """Options every verb has; `--json` if its result can be printed so."""
    file = typer.Option(
        "--config",
        help="Settings from a TOML file; options on the command line override it.",
        metavar="FILE",
        show_default=False,
        rich_help_panel=GENERAL,
    )
    assign = typer.Option(
        "--set",
        help="One setting by its full name, for example corpus.max_words=100.",
        metavar="NAME=VALUE",
        show_default=False,
        rich_help_panel=GENERAL,
    )
    json = typer.Option(
        "--json",
        help="Print JSON instead, one object per line.",
        show_default=False,
        rich_help_panel=GENERAL,
    )
    return [
        *([_keyword("as_json", Annotated[bool, json], False)] if has_json else []),
        _keyword("settings_file", Annotated[Path | None, file], None),
        _keyword("assignments", Annotated[list[str], assign], []),
    ]


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _metavar(field: FieldInfo, choices: list[str]) -> str:
    if marked := _marked(field).metavar:
        return marked
    if choices:
        joined = "|".join(choices)
        return joined if len(joined) <= _LONGEST_METAVAR else "NAME"
    shown = {"Path": "PATH", "tuple": "A,B", "int": "N", "float": "X"}
    return next((value for word, value in shown.items() if word in str(field.annotation)), "TEXT")


def _choices_text(text: str, choices: list[str]) -> str:
    """All that can be given, unless the description, or what stands beside the name, tells it."""
    is_told = set(choices) <= set(re.findall(r"[\w-]+", text))
    if is_told or len("|".join(choices)) <= _LONGEST_METAVAR:
        return ""
    return f" One of: {', '.join(choices)}."


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
    is_plain = value not in (None, (), "") and not isinstance(value, bool)
    return f" [default: {value}]" if is_plain and field.default_factory is None else ""


def _split_list(value: Any, field: FieldInfo) -> Any:
    """`date,author` as typed becomes a list where the setting is one."""
    is_list = typing.get_origin(field.annotation) is tuple
    return value.split(",") if is_list and isinstance(value, str) else value


def _escaped(text: str) -> str:
    """Brackets as themselves, not as Rich's markup."""
    return text.replace("[", "\\[")
