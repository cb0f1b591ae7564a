"""Settings classes in, `docs/reference/settings.md` out.

    python docs/make_reference.py           writes the page
    python docs/make_reference.py --check   fails if the page is not up to date

Every word of the page comes from the classes: names, types, defaults and docstrings.
"""

import sys
import types
import typing
from pathlib import Path
from typing import Any

import annotated_types
from pydantic.fields import FieldInfo

from polyseme.commands.inspect import InspectConfig
from polyseme.commands.prepare import PrepareConfig
from polyseme.config import Settings
from polyseme.text.settings import CorpusConfig

PAGE = Path(__file__).parent / "reference" / "settings.md"

_TOP = """# Settings

Made by `docs/make_reference.py` from the settings classes; do not edit.

A setting can be given in three ways. Later ones overrule earlier ones:

1. in a TOML file, read with `--config FILE`;
2. as an option of its own name, with hyphens for underscores: `max_words` is `--max-words`;
3. with `--set NAME=VALUE` and the full name: `--set corpus.max_words=100`.

A setting nobody knows is an error, also in a file. In a TOML file, lists are written as lists
(`meta = ["date", "author"]`); as an option, with commas (`--meta date,author`).

`inputs` and `folder` have no option: they are what follows the verb on the command line, and must
stand there.
"""

_SECTIONS: list[tuple[str, str, type[Settings], str]] = [
    ("polyseme prepare", "", PrepareConfig, "Top level of the file."),
    (
        "The corpus",
        "corpus.",
        CorpusConfig,
        (
            "The table `[corpus]` of the file. These decide every byte of the corpus and are "
            "stored in its `config.toml`."
        ),
    ),
    ("polyseme inspect", "", InspectConfig, "Top level of the file."),
]


def make() -> str:
    """The whole page."""
    return "\n".join([_TOP, *(_section(*section) for section in _SECTIONS)])


def settings_without_text() -> list[str]:
    """Settings and classes that say nothing about themselves."""
    kinds = [kind for _, _, kind, _ in _SECTIONS]
    silent = [kind.__name__ for kind in kinds if not kind.__doc__]
    for kind in kinds:
        fields = kind.model_fields.items()
        silent += [f"{kind.__name__}.{name}" for name, field in fields if not field.description]
    return silent


def _section(title: str, prefix: str, kind: type[Settings], where: str) -> str:
    rows = [
        _row(name, field)
        for name, field in kind.model_fields.items()
        if not _is_settings(field.annotation)
    ]
    lines = [
        f"## {title}\n",
        f"{kind.__doc__} {where}\n",
        "| setting | values | default | meaning |",
        "|---|---|---|---|",
        *(f"| `{prefix}{row[0]}` | {' | '.join(row[1:])} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _row(name: str, field: FieldInfo) -> tuple[str, str, str, str]:
    meaning = " ".join((field.description or "").split())
    return name, _values(field), _default(field), _escape(meaning)


def _values(field: FieldInfo) -> str:
    """The type in words, with its bounds."""
    text = _type(field.annotation)
    for limit in field.metadata:
        match limit:
            case annotated_types.Ge():
                text += f", from {limit.ge}"
            case annotated_types.Le():
                text += f", to {limit.le}"
    return text


def _type(annotation: Any) -> str:
    if typing.get_origin(annotation) is typing.Literal:
        return ", ".join(f"`{value}`" for value in typing.get_args(annotation))
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(annotation) if part is not type(None)]
        return ", ".join(_type(part) for part in parts)
    if typing.get_origin(annotation) is tuple:
        return "list"
    words = {str: "text", int: "number", float: "number", bool: "true, false", Path: "path"}
    return words[annotation]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default_factory is not None:
        return "see there"
    if field.default is None or field.default == ():
        return "none"
    value = field.default
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _is_settings(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Settings)


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("[", "\\[").replace("<", "&lt;")


def main() -> None:
    """Write the page, or check it."""
    text = make()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    elif PAGE.read_text(encoding="utf-8") != text:
        sys.exit(f"{PAGE} is not up to date. Run: python docs/make_reference.py")


if __name__ == "__main__":
    main()
