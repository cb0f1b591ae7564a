"""Commands and settings classes in, `docs/reference/settings.md` out.

    python docs/make_reference.py           writes the page
    python docs/make_reference.py --check   fails if the page is not up to date

Every word of the page comes from the commands and their classes: what `--help` says, names, types,
defaults and docstrings. Parts of settings are found from the commands, however deep they are.
"""

import importlib
import inspect
import re
import sys
import types
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import annotated_types
from pydantic.fields import FieldInfo

from polyseme.cli import Verb, all_verbs
from polyseme.cli.options import command_for
from polyseme.config import Settings
from polyseme.data.stream import BatchConfig
from polyseme.model import ModelConfig
from polyseme.tasks.task import TaskConfig

PAGE = Path(__file__).parent / "reference" / "settings.md"

_TOP = """# Commands and settings

<!-- Made by docs/make_reference.py from the commands. Do not edit. -->

Every command says the same with `--help`. A setting can be given in three ways. Later ones override
earlier ones:

1. in a TOML file, read with `--config FILE`;
2. as an option: `corpus.max_words` is `--max-words`, the last part with hyphens for underscores;
3. with `--set NAME=VALUE` and the full name: `--set corpus.max_words=100`.

An unknown setting is an error, also in a file. In a TOML file, lists are written as lists
(`meta = ["date", "author"]`); as an option, with commas (`--meta date,author`). What is written in
capitals has no option: it follows the command, in this order. A part that is a choice is picked by
its `kind`; only `--set` and files reach it, and what is deeper than its part's first level. All
commands but `demo` and `explore` have `--json`.

`polyseme --install-completion` teaches your shell to complete commands and options. Exit codes are
on the page of [errors](errors.md).
"""
_HEAD = "| setting | values | default | meaning |\n|---|---|---|---|"


@dataclass
class Part:
    """A table of settings that is part of others: `corpus`, `model`, …"""

    name: str
    kinds: list[type[Settings]]
    """More than one where it is a choice."""
    title: str
    users: list[str] = field(default_factory=list)


def make() -> str:
    """The whole page."""
    parts: list[Part] = []
    lines = [_TOP]
    for heading, verbs in all_verbs().items():
        lines.append(f"## {heading}\n")
        for verb in verbs:
            for name, text, examples, kind in _commands(verb):
                lines += _command(name, text, examples, kind, parts)
    doc = _doc(TaskConfig)
    own = _own_rows(TaskConfig)
    lines += ["## A task\n", f"{doc} What `train` and `compare` read as TASK.\n", _HEAD, *own, ""]
    _collect(TaskConfig, "a task", parts)
    lines.append("## Parts\n")
    for part in parts:
        told = _doc(part.kinds[0]) + " " if len(part.kinds) == 1 else ""
        lines += [f"### {part.title}\n", f"{told}Part of {', '.join(part.users)}.\n"]
        lines += [_HEAD, *_tree(part.kinds, part.name, set()), ""]
    return "\n".join(lines).rstrip() + "\n"


def all_settings() -> Iterator[type[Settings]]:
    """Every class of settings that a user can reach."""
    roots: list[type[Settings]] = [TaskConfig]
    for verbs in all_verbs().values():
        for verb in verbs:
            roots += [kind for *_, kind in _commands(verb)]
    seen: set[type[Settings]] = set()
    while roots:
        kind = roots.pop()
        if kind not in seen:
            seen.add(kind)
            yield kind
            for name, each in kind.model_fields.items():
                roots += _parts_in(name, each)


def settings_without_text() -> list[str]:
    """Settings and classes that say nothing about themselves."""
    silent = []
    for kind in all_settings():
        silent += [] if kind.__doc__ else [kind.__name__]
        fields = kind.model_fields.items()
        silent += [f"{kind.__name__}.{name}" for name, each in fields if not _meaning(name, each)]
    return silent


def _commands(
    verb: Verb, before: str = "polyseme"
) -> Iterator[tuple[str, str, str, type[Settings]]]:
    """Name, text, examples and settings of a command, or of each of its sub-commands."""
    name = f"{before} {verb.name}"
    if verb.parts:
        for part in verb.parts:
            yield from _commands(part, name)
        return
    run = inspect.signature(getattr(importlib.import_module(verb.module), verb.function))
    text, _, examples = verb.text.partition("Examples:")
    yield name, text, examples, run.parameters["config"].annotation


def _command(
    name: str, text: str, examples: str, kind: type[Settings], parts: list[Part]
) -> Iterator[str]:
    options = _options(kind)
    arguments = " ".join(shown for shown in options.values() if not shown.startswith("-"))
    yield f"### {name}\n"
    yield f"`{f'{name} {arguments}'.strip()} [OPTIONS]`\n"
    for paragraph in text.strip().split("\n\n"):
        yield f"{_escape(' '.join(paragraph.split()))}\n"
    if examples.strip():
        lines = (line.strip() for line in examples.splitlines() if line.strip())
        yield "```sh\n" + "\n".join(lines) + "\n```\n"
    rows = _own_rows(kind, options)
    titles = _collect(kind, name.removeprefix("polyseme "), parts)
    links = ", ".join(f"[{title}](#{title.replace(', ', '-')})" for title in titles)
    if links:
        yield f"Settings of {links}{', and:' if rows else '.'}\n"
    if rows:
        yield from (_HEAD, *rows, "")


