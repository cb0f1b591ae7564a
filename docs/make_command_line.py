"""Commands in, `docs/reference/command-line.md` out.

    python docs/make_command_line.py           writes the page
    python docs/make_command_line.py --check   fails if the page is not up to date

Every word of the page is what `polyseme COMMAND --help` says. `make_reference.py` runs this, too.
"""

import importlib
import inspect
import re
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polyseme.cli.options import command_for
from polyseme.cli.verbs import Verb, all_verbs

PAGE = Path(__file__).parent / "reference" / "command-line.md"
_TOP = """# Command line

<!-- Made by docs/make_command_line.py from the commands. Do not edit. -->

Every command says the same with `--help`. A setting that has no option of its own is reached by
`--set part.setting=value`, and every command takes its settings from a TOML file with
`--config FILE`; options override it. The [settings page](settings.md) has types and bounds.
`polyseme --install-completion` teaches your shell to complete commands and options. Exit codes are
on the page of [errors](errors.md).
"""
_EXAMPLES = "Examples:"
_GENERAL = {"--config", "--set"}  # said once, at the top


def make() -> str:
    """The whole page."""
    parts = [_TOP]
    for heading, verbs in all_verbs().items():
        parts.append(f"## {heading}\n")
        for verb in verbs:
            parts += _sections(verb)
    return "\n".join(parts)


def _sections(verb: Verb, before: str = "polyseme") -> Iterator[str]:
    """Of a command, or of each of its sub-commands."""
    name = f"{before} {verb.name}"
    if verb.parts:
        for part in verb.parts:
            yield from _sections(part, name)
        return
    kind = inspect.signature(importlib.import_module(verb.module).run).parameters["config"]
    rows = list(_rows(kind.annotation))
    arguments = " ".join(option for option, _ in rows if not option.startswith("-"))
    text, _, examples = verb.text.partition(_EXAMPLES)
    yield f"### {name}\n"
    yield f"```text\n{f'{name} {arguments}'.strip()} [OPTIONS]\n```\n"
    for paragraph in text.strip().split("\n\n"):
        yield f"{_escape(' '.join(paragraph.split()))}\n"
    if examples:
        lines = "\n".join(line.strip() for line in examples.splitlines() if line.strip())
        yield f"```sh\n{lines}\n```\n"
    if rows:
        yield "| | |\n|---|---|"
        yield "\n".join(f"| {_as_code(option)} | {_escape(told)} |" for option, told in rows) + "\n"


def _rows(kind: Any) -> Iterator[tuple[str, str]]:
    """Each argument and option with what it means, in the order of the help."""
    for parameter in inspect.signature(command_for(kind, lambda _: None)).parameters.values():
        told = typing.get_args(parameter.annotation)[1]
        # In an annotation, what Typer calls the default is the option's name.
        option = told.default if isinstance(told.default, str) else ""
        shown = " ".join(filter(None, (option, told.metavar)))
        if option not in _GENERAL:
            yield shown.replace("|", "/"), (told.help or "").replace("\\[", "[")


def _as_code(option: str) -> str:
    """An option and what it takes, each in one piece."""
    return " ".join(f"`{part}`" for part in option.split(" ", 1))


def _escape(text: str) -> str:
    """Text in which a star, a bracket or an underscore is itself, unless it is code."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([\\\[*_])", r"\\\1", part).replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts).replace("|", "\\|")


def main() -> None:
    """Write the page, or check it."""
    text = make()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    elif PAGE.read_text(encoding="utf-8") != text:
        sys.exit(f"{PAGE} is not up to date. Run: python docs/make_command_line.py")


if __name__ == "__main__":
    main()
