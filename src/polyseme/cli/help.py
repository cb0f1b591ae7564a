"""The pages of `--help`: what a command is for, examples to copy, options under headings.

Typer's own pages break a list of choices in the middle of a word, and an example too. Here a name
stands whole beside what it means, and an example as it is typed.
"""

from collections.abc import Iterator
from typing import Any

from rich.cells import cell_len
from rich.console import RenderableType
from rich.panel import Panel
from rich.table import Table
from typer.core import TyperCommand, TyperGroup

from polyseme.cli import all_verbs
from polyseme.cli.terminal import PlainConsole
from polyseme.display import PrintableText, on_one_line

GENERAL = "Every command"
"""The heading of options that all commands have."""
_WIDEST = 100  # columns; longer lines are hard to read
_EXAMPLES = "Examples:"

_Rows = dict[str, list[tuple[str, str]]]
"""Under each heading: a name, and what it means."""


class HelpfulCommand(TyperCommand):
    """A command with such a page."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the page; nothing is left for Click to print."""
        del formatter
        _print_page(self, ctx, {}, _options(self, ctx))


class HelpfulGroup(TyperGroup):
    """A command with sub-commands, and such a page."""

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order in which a user meets them; Typer puts those with sub-commands last."""
        order = [verb.name for verbs in all_verbs().values() for verb in verbs]
        names: list[str] = super().list_commands(ctx)
        return sorted(names, key=lambda name: order.index(name) if name in order else -1)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the page; nothing is left for Click to print."""
        del formatter
        rows: _Rows = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            told = (name, command.get_short_help_str(1_000))
            rows.setdefault(command.rich_help_panel or "Commands", []).append(told)
        _print_page(self, ctx, rows, _options(self, ctx))


def _options(command: Any, ctx: Any) -> _Rows:
    """Arguments first, then options, those that all commands have last."""
    rows: _Rows = {"Arguments": []}
    general: list[tuple[str, str]] = []
    for param in command.get_params(ctx):
        is_argument = param.param_type_name == "argument"
        metavar = "" if getattr(param, "is_flag", False) else f" {param.metavar}"
        name = _argument(param) if is_argument else ", ".join(param.opts) + metavar
        told = (name, param.help or "")
        heading = getattr(param, "rich_help_panel", None) or GENERAL
        if is_argument:
            rows["Arguments"].append(told)
        elif heading == GENERAL:
            general.append(told)
        else:
            rows.setdefault(heading, []).append(told)
    return rows | {GENERAL if rows["Arguments"] or len(rows) > 1 else "Options": general}


def _argument(param: Any) -> str:
    return f"{param.metavar}{'...' if param.nargs == -1 else ''}"


def _print_page(command: Any, ctx: Any, *lists: _Rows) -> None:
    console = PlainConsole()
    width = min(console.width, _WIDEST)
    for part in (*_page(command, ctx), *(panel for rows in lists for panel in _panels(rows))):
        # An example stays in one piece, whatever the width: it is there to be copied.
        console.print(part, width=width, crop=False)


def _page(command: Any, ctx: Any) -> Iterator[RenderableType]:
    arguments = [_argument(p) for p in command.get_params(ctx) if p.param_type_name == "argument"]
    last = ["COMMAND", "..."] if isinstance(command, TyperGroup) else []
    usage = " ".join((ctx.command_path, "[OPTIONS]", *arguments, *last))
    yield PrintableText.assemble(("Usage: ", "bold"), usage)
    text, _, examples = (command.help or "").partition(_EXAMPLES)
    for paragraph in text.strip().split("\n\n"):
        yield ""
        yield PrintableText(" ".join(paragraph.split()))
    if examples:
        lines = [line for line in examples.splitlines() if line.strip()]
        yield ""
        yield PrintableText(_EXAMPLES, "bold")
        yield from map(on_one_line, lines)
    yield ""


def _panels(rows: _Rows) -> Iterator[Panel]:
    """A list under each heading; what names mean begins in the same column in all."""
    width = max((cell_len(name) for each in rows.values() for name, _ in each), default=0)
    for heading, each in rows.items():
        if not each:
            continue
        table = Table.grid(padding=(0, 2))
        table.add_column(style="cyan", no_wrap=True, width=width)
        table.add_column()
        for name, text in each:
            # Brackets are escaped for Typer's completion, which takes them for markup.
            table.add_row(PrintableText(name), PrintableText(text.replace("\\[", "[")))
        yield Panel(table, title=heading, title_align="left", border_style="dim")