def _options(kind: type[Settings]) -> dict[str, str]:
    """The option of each setting, as the help shows it."""
    found = {}
    for name, each in inspect.signature(command_for(kind, lambda *_: None)).parameters.items():
        told = typing.get_args(each.annotation)[1]
        # In an annotation, what Typer calls the default is the option's name.
        found[name] = told.default if isinstance(told.default, str) else str(told.metavar)
    return {name: shown for name, shown in found.items() if shown not in ("--config", "--set")}


def _own_rows(kind: type[Settings], options: dict[str, str] | None = None) -> list[str]:
    """Those that are no parts."""
    return [
        _row((options or {}).get(name, name), name, each)
        for name, each in kind.model_fields.items()
        if not _parts_in(name, each)
    ]


def _collect(kind: type[Settings], user: str, parts: list[Part]) -> list[str]:
    """Note the parts of a command's settings; their titles."""
    titles = []
    for name, each in kind.model_fields.items():
        if kinds := _parts_in(name, each):
            alike = [part for part in parts if part.name == name]
            part = next((part for part in alike if part.kinds == kinds), None)
            if part is None:
                # A name that means something else elsewhere, as `training`, says of what it is.
                part = Part(name, kinds, f"{name}, {user}" if alike else name)
                parts.append(part)
            part.users.append(user)
            titles.append(part.title)
    return titles


def _parts_in(name: str, each: FieldInfo) -> list[type[Settings]]:
    """The classes of a part; also where a command takes a table that overrides some of it."""
    if typing.get_origin(each.annotation) is dict:
        return {"model": [ModelConfig], "batches": [BatchConfig]}.get(name, [])
    return _settings_in(each.annotation)


def _tree(kinds: list[type[Settings]], prefix: str, seen: set[type[Settings]]) -> Iterator[str]:
    """The rows of a part and of all that is in it, each class once."""
    for kind in kinds:
        if len(kinds) > 1 or "." in prefix:
            picked = kind.model_fields.get("kind")
            shown = f'{prefix}.kind = "{picked.default}"' if picked else prefix
            yield f"| **`{shown}`** | | | {_escape(_doc(kind))} |"
        if kind in seen:
            continue
        seen.add(kind)
        for name, each in kind.model_fields.items():
            if inner := _settings_in(each.annotation):
                yield from _tree(inner, f"{prefix}.{name}", seen)
            elif name != "kind":
                yield _row(f"{prefix}.{name}", name, each)


def _row(shown: str, name: str, each: FieldInfo) -> str:
    values = _bounded(_type(each.annotation), each.metadata)
    return f"| `{shown}` | {values} | {_default(each)} | {_escape(_meaning(name, each))} |"


def _meaning(name: str, each: FieldInfo) -> str:
    """What a setting says of itself."""
    if name == "kind":
        return "Picks this choice."
    return " ".join((each.description or "").split())


def _doc(kind: type[Settings]) -> str:
    return " ".join((kind.__doc__ or "").split())


def _settings_in(annotation: Any) -> list[type[Settings]]:
    """The classes of settings that a type is put together from."""
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        return [annotation]
    inner = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Annotated:
        inner = inner[:1]
    return [kind for part in inner for kind in _settings_in(part)]


def _bounded(text: str, limits: Iterable[Any]) -> str:
    for limit in limits:
        match limit:
            case annotated_types.Ge():
                text += f", from {limit.ge}"
            case annotated_types.Le():
                text += f", to {limit.le}"
    return text


def _type(annotation: Any) -> str:
    """A type in words."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return ", ".join(f"`{value}`" for value in inner)
    if origin is typing.Annotated:  # a part of a union, with bounds
        return _bounded(_type(inner[0]), inner[1].metadata)
    if origin in (typing.Union, types.UnionType):
        return ", ".join(_type(part) for part in inner if part is not type(None))
    if origin in (tuple, dict):
        return "list" if origin is tuple else "table"
    words = {str: "text", int: "number", float: "number", bool: "true, false", Path: "path"}
    return words[annotation]


def _default(each: FieldInfo) -> str:
    if each.is_required():
        return "required"
    if each.default is None or each.default == ():
        return "none"
    if each.default_factory is not None or isinstance(each.default, tuple):
        return "see there"
    value = str(each.default)
    return f"`{value.lower() if isinstance(each.default, bool) else value}`"


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
        sys.exit(f"{PAGE} is not up to date. Run: python docs/make_reference.py")


if __name__ == "__main__":
    main()
