"""Define a named subcorpus, which other commands select with --where subcorpus=NAME.

A subcorpus is a condition on metadata, kept beside the corpus in NAME.subcorpora.toml. Without a
name, lists all subcorpora with their sizes.

Examples:

  polyseme subcorpora letters --in corpus/en --where "genre=letter and year<1900"

  polyseme subcorpora --in corpus/en

  polyseme keywords --in corpus/en --where subcorpus=letters --against 'subcorpus!=letters'

  polyseme subcorpora letters --in corpus/en --remove
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from rich.console import RenderableType
from rich.table import Table

from polyseme.config import Folder, Option, Settings
from polyseme.display import PrintableText, numbers, titled
from polyseme.errors import ConfigError
from polyseme.meanings.settings import Conditions
from polyseme.progress import SILENT, Progress

if TYPE_CHECKING:
    from polyseme.text.corpus import Corpus


class SubcorporaConfig(Settings):
    """Which part gets which name."""

    arguments: ClassVar[tuple[str, ...]] = ("name",)

    corpus: Annotated[Folder, Option("--in", "CORPUS")]
    """The corpus folder."""
    name: str | None = None
    """What the part is called."""
    where: Conditions = ()
    """The sentences whose metadata meet this condition. Repeat the option for more conditions; all
    must be met."""
    remove: bool = False
    """Forget the name."""


@dataclass(frozen=True)
class Subcorpus:
    """A named part with its size."""

    name: str
    where: str
    documents: int
    words: int


@dataclass(frozen=True)
class SubcorporaResult:
    """All that are kept."""

    subcorpora: list[Subcorpus]
    config: SubcorporaConfig

    def json_lines(self) -> "Iterator[dict[str, Any]]":
        """A line for each."""
        return map(asdict, self.subcorpora)


def run(config: SubcorporaConfig, progress: Progress = SILENT) -> SubcorporaResult:
    """Keep or forget one, and measure all."""
    from polyseme.meanings.concordance.conditions import (
        keep_subcorpus,
        parse_where,
        read_subcorpora,
        remove_subcorpus,
    )
    from polyseme.meanings.concordance.search import CorpusColumns
    from polyseme.text.corpus import Corpus

    del progress
    corpus = Corpus.open(config.corpus)
    if bool(config.where) == config.remove and config.name is not None:
        raise ConfigError(f"Say which sentences {config.name!r} has, with --where; or --remove.")
    if config.name is None and (config.where or config.remove):
        raise ConfigError("Name the subcorpus: polyseme subcorpora NAME --in CORPUS --where ...")
    if config.name is not None and config.remove:
        remove_subcorpus(corpus, config.name)
    elif config.name is not None:
        where = parse_where(config.where, CorpusColumns(corpus))
        keep_subcorpus(corpus, config.name, where)
    kept = read_subcorpora(corpus)
    return SubcorporaResult([_measured(corpus, *each) for each in kept.items()], config)


def _measured(corpus: "Corpus", name: str, where: str) -> Subcorpus:
    from polyseme.meanings.concordance.conditions import parse_where
    from polyseme.meanings.concordance.lines import count_words_by
    from polyseme.meanings.concordance.search import CorpusColumns
    from polyseme.meanings.concordance.sentence_table import DOCUMENT

    condition = parse_where(where, CorpusColumns(corpus))
    sizes = count_words_by(corpus, [DOCUMENT], condition)[DOCUMENT]
    return Subcorpus(name, where, len(sizes), sum(sizes.values()))


def show(result: SubcorporaResult) -> RenderableType:
    """A row for each."""
    if not result.subcorpora:
        return PrintableText("No part of this corpus has a name. Give one with --where.")
    columns = numbers("documents", "words")
    table = Table("subcorpus", *columns, show_edge=False, pad_edge=False)
    table.add_column("condition", overflow="fold")
    for each in result.subcorpora:
        figures = f"{each.documents:,}", f"{each.words:,}", PrintableText(each.where)
        table.add_row(PrintableText(each.name), *figures)
    return titled(f"Subcorpora of {result.config.corpus}", table)
