"""List the most frequent n-grams: sequences of two, three or more words.

Of the whole corpus, of the sentences that meet a condition, or only those with a word in them. An
n-gram lies in one sentence, and has no punctuation in it.

Examples:

  polyseme ngrams --in corpus/en --size 4

  polyseme ngrams bank --in corpus/en --size 2 --where "year<1860" --top 100

  polyseme ngrams --in corpus/en --attribute upos --size 3 --out patterns.csv

  polyseme ngrams bank --in corpus/en --attribute lemma --upos ADJ,NOUN --size 2
"""

from typing import TYPE_CHECKING, ClassVar

from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.commands import Result
from polyseme.config import Settings
from polyseme.display import PrintableText, counted, on_one_line, titled
from polyseme.meanings.settings import FindConfig, NgramListConfig
from polyseme.progress import SILENT, Progress

if TYPE_CHECKING:
    from polyseme.meanings.concordance.conditions import Condition
    from polyseme.meanings.wordlists.ngrams import NgramList


class NgramsConfig(Settings):
    """Which n-grams are listed, and of which texts."""

    arguments: ClassVar[tuple[str, ...]] = ("word",)

    find: FindConfig
    """What n-grams have in them, and where to look."""
    sense: str | None = None
    """Only uses in this sense, of those that `polyseme senses --keep` or `label --keep` kept."""
    ngrams: NgramListConfig = NgramListConfig()
    """Which n-grams are listed."""


def run(config: NgramsConfig, progress: Progress = SILENT) -> "Result[NgramList, NgramsConfig]":
    """Count all n-grams, or those with a word in them."""
    from polyseme.meanings.concordance.export import check_format, write_table
    from polyseme.meanings.concordance.kept_senses import find_senses_of
    from polyseme.meanings.wordlists.collocates import NamedUses
    from polyseme.meanings.wordlists.ngrams import ngrams
    from polyseme.text.corpus import Corpus

    if config.ngrams.out is not None:
        check_format(config.ngrams.out)
    find, corpus = config.find, Corpus.open(config.find.corpus)
    of: NamedUses | None = None
    where: Condition | tuple[str, ...] = find.where
    if config.sense is not None:
        kept = find_senses_of(corpus, find.word or find.cql, config.sense)
        of = NamedUses.of_sense(kept, config.sense)
    elif find.is_given:
        query = find.query
        of, where = NamedUses.of_query(query, corpus), query.condition(find.where, corpus)
    case = find.case_sensitive
    found = ngrams(corpus, of, config.ngrams, where=where, case_sensitive=case, progress=progress)
    if config.ngrams.out is not None:
        write_table(found, config.ngrams.out)
    return Result(found, config)


def show(result: "Result[NgramList, NgramsConfig]") -> RenderableType:
    """The list, and what it was counted from."""
    found, config = result.found, result.config
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("n-gram", overflow="fold", min_width=8)
    for name in ("count", "per million", "documents", "DP"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in found:
        figures = f"{each.count:,}", f"{each.per_million:,.1f}", f"{each.documents:,}"
        table.add_row(PrintableText(each.ngram), *figures, f"{each.dp:.2f}")
    often = f"occur at least {counted(found.at_least, 'time')}"
    more = " More with --top." if len(found) < found.num_found else ""
    parts: list[RenderableType] = [titled(found.title, table)] if len(found) else []
    parts.append(f"{len(found):,} of {found.num_found:,} that {often}.{more}")
    if found.at_least > config.ngrams.min_frequency:
        parts.append("Rarer ones were not counted one by one: there are too many.")
    parts.append(
        f"Counted: {counted(found.total, 'n-gram')} in {counted(found.num_words, 'word')}."
    )
    if config.ngrams.out is not None:
        out = config.ngrams.out
        parts.append(on_one_line(f"{counted(len(found), 'n-gram')} written to {out}."))
    return Group(*parts)
