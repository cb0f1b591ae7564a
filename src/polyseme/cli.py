"""The command line: one subcommand per file in `commands/`, its options made from its settings.

Only the module of the verb in use is imported, so `polyseme --help` answers at once. This and
`terminal.py` are the only files that print.
"""

import ast
import importlib
import inspect
import io
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from polyseme import __version__
from polyseme.errors import ConfigError, torch_needed_for

_STOPPED = 130
_PIPE_CLOSED = 141
# Typer has a copy of Click of its own in some versions: its errors are found by what is public.
_ClickError: type[Exception] = typer.BadParameter.__mro__[2]


def main() -> None:
    """Run the command line and exit with the error's own code. No traceback reaches a user."""
    _make_streams_print_anything()
    warnings.showwarning = _show_warning
    words = sys.argv[1:] or ["--help"]
    chosen = next((word for word in words if not word.startswith("-")), None)
    try:
        # Not standalone: Typer would print errors itself, and obey the controls in them.
        code = _build_app(chosen)(words, prog_name="polyseme", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        code = _STOPPED
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = _PIPE_CLOSED
    except Exception as error:  # noqa: BLE001  # shown, whatever it is
        code = _show(error, chosen)
    if code == _STOPPED:
        from polyseme.terminal import show_error

        show_error("Stopped. What was finished is kept: the same command again goes on from there.")
    sys.exit(code)


def _make_streams_print_anything() -> None:
    """A terminal that lacks a letter shows its number; it does not end the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """What a library warns of may quote a user's file, too."""
    from polyseme.terminal import show_warning

    show_warning(str(message))


def _show(error: Exception, verb: str | None) -> int:
    """Tell of an error in words; its exit code."""
    from polyseme.faults import explain
    from polyseme.terminal import show_error

    if isinstance(error, _ClickError):
        told: str = error.format_message()  # type: ignore[attr-defined]
        help_ = f"polyseme {verb} --help" if verb in _verbs() else "polyseme --help"
        error = ConfigError(told, f"All that can be given: {help_}")
    explained = explain(error)
    show_error(*map(str, explained.args))
    return explained.exit_code


def _build_app(chosen: str | None) -> typer.Typer:
    """All verbs; only `chosen` with its real options."""
    app = typer.Typer(
        name="polyseme",
        help="Your texts in, every word's meanings out.",
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


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"polyseme {__version__}")
        raise typer.Exit


def _top(
    version: Annotated[  # Typer reads it; the callback acts on it
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """The options before any verb."""


def _verbs() -> dict[str, str]:
    """Each verb with its docstring, read without importing it."""
    files = sorted((Path(__file__).parent / "commands").glob("[!_]*.py"))
    texts = {file.stem: ast.get_docstring(ast.parse(file.read_bytes())) for file in files}
    return {verb.replace("_", "-"): text or "" for verb, text in texts.items()}


def _help(text: str) -> str:
    """A docstring as help: paragraphs are filled to the terminal, examples stay as they are."""
    paragraphs = text.split("\n\n")
    filled = [p if p.startswith(" ") else " ".join(p.split()) for p in paragraphs]
    return "\n\n".join(filled).replace("[", "\\[")


def _command(verb: str) -> Callable[..., None]:
    """What Typer calls for a verb: its settings as parameters, its work with a progress bar."""
    from polyseme.options import command_for
    from polyseme.terminal import RichProgress

    # Imports no torch: what shows help or lists something must not wait for it.
    module = importlib.import_module(f"polyseme.commands.{verb.replace('-', '_')}")
    kind = inspect.signature(module.run).parameters["config"].annotation

    def do(config: Any) -> None:
        with RichProgress() as bars, torch_needed_for(f"polyseme {verb}"):
            result = module.run(config, bars)
        bars.console.print_whole(module.show(result))

    return command_for(kind, do)
