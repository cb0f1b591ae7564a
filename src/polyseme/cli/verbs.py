"""Which commands there are, in the order in which a user meets them.

A command is a file in `commands/`; a folder there is a command with sub-commands, a file each. What
they are for is read from their docstrings, without importing them.
"""

from dataclasses import dataclass
from pathlib import Path

PANELS: dict[str, dict[str, tuple[str, ...]]] = {
    "Texts": {"prepare": (), "inspect": (), "subcorpora": (), "export": ()},
    "Language models": {
        "plan": (),
        "pretrain": (),
        "evaluate": (),
        "score": (),
        "generate": (),
        "compare_models": (),
    },
    "Vectors": {"embed": (), "vectors": ("info",)},
    "Meanings": {
        "uses": (),
        "query": (),
        "collocates": (),
        "keywords": (),
        "ngrams": (),
        "senses": (),
        "edit": (),
        "label": (),
        "judge": (),
        "agreement": (),
        "change": (),
        "substitutes": (),
        "nearest": (),
        "same": (),
        "index": (),
    },
    "Explorer": {"demo": (), "explore": ()},
    "Tasks": {"train": (), "predict": (), "compare": (), "choices": ()},
    "Serving": {"serve": ()},
    "Sharing": {"push": (), "pull": ()},
    "This machine": {"models": (), "doctor": ()},
    "Other programs' models": {"convert": ("import_", "export")},
}
"""The headings of `polyseme --help`, each with its commands, each with its sub-commands."""

_COMMANDS = Path(__file__).parents[1] / "commands"


@dataclass(frozen=True)
class Verb:
    """A command, or a sub-command: what a user types, its module, its help."""

    name: str
    module: str
    text: str
    parts: "tuple[Verb, ...]" = ()
    """Its sub-commands."""

    @property
    def summary(self) -> str:
        """Its line in a list."""
        return self.text.partition("\n\n")[0].replace("\n", " ")


def all_verbs() -> dict[str, list[Verb]]:
    """The commands under each heading."""
    return {
        panel: [_verb(_COMMANDS / name, parts) for name, parts in verbs.items()]
        for panel, verbs in PANELS.items()
    }


def find_verb(words: list[str]) -> list[Verb]:
    """The command that is meant by these words, and its sub-command; empty if there is none."""
    names = [word for word in words if not word.startswith("-")]
    choices = [verb for verbs in all_verbs().values() for verb in verbs]
    found: list[Verb] = []
    for name in names:
        verb = next((verb for verb in choices if verb.name == name), None)
        if verb is None:
            break
        found.append(verb)
        choices = list(verb.parts)
    return found


def _verb(path: Path, parts: tuple[str, ...] = ()) -> Verb:
    """Of a file, named without its ending, or of a folder."""
    module = ".".join(("polyseme", *path.relative_to(_COMMANDS.parent).parts))
    file = path / "__init__.py" if parts else path.with_suffix(".py")
    # The docstring. Parsing all of the file takes ten times as long, at every press of Tab.
    text = file.read_text(encoding="utf-8").split('"""')[1].strip()
    # `import_` is a module, `import` a command: a word that Python keeps.
    name = path.name.rstrip("_").replace("_", "-")
    return Verb(name, module, text, tuple(_verb(path / part) for part in parts))
