"""The command line: one command per file in `commands/`, its options made from its settings.

Only the module of the verb in use is imported, so `polyseme --help` answers at once. This and
`terminal.py` are the only files that print.
"""

import importlib
import inspect
import io
import os
import sys
import typing
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer

from polyseme import __version__
from polyseme.cli import Verb, all_verbs, find_verb
from polyseme.devices import wait_asleep
from polyseme.errors import ConfigError, extra_needed_for

_STOPPED = 130
_PIPE_CLOSED = 141
_TEXT = """Your texts in, every word's meanings out.

Examples:

  polyseme prepare novels/ --language en --out corpus/novels
  polyseme pretrain corpus/novels --hours 2 --out models/novels
  polyseme embed corpus/novels --model models/novels --out vectors/novels
"""
# Typer has a copy of Click of its own in some versions: its errors are found by what is public.
_ClickError: type[Exception] = typer.BadParameter.__mro__[2]


def main() -> None:
    """Run the command line and exit with the error's own code. No traceback reaches a user."""
    _make_streams_print_anything()
    wait_asleep()
    warnings.showwarning = _show_warning
    words = sys.argv[1:] or ["--help"]
    chosen = find_verb(_words_to_complete() or words)
    if chosen and chosen[-1].parts and chosen[-1].name == words[-1]:
        words.append("--help")  # a sub-command is missing: say which there are
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
        from polyseme.cli.terminal import show_error

        show_error("Interrupted. Finished work is kept; the same command resumes from there.")
    sys.exit(code)


def _words_to_complete() -> list[str]:
    """What stands on a shell's line when Tab is pressed there: bash and others tell it so."""
    if "_POLYSEME_COMPLETE" not in os.environ:
        return []
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    return line.split()[1:]


def _make_streams_print_anything() -> None:
    """A terminal that lacks a letter shows its number; it does not end the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """What a library warns of may quote a user's file, too."""
    from polyseme.cli.terminal import show_warning

    show_warning(str(message))


def _show(error: Exception, chosen: list[Verb]) -> int:
    """Show an error in words; its exit code."""
    from polyseme.cli.faults import explain
    from polyseme.cli.terminal import show_error

    if isinstance(error, _ClickError):
        from polyseme.cli.faults import meant_by

        command = " ".join(verb.name for verb in chosen)
        message: str = meant_by(error, command) or error.format_message()  # type: ignore[attr-defined]
        kind, whole = ("options", f"polyseme {command}") if command else ("commands", "polyseme")
        error = ConfigError(message, f"For all {kind}: {whole} --help")
    explained = explain(error)
    show_error(*map(str, explained.args))
    return explained.exit_code


def _build_app(chosen: list[Verb]) -> typer.Typer:
    """All verbs; only the chosen one with its real options."""
    app = _group(_TEXT, add_completion=True)
    app.callback()(_top)
    for panel, verbs in all_verbs().items():
        for verb in verbs:
            _add(app, verb, chosen, panel)
    return app


def _group(text: str, **options: Any) -> typer.Typer:
    from polyseme.cli.help import HelpfulGroup

    return typer.Typer(cls=HelpfulGroup, help=text, pretty_exceptions_enable=False, **options)


def _add(app: typer.Typer, verb: Verb, chosen: list[Verb], panel: str | None = None) -> None:
    from polyseme.cli.help import HelpfulCommand

    if verb.parts:
        group = _group(verb.text)
        group.callback()(lambda: None)
        for part in verb.parts:
            _add(group, part, chosen)
        app.add_typer(group, name=verb.name, short_help=verb.summary, rich_help_panel=panel)
        return
    options: Any = {"help": verb.text, "short_help": verb.summary, "rich_help_panel": panel}
    do = _command(verb) if verb in chosen else lambda: None
    app.command(verb.name, cls=HelpfulCommand, **options)(do)


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


def _command(verb: Verb) -> Callable[..., None]:
    """What Typer calls for a verb: its settings as parameters, its work with a progress bar."""
    from polyseme.cli.options import command_for
    from polyseme.cli.terminal import RichProgress

    # Imports no torch: what shows help or lists something must not wait for it.
    module = importlib.import_module(verb.module)
    signature = inspect.signature(getattr(module, verb.function))
    kind = signature.parameters["config"].annotation
    found = signature.return_annotation  # text, if it takes long to import
    kinds = (found, *typing.get_args(found))
    has_json = isinstance(found, str) or any(hasattr(each, n) for each in kinds for n in _JSON)

    def do(config: Any, as_json: bool) -> None:
        with RichProgress() as bars, extra_needed_for(f"polyseme {verb.name}"):
            result = getattr(module, verb.function)(config, bars)
        bars.console.print_whole((as_json and _as_json(result)) or module.show(result))
        if hasattr(module, "exit_code"):  # what was found may be bad news for a script
            raise typer.Exit(module.exit_code(result))

    return command_for(kind, do, command=verb.name, has_json=has_json)


_JSON = ("json_lines", "to_json")
"""What a result has that is printed with --json: several objects, or one."""


def _as_json(result: Any) -> Any:
    from polyseme.display import JsonLines

    if hasattr(result, "json_lines"):
        return JsonLines(result.json_lines())
    return JsonLines([result.to_json()]) if hasattr(result, "to_json") else None
