"""What the commands that read uses share: which word, in which corpus."""

from pathlib import Path
from typing import TYPE_CHECKING

from polyseme.config import Settings

if TYPE_CHECKING:
    from polyseme.meanings.query import Query


class FindConfig(Settings):
    """What to look for, and where."""

    word: str | None = None
    """The word, or a term of several words."""
    in_: Path
    """The corpus folder."""
    forms: tuple[str, ...] = ()
    """Other forms of the word, any of which will do: plays,played,playing."""
    regex: str | None = None
    """Instead of a word, a regular expression (RE2) that whole words must match."""
    case_sensitive: bool = False
    """Tell Bank from bank."""
    where: tuple[str, ...] = ()
    """Only sentences whose metadata meets this: year<1860, author=Dickens, genre!=news,
    document=... Give it again for another condition; all must be met."""

    @property
    def query(self) -> "Query":
        """What is looked for; an error if that is nothing, or both a word and a pattern."""
        from polyseme.meanings.query import Query  # not above: a command's help must not wait

        return Query.of(
            self.word, forms=self.forms, regex=self.regex, case_sensitive=self.case_sensitive
        )
