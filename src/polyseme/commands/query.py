"""Find words in sequence by conditions on each (CQL), and show concordance lines.

A condition asks about the word itself or an attribute such as lemma or upos, by a regular
expression. The lines are shown, sorted, counted and written as `polyseme uses` does.

Examples:

  polyseme query '"strong|powerful" []{0,2} "tea"' --in corpus/en

  polyseme query '[lemma="bank" & upos="NOUN"] []{0,3} [word="account"%c]' --in corpus/en

  polyseme query '[lemma="bank" & sense="river"] []{0,3} [upos="VERB"]' --in corpus/en

  polyseme query '[word="[A-Z].*"]{2,}' --in corpus/en --where "year<1860" --out names.csv
"""

from typing import ClassVar

from polyseme.commands.uses import ConcordanceConfig, UsesResult, find_shown, show
from polyseme.meanings.settings import CqlConfig
from polyseme.progress import SILENT, Progress

__all__ = ["QueryConfig", "run", "show"]


class QueryConfig(ConcordanceConfig):
    """A query, and how what it finds is shown."""

    arguments: ClassVar[tuple[str, ...]] = ("cql",)

    find: CqlConfig
    """What to look for."""


def run(config: QueryConfig, progress: Progress = SILENT) -> UsesResult:
    """Find, sample, sort, count and write."""
    del progress
    return find_shown(config)
