"""What the commands that read uses share: which word, in which corpus."""

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from polyseme.config import Settings

if TYPE_CHECKING:
    from polyseme.meanings.query import Query


class GroupingConfig(Settings):
    """By which model uses are described, and how finely they are grouped."""

    model: str
    """The model that describes the uses: a folder, or hf:FOLDER for one of Hugging Face."""
    layer: int | None = Field(None, ge=0, le=100)
    """Describe a use by its vector in this layer of the model alone: from 0, the word without its
    context, to the top, what is meant by it here. Without it by all that tells meanings apart."""
    finer: int = Field(0, ge=0, le=8)
    """Steps towards more groups."""
    coarser: int = Field(0, ge=0, le=8)
    """Steps towards fewer groups."""
    groups: int | None = Field(None, ge=1, le=100)
    """Exactly so many groups."""
    seed: int = 1
    """Of the sample that is taken of very many uses, and of the grouping."""

    @model_validator(mode="after")
    def _is_one_way(self) -> "GroupingConfig":
        if self.groups is not None and (self.finer or self.coarser):
            raise ValueError("Give --groups, or --finer and --coarser, not both")
        return self


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
