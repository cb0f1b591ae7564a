"""What a person types and sees: one subcommand per file in `commands/`, options from settings.

Here is which commands there are, in the order in which a user meets them. A command is a file in
`commands/`, its sub-commands, if it has any, are functions in it. What they are for is read from
their docstrings, without importing them.
"""

from dataclasses import dataclass
from inspect import cleandoc
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
    function: str = "run"
    """What does its work."""
    parts: "tuple[Verb, ...]" = ()
    """Its sub-commands."""

    @property
    def summary(self) -> str:
        """Its line in a list."""
        return self.text.partition("\n\n")[0].replace("\n", " ")


def all_verbs() -> dict[str, list[Verb]]:
    """The commands under each heading."""
    return {
        panel: [_verb(name, parts) for name, parts in verbs.items()]
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


def _verb(command: str, parts: tuple[str, ...]) -> Verb:
    file = _COMMANDS / f"{command}.py"
    module = f"polyseme.commands.{command}"
    # The docstrings. Parsing all of the file takes ten times as long, at every press of Tab.
    code = file.read_text(encoding="utf-8")
    text = code.split('"""')[1].strip()
    found = [
        Verb(_typed(part), module, cleandoc(code.split(f"\ndef {part}(")[1].split('"""')[1]), part)
        for part in parts
    ]
    return Verb(_typed(command), module, text, parts=tuple(found))


def _typed(name: str) -> str:
    """What is typed: `import_` is a function, `import` a command: a word that Python keeps."""
    return name.rstrip("_").replace("_", "-")
