"""What the commands that read uses share: which word, in which corpus."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from polyseme.config import Folder, Option, OptionalFolder, Settings
from polyseme.embedding.settings import ModelName, Pooling, Precision, VectorsConfig

if TYPE_CHECKING:
    from polyseme.meanings.concordance.search import Query


TABLES = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
"""Tables that can be written, by the end of the file's name: the type that a browser knows. The
functions that write them are in `concordance/export.py`; help and links are made from these."""
SENSE_FILES = {
    ".conllu": "sentences with Sense=1 in the last column",
    ".uses.tsv": "uses for DURel",
    ".judgments.tsv": "pairs of uses for DURel",
    ".clusters.tsv": "groups of uses for DURel",
    ".vec": "one vector per group in word2vec's text format",
}
"""Files for other tools that senses can also be written to (`groups/sense_files.py`)."""


def out_help(what: str, files: Mapping[str, str] | None = None) -> str:
    """The help of an option that names a file to write."""
    tables = f"{', '.join([*TABLES][:-1])} or {[*TABLES][-1]}"
    if files is None:
        return f"{what}: {tables}."
    others = "; ".join(f"{suffix} for {about}" for suffix, about in files.items())
    return f"{what}: {tables} for a table; {others}."


def _listed(given: Any) -> Any:
    return (given,) if isinstance(given, str) else given


Conditions = Annotated[tuple[str, ...], BeforeValidator(_listed), Option(is_repeated=True)]
"""Conditions on metadata, all of which must be met; a single one needs no list."""


Measure = Literal["log-dice", "g2", "log-ratio", "mi3", "frequency"]
"""What words of a list are ranked by."""


class WordListConfig(Settings):
    """What is counted, and which words are listed."""

    attribute: str | None = None
    """Count the values of this word attribute instead of words: lemma."""
    upos: tuple[str, ...] = ()
    """Only words of these parts of speech: NOUN,ADJ. The corpus needs the word attribute upos."""
    min_frequency: int = Field(3, ge=1, le=1_000_000_000)
    """Only words that occur at least this often where they are more frequent."""
    min_g2: float = Field(6.63, ge=0, le=1e12)
    """Only words with at least this log-likelihood ratio: of words without any difference, one in
    a hundred has 6.63, one in ten thousand 15.13."""
    sort: Measure = "g2"
    """Rank by g2, log-ratio or frequency."""
    top: int = Field(25, ge=1, le=20_000)
    """How many words."""
    out: Path | None = Field(
        None, description=out_help("Also write the list with all figures to this file")
    )


class CollocateListConfig(WordListConfig):
    """The same of collocates, which are ranked by how strongly two words go together."""

    sort: Measure = "log-dice"
    """Rank by log-dice, g2, log-ratio, mi3 or frequency."""


class NgramListConfig(Settings):
    """Which n-grams are listed."""

    size: int = Field(3, ge=1, le=8)
    """How many words they have."""
    attribute: str | None = None
    """Count the values of this word attribute instead of words: lemma, upos."""
    upos: tuple[str, ...] = ()
    """Only n-grams of words of these parts of speech: ADJ,NOUN. The corpus needs the word attribute
    upos."""
    min_frequency: int = Field(3, ge=1, le=1_000_000_000)
    """Only n-grams that occur at least this often."""
    top: int = Field(25, ge=1, le=20_000)
    """How many n-grams."""
    out: Path | None = Field(
        None, description=out_help("Also write the list with all figures to this file")
    )


class WindowConfig(Settings):
    """The window of words around a use."""

    left: int = Field(5, ge=0, le=1_000)
    """How many words before the use, within its sentence."""
    right: int = Field(5, ge=0, le=1_000)
    """How many words after it."""
    sentence: bool = False
    """All words of the sentence instead."""

    @model_validator(mode="after")
    def _is_open(self) -> "WindowConfig":
        if not (self.left or self.right or self.sentence):
            raise ValueError("A window of no words has no collocates. Give --left or --right")
        return self

    def __str__(self) -> str:
        if self.sentence:
            return "in their sentences"
        return f"up to {self.left} words before and {self.right} after them"


class UseIndexConfig(Settings):
    """Which uses an index has, and how they are computed."""

    words: tuple[str, ...] = ()
    """Only these words, in any case. Without it all content words: those with a letter that make
    up less than a thousandth of the corpus."""
    min_uses: int = Field(40, ge=1, le=1_000_000_000)
    """Without --words, only words with at least this many uses: fewer are not grouped."""
    max_uses: int = Field(5_000, ge=1, le=1_000_000_000)
    """For a word with more uses, about this many are sampled from the whole corpus."""
    seed: int = Field(1, ge=0, le=2**63 - 1)
    """Random seed of that sample."""
    precision: Precision = "float32"
    """Precision of the computation: bfloat16 is faster, and less exact in the third digit."""
    pooling: Pooling = "mean"
    """Hugging Face encoders only: pool the subword tokens of a word by their mean, or take the
    first."""
    threads: int = Field(1, ge=1, le=1_024)
    """CPU threads per worker. Another number can change the last bits of the results."""

    @property
    def vectors(self) -> VectorsConfig:
        """What of these settings decides a vector."""
        return VectorsConfig(precision=self.precision, pooling=self.pooling, threads=self.threads)


class GroupingConfig(Settings):
    """By which model uses are described, and how finely they are grouped."""

    model: ModelName = None
    index: OptionalFolder = None
    """Read the uses from this index (`polyseme index`) instead of embedding them."""
    layer: int | None = Field(None, ge=0, le=100)
    """Describe each use only by its vector in this layer of the model, from 0 (the word without
    context) to the top (its meaning here); by default, by all features that separate meanings."""
    finer: int = Field(0, ge=0, le=8)
    """Steps towards more groups."""
    coarser: int = Field(0, ge=0, le=8)
    """Steps towards fewer groups."""
    groups: int | None = Field(None, ge=1, le=100)
    """Make exactly this many groups."""
    seed: int = 1
    """Random seed of the grouping, and of the sample if there are very many uses."""

    @model_validator(mode="after")
    def _is_one_way(self) -> "GroupingConfig":
        if self.groups is not None and (self.finer or self.coarser):
            raise ValueError("Give --groups, or --finer and --coarser, not both")
        return self


class SearchConfig(Settings):
    """What to look for, and where."""

    corpus: Annotated[Folder, Option("--in", "CORPUS")]
    """The corpus folder."""
    where: Conditions = ()
    """Only sentences whose metadata meet this condition: year<1860, author~Dickens (contains),
    "year>=1900 or not (author~Dickens and year<1850)". Repeat the option for more conditions; all
    must be met."""

    @property
    def query(self) -> "Query":
        """What is looked for; an error if that is nothing, or two things."""
        raise NotImplementedError


class CqlConfig(SearchConfig):
    """A query, and where to look."""

    cql: str
    """The query in CQL."""

    @property
    def query(self) -> "Query":
        """The query, understood."""
        from polyseme.meanings.concordance.search import Query

        return Query.of(cql=self.cql)


class FindConfig(SearchConfig):
    """What to look for, and where."""

    word: str | None = None
    """The word, or a term of several words."""
    forms: tuple[str, ...] = ()
    """Other forms of the word to find as well: plays,played,playing."""
    regex: str | None = None
    """Instead of a word, a regular expression (RE2) that whole words must match."""
    cql: str | None = None
    """Instead of a word, a query in CQL: '[lemma="bank" & upos="NOUN"] []{0,3} "account"'."""
    case_sensitive: bool = False
    """Match case: Bank is not bank."""

    @property
    def is_given(self) -> bool:
        """Whether anything is looked for."""
        return bool(self.word or self.forms or self.regex or self.cql)

    @property
    def query(self) -> "Query":
        """A word and its forms, a pattern, or a query."""
        from polyseme.meanings.concordance.search import (
            Query,  # not above: a command's help must not wait
        )

        return Query.of(
            self.word,
            forms=self.forms,
            regex=self.regex,
            cql=self.cql,
            case_sensitive=self.case_sensitive,
        )
