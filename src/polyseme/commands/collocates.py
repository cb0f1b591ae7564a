"""List the words that stand around a word more often than elsewhere (collocates).

Each collocate is told with how often it stands there and elsewhere, with logDice, the
log-likelihood ratio G², and the log ratio with a 95 % interval that takes documents, not words, as
drawn.

Examples:

  polyseme collocates bank --in corpus/en

  polyseme collocates bank --in corpus/en --left 0 --right 3 --sort g2 --where "year<1860"

  polyseme collocates bank --in corpus/en --sentence --top 500 --out bank.xlsx

  polyseme collocates bank --in corpus/en --attribute lemma --upos NOUN,ADJ
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.config import Settings
from polyseme.display import PrintableText, counted, on_one_line, titled
from polyseme.meanings.settings import CollocateListConfig, FindConfig, WindowConfig
from polyseme.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polyseme.meanings.wordlists.word_list import WordList


class CollocatesConfig(Settings):
    """Around which word, how near, and which words are listed."""

    arguments: ClassVar[tuple[str, ...]] = ("word",)

    find: FindConfig
    """What to look for."""
    window: WindowConfig = WindowConfig()
    """Which words stand around it."""
    words: CollocateListConfig = CollocateListConfig()
    """Which words are listed."""


@dataclass(frozen=True)
class CollocatesResult:
    """The collocates."""

    found: "WordList"
    config: CollocatesConfig

    def json_lines(self) -> "Iterator[dict[str, Any]]":
        """A line for each collocate."""
        return self.found.json_lines()


def run(config: CollocatesConfig, progress: Progress | None = None) -> CollocatesResult:
    """Count the words around all uses, and all others."""
    from polyseme.meanings.concordance.export import check_format, write_table
    from polyseme.meanings.wordlists.collocates import collocates
    from polyseme.text.corpus import Corpus

    if config.words.out is not None:
        check_format(config.words.out)
    found = collocates(
        Corpus.open(config.find.corpus),
        config.find.query,
        config.window,
        config.words,
        where=config.find.where,
        progress=progress,
    )
    if config.words.out is not None:
        write_table(found.table(), config.words.out)
    return CollocatesResult(found, config)


def show(result: CollocatesResult) -> RenderableType:
    """The list, and what it was counted from."""
    found, config = result.found, result.config
    parts: list[RenderableType] = [titled(found.title, word_table(found))] if len(found) else []
    parts.append(PrintableText(how_many(found)))
    parts.append(
        PrintableText(
            f"Counted: {counted(found.target_size, 'word')} {config.window} of "
            f"{counted(found.uses, 'use')}; {counted(found.reference_size, 'word')} elsewhere."
        )
    )
    if config.words.out is not None:
        parts.append(on_one_line(f"{counted(len(found), 'word')} written to {config.words.out}."))
    return Group(*parts)


def word_table(found: "WordList") -> Table:
    """The figures that fit a terminal; the others are in the file of --out."""
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("word", overflow="fold", min_width=4)
    strength = ["logDice"] if found.uses else []
    for name in (*found.names, *strength, "log ratio", "G²", "documents"):
        table.add_column(name, justify="right", no_wrap=True)
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
