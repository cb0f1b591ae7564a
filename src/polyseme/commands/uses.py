"""Find every use of a word, and show them as concordance lines (KWIC).

Case is ignored unless you add --case-sensitive. A term may have several words. You can filter the
lines by metadata (kept with `prepare --meta`), sort and sample them, and write them to a table.
`polyseme query` puts several conditions on each word.

Examples:

  polyseme uses bank --in corpus/en

  polyseme uses play --forms plays,played --in corpus/en --sort right --lines 50

  polyseme uses "river bank" --in corpus/en --where "year<1860 and not author~Dickens"

  polyseme uses --regex "bank(s|er|ers)?" --in corpus/en --by year --out bank.csv

  polyseme uses bank --in corpus/en --json | head -3
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field
from rich.console import ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Column, Table

from polyseme.config import Settings
from polyseme.display import PrintableText, counted, numbers, on_one_line
from polyseme.errors import ConfigError
from polyseme.meanings.settings import FindConfig, SearchConfig, out_help
from polyseme.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polyseme.meanings.concordance.conditions import Condition
    from polyseme.meanings.concordance.lines import Frequency
    from polyseme.meanings.concordance.uses import Uses
    from polyseme.text.corpus import Corpus


class ConcordanceConfig(Settings):
    """What to look for, where, and how to show it."""

    find: SearchConfig
    """What to look for."""
    sort: str | None = None
    """Sort by the context left or right of the word, by document, or by another metadata column;
    by default in corpus order."""
    sample: int | None = Field(default=None, ge=1)
    """Take a random sample of this many uses."""
    seed: int = Field(default=1, ge=0)
    """The seed of the sample."""
    by: str | None = None
    """Also count uses by this column, in total and per million words, and measure their dispersion
    over documents; reads the whole corpus."""
    lines: int = Field(default=20, ge=0, le=100_000)
    """How many lines to show."""
    out: Path | None = Field(
        None,
        description=out_help("Also write all uses, or the sample, with all metadata to this file"),
    )


class UsesConfig(ConcordanceConfig):
    """A word, and how its uses are shown."""

    arguments: ClassVar[tuple[str, ...]] = ("word",)

    find: FindConfig
    """What to look for."""


@dataclass(frozen=True)
class UsesResult:
    """The uses that were found."""

    uses: "Uses"  # sorted, and sampled if asked
    num_found: int  # before sampling
    config: ConcordanceConfig
    frequencies: "list[Frequency]"  # for each value of the column --by
    dispersion: float | None
    note: str = ""  # what a reader should know of the count

    def json_lines(self) -> "Iterator[dict[str, Any]]":
        """All uses, or the sample, with all metadata."""
        from polyseme.meanings.concordance.export import objects
        from polyseme.meanings.concordance.uses import UseTable

        if self.config.by:
            raise ConfigError("--by counts uses and --json prints each of them: leave out one.")
        return objects(UseTable(self.uses))


def run(config: UsesConfig, progress: Progress = SILENT) -> UsesResult:
    """Find, sample, sort, count and write."""
    del progress
    return find_shown(config)


def find_shown(config: ConcordanceConfig) -> UsesResult:
    """The same, whatever is looked for."""
    from polyseme.meanings.concordance.export import check_format, write_table
    from polyseme.meanings.concordance.lines import sample_uses, sort_uses
    from polyseme.meanings.concordance.search import in_longer_words
    from polyseme.meanings.concordance.uses import UseTable, find_uses
    from polyseme.text.corpus import Corpus

    query = config.find.query
    if config.out is not None:
        check_format(config.out)
    corpus = Corpus.open(config.find.corpus)
    where = query.condition(config.find.where, corpus)
    found = find_uses(corpus, query, where=where)
    if config.by not in (None, *found.columns):
        columns = ", ".join(found.columns)
        raise ConfigError(f"Cannot count by {config.by!r}. Columns of this corpus: {columns}.")
    chosen = sample_uses(found, config.sample, seed=config.seed) if config.sample else found
    chosen = sort_uses(chosen, config.sort) if config.sort else chosen
    counted, evenness = _count(found, corpus, config.by, where) if config.by else ([], None)
    if config.out is not None:
        write_table(UseTable(chosen), config.out)
    mostly = in_longer_words(query, corpus)
    note = mostly.note if mostly else ""
    return UsesResult(chosen, len(found), config, counted, evenness, note)


def _count(
    found: "Uses", corpus: "Corpus", column: str, where: "Condition"
) -> "tuple[list[Frequency], float | None]":
    from polyseme.meanings.concordance.lines import count_words_by, dispersion, frequencies
    from polyseme.meanings.concordance.sentence_table import DOCUMENT

    sizes = count_words_by(corpus, list({column, DOCUMENT}), where)
    evenness = dispersion(found, sizes[DOCUMENT]) if len(found) else None
    return frequencies(found, column, sizes[column]), evenness


def show(result: UsesResult) -> RenderableType:
    """Lines, then the table of frequencies; every cut is told."""
    shown = min(result.config.lines, len(result.uses))
    parts: list[RenderableType] = [UseLines(result.uses[:shown])] if shown else []
    parts.append(_how_many(result, shown))
    if result.note:
        parts.append(PrintableText(result.note, "yellow"))
    if result.config.by:
        parts += [_frequencies(result), _evenness(result)]
    if result.config.out is not None:
        parts.append(
            on_one_line(f"{counted(len(result.uses), 'use')} written to {result.config.out}.")
        )
    return Group(*parts)


def _how_many(result: UsesResult, shown: int) -> str:
    drawn = ""
    if len(result.uses) < result.num_found:
        drawn = f", a sample of {len(result.uses):,} drawn from {result.num_found:,}"
    lines = f"{shown:,} of {counted(len(result.uses), 'line')}{drawn}."
    more = " Show more with --lines, keep all with --out uses.csv." if not result.config.out else ""
    return lines + (more if shown < len(result.uses) else "")


@dataclass(frozen=True)
class UseLines:
    """Lines as wide as the terminal."""

    uses: "Uses"

    def __rich_console__(self, console: object, options: ConsoleOptions) -> RenderResult:
        del console
        from polyseme.meanings.concordance.lines import kwic_lines

        for left, keyword, right in kwic_lines(self.uses, options.max_width):
            line = PrintableText(no_wrap=True, overflow="crop")
            line.append(left + " ").append(keyword, "bold green").append(f" {right}".rstrip())
            yield line


def _frequencies(result: UsesResult) -> RenderableType:
    columns = numbers("uses", "words", "per million words")
    table = Table(
        Column(PrintableText(result.config.by or "")), *columns, show_edge=False, pad_edge=False
    )
    for row in result.frequencies:
        value = "(no value)" if row.value is None else row.value
        counts = (f"{row.uses:,}", f"{row.words:,}", f"{row.per_million:,.1f}")
        table.add_row(PrintableText(value), *counts)
    return table


def _evenness(result: UsesResult) -> str:
    if result.dispersion is None:
        return ""
    return (
        f"Dispersion over documents (DP, Gries 2008): {result.dispersion:.3f}; 0 is even, near 1 "
        "is all in one document."
    )
