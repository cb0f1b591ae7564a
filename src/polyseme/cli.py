"""The command line: one subcommand per file in `commands/`, its options made from its settings.

Only the module of the verb in use is imported, so `polyseme --help` answers at once. This is
the only file that prints.
"""

import ast
import importlib
import inspect
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from polyseme import __version__
from polyseme.config import Settings, build, overlay, read_toml
from polyseme.errors import PolysemeError


def main() -> None:
    """Run the command line and exit with the error's own code."""
    chosen = next((word for word in sys.argv[1:] if not word.startswith("-")), None)
    try:
        _build_app(chosen)()
    except PolysemeError as error:
        _console().print(f"[bold red]Error:[/] {_escaped(str(error))}")
        sys.exit(error.exit_code)


def _build_app(chosen: str | None) -> typer.Typer:
    """All verbs; only `chosen` with its real options."""
    app = typer.Typer(
        name="polyseme",
        help="Your texts in, every word's meanings out.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )
    app.callback()(_top)
    for verb, text in _verbs().items():
        if verb == chosen:
            app.command(verb, help=_help(text))(_command(verb))
        else:
            app.command(verb, short_help=text.splitlines()[0])(lambda: None)
    return app


def _top(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"polyseme {__version__}")
        raise typer.Exit


def _verbs() -> dict[str, str]:
    """Each verb with its docstring, read without importing it."""
    files = sorted((Path(__file__).parent / "commands").glob("[!_]*.py"))
    texts = {file.stem: ast.get_docstring(ast.parse(file.read_bytes())) for file in files}
    return {verb.replace("_", "-"): text or "" for verb, text in texts.items()}


def _help(text: str) -> str:
    """A docstring as help: the lines of an example stay lines."""
    return text.replace("\n  ", "\n\b\n  ")


def _command(verb: str) -> Callable[..., None]:
    """The function Typer calls for a verb, with a parameter for each of its settings."""
    module = importlib.import_module(f"polyseme.commands.{verb.replace('-', '_')}")
    kind = _settings_of(module)
    options = dict(_options(kind))

    def call(settings_file: Path | None, assignments: list[str], **given: Any) -> None:
        values: dict[str, Any] = read_toml(settings_file) if settings_file else {}
        for name, value in given.items():
            if value is not None and value != [] and value is not False:
                path, field = options[name]
                values = _put(values, path, _split_list(value, field))
        for assignment in assignments:
            values = overlay(values, assignment)
        _do(module, build(kind, values))

    call.__signature__ = inspect.Signature(_parameters(options))  # type: ignore[attr-defined]
    return call


def _do(module: ModuleType, config: Settings) -> None:
    """Run a verb with a progress bar, then show its result."""
    from polyseme.terminal import Bars

    with Bars() as bars:
        result = module.run(config, bars)
    bars.console.print(module.show(result))


def _settings_of(module: ModuleType) -> type[Settings]:
    kinds = [
        thing
        for thing in vars(module).values()
        if inspect.isclass(thing) and issubclass(thing, Settings)
        if thing.__module__ == module.__name__
    ]
    assert len(kinds) == 1, f"{module.__name__} must define exactly one settings class"
    return kinds[0]


def _options(
    kind: type[BaseModel], path: tuple[str, ...] = ()
) -> typing.Iterator[tuple[str, tuple[tuple[str, ...], FieldInfo]]]:
    """Every setting under its own name, those of nested parts too."""
    for name, field in kind.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _options(annotation, (*path, name))
        else:
            yield name, ((*path, name), field)


def _parameters(
    options: dict[str, tuple[tuple[str, ...], FieldInfo]],
) -> list[inspect.Parameter]:
    """Typer's view of the settings. None, everywhere, means: not given."""
    parameters = []
    for name, (_, field) in options.items():
        text = " ".join((field.description or "").split()).replace("[", "\\[")
        if name in ("inputs", "folder"):
            is_many = name == "inputs"
            shape: Any = list[str] if is_many else Path
            marked: Any = Annotated[shape, typer.Argument(help=text, show_default=False)]
            default: Any = inspect.Parameter.empty
        else:
            flag = "--" + name.replace("_", "-")
            is_switch = field.annotation is bool
            shape = bool if is_switch else str | None
            default = False if is_switch else None
            value = None if is_switch else _metavar(field)
            shown = _default_text(field)
            marked = Annotated[
                shape,
                typer.Option(flag, help=text + shown, metavar=value, show_default=False),
            ]
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=marked))
    return [*parameters, *_general_parameters()]


def _general_parameters() -> list[inspect.Parameter]:
    """Options every verb has."""
    kind = inspect.Parameter.KEYWORD_ONLY
    file_help = "Settings from a TOML file; options on the command line overrule it."
    file = Annotated[Path | None, typer.Option("--config", help=file_help, metavar="FILE")]
    set_help = "One setting by its full name, for example corpus.max_words=100."
    assign = Annotated[list[str], typer.Option("--set", help=set_help, metavar="NAME=VALUE")]
    return [
        inspect.Parameter("settings_file", kind, default=None, annotation=file),
        inspect.Parameter("assignments", kind, default=[], annotation=assign),
    ]


def _metavar(field: FieldInfo) -> str:
    choices = [c for c in _literals(field.annotation) if isinstance(c, str)]
    if choices:
        return "|".join(choices)
    names = str(field.annotation)
    for word, shown in (("tuple", "A,B"), ("Path", "PATH"), ("int", "N"), ("float", "X")):
        if word in names:
            return shown
    return "TEXT"


def _literals(annotation: Any) -> list[Any]:
    if typing.get_origin(annotation) is typing.Literal:
        return list(typing.get_args(annotation))
    return [choice for part in typing.get_args(annotation) for choice in _literals(part)]


def _default_text(field: FieldInfo) -> str:
    if field.is_required():
        return " \\[required]"
    value = field.default
    plain = value is not None and value != () and not isinstance(value, bool)
    return f" \\[default: {value}]" if plain and field.default_factory is None else ""


def _split_list(value: Any, field: FieldInfo) -> Any:
    """`date,author` as typed becomes a list where the setting is one."""
    is_list = typing.get_origin(field.annotation) is tuple
    return value.split(",") if is_list and isinstance(value, str) else value


def _put(values: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """`values` with one nested value set."""
    head, *rest = path
    inner = _put(values.get(head, {}), tuple(rest), value) if rest else value
    return {**values, head: inner}


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
