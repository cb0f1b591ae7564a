"""List the words that stand around a word more often than elsewhere (collocates).

Each collocate is told with how often it stands there and elsewhere, with logDice, the
log-likelihood ratio G², and the log ratio with a 95 % interval that takes documents, not words, as
drawn.

Examples:

  polyseme collocates bank --in corpus/en

  polyseme collocates bank --in corpus/en --left 0 --right 3 --sort g2 --where "year<1860"

  polyseme collocates bank --in corpus/en --sentence --top 500 --out bank.xlsx

  polyseme collocates bank --in corpus/en --attribute lemma --upos NOUN,ADJ

  polyseme collocates bank --in corpus/en --sense river --against-sense money
"""

from typing import TYPE_CHECKING, ClassVar

from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.commands import Result
from polyseme.config import Settings
from polyseme.display import PrintableText, counted, on_one_line, titled
from polyseme.errors import ConfigError
from polyseme.meanings.settings import CollocateListConfig, FindConfig, WindowConfig
from polyseme.progress import SILENT, Progress

if TYPE_CHECKING:
    from polyseme.meanings.wordlists.word_list import WordList
    from polyseme.text.corpus import Corpus


class CollocatesConfig(Settings):
    """Around which word, how near, and which words are listed."""

    arguments: ClassVar[tuple[str, ...]] = ("word",)

    find: FindConfig
    """What to look for."""
    sense: str | None = None
    """Only uses in this sense, of those that `polyseme senses --keep` or `label --keep` kept."""
    against_sense: str | None = None
    """Compare the words around them with those around uses in this sense, not with all others."""
    window: WindowConfig = WindowConfig()
    """Which words stand around it."""
    words: CollocateListConfig = CollocateListConfig()
    """Which words are listed."""


def run(
    config: CollocatesConfig, progress: Progress = SILENT
) -> "Result[WordList, CollocatesConfig]":
    """Count the words around all uses, and all others."""
    from polyseme.meanings.concordance.export import check_format, write_table
    from polyseme.text.corpus import Corpus

    if config.words.out is not None:
        check_format(config.words.out)
    found = _find(config, Corpus.open(config.find.corpus), progress)
    if config.words.out is not None:
        write_table(found.table(), config.words.out)
    return Result(found, config)


def _find(config: CollocatesConfig, corpus: "Corpus", progress: Progress) -> "WordList":
    from polyseme.meanings.concordance.kept_senses import find_senses_of
    from polyseme.meanings.wordlists.collocates import (
        NamedUses,
        collocates,
        collocates_between,
        collocates_of,
    )
    from polyseme.meanings.wordlists.counting import Unit

    find, words = config.find, config.words
    if config.sense is None:
        if config.against_sense is not None:
            raise ConfigError("--against-sense needs a --sense to compare with it.")
        query = find.query
        return collocates(corpus, query, config.window, words, where=find.where, progress=progress)
    kept = find_senses_of(corpus, find.word or find.cql, config.sense)
    unit = Unit(words.attribute, words.upos, find.case_sensitive)
    own = NamedUses.of_sense(kept, config.sense)
    if config.against_sense is None:
        return collocates_of(corpus, own, config.window, words, unit, find.where, progress)
    both = own, NamedUses.of_sense(kept, config.against_sense)
    return collocates_between(corpus, both, config.window, words, unit, find.where, progress)


def show(result: "Result[WordList, CollocatesConfig]") -> RenderableType:
    """The list, and what it was counted from."""
    found, config = result.found, result.config
    parts: list[RenderableType] = [titled(found.title, word_table(found))] if len(found) else []
    around = f"{counted(found.target_size, 'word')} {config.window}"
    around += f" of {counted(found.uses, 'use')}" if found.uses else ""
    there = "elsewhere" if config.against_sense is None else f"around {config.against_sense}"
    parts += [
        how_many(found),
        f"Counted: {around}; {counted(found.reference_size, 'word')} {there}.",
    ]
    if config.words.out is not None:
        parts.append(on_one_line(f"{counted(len(found), 'word')} written to {config.words.out}."))
    return Group(*parts)


def word_table(found: "WordList") -> Table:
    """The figures that fit a terminal; the others are in the file of --out."""
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("word", overflow="fold", min_width=4)
    strength = ["logDice"] if found.uses else []
    for name in (*found.names, *strength, "log ratio", "G²", "documents"):
        # The name of a sense, with that of its word, would leave little room for the words.
        table.add_column(name, justify="right", no_wrap=" (" not in name)
    for each in found:
        figures = [f"{each.count:,}", f"{each.reference:,}"]
        figures += [] if each.log_dice is None else [f"{each.log_dice:.2f}"]
        half = each.log_ratio_high - each.log_ratio
        figures += [f"{each.log_ratio:.2f} ± {half:.2f}", f"{each.g2:,.0f}", f"{each.documents:,}"]
        table.add_row(PrintableText(each.word), *figures)
    return table


def how_many(found: "WordList") -> str:
    """How many words are shown, and of how many."""
    if not found.num_found:
        return "No word is frequent enough and different enough: see --min-frequency and --min-g2."
    more = " More with --top." if len(found) < found.num_found else ""
    return f"{len(found):,} of {counted(found.num_found, 'word')}.{more}"
