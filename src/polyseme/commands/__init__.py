"""One file per verb: settings, `run` (a function per sub-command, if it has any), and `show`.

The first line of each file's docstring is the verb's line in `polyseme --help`; the rest, with
its examples, is the text of `polyseme VERB --help`; a sub-command's stand in the docstring of its
function. Nothing here prints: `cli/` does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from polyseme.errors import InputError
from polyseme.limits import TOML_BYTES, read_text

Found = TypeVar("Found")
Asked = TypeVar("Asked")


@dataclass(frozen=True)
class Result(Generic[Found, Asked]):
    """What a command found, and what it was asked."""

    found: Found
    config: Asked
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    """What a reader should know besides."""

    def json_lines(self) -> Iterator[dict[str, Any]]:
        """One object for all, or one for each thing in a list or row of a table."""
        found: Any = self.found
        if hasattr(found, "to_json"):
            return iter([found.to_json()])
        if isinstance(found, list):
            return (each.to_json() for each in found)
        from polyseme.meanings.concordance.export import objects

        return objects(found.table())


def read_list(path: Path) -> list[str]:
    """The lines of a file that a user wrote, without those that are empty."""
    try:
        lines = read_text(path, TOML_BYTES).splitlines()
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    return [line.strip() for line in lines if line.strip()]
