"""List the words that set one part of a corpus apart from another (keywords).

The part is chosen by a condition on metadata, --where; it is compared with the sentences of
--against, or with all others. First come words that are more frequent there, then those that are
less. The log ratio tells how many times as often, as a power of two, with a 95 % interval that
takes documents, not words, as drawn.

Examples:

  polyseme keywords --in corpus/en --where "year<1860"

  polyseme keywords --in corpus/en --where author~Dickens --against author~Eliot --sort log-ratio

  polyseme keywords --in corpus/en --where genre=letter --attribute lemma --upos VERB --out k.csv
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Group, RenderableType

from polyseme.commands.collocates import how_many, word_table
from polyseme.config import Folder, Option, Settings
from polyseme.display import PrintableText, counted, on_one_line, titled
from polyseme.meanings.settings import Conditions, WordListConfig
from polyseme.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polyseme.meanings.wordlists.word_list import WordList


class KeywordsConfig(Settings):
    """Which part of a corpus, against which other, and which words are listed."""

    corpus: Annotated[Folder, Option("--in", "CORPUS")]
    """The corpus folder."""
    where: Conditions
    """The sentences whose metadata meet this condition. Repeat the option for more conditions; all
    must be met."""
    against: Conditions = ()
    """Compare them with the sentences that meet this condition; by default, with all others."""
    case_sensitive: bool = False
    """Match case: Bank is not bank."""
    words: WordListConfig = WordListConfig()
    """Which words are listed."""


@dataclass(frozen=True)
class KeywordsResult:
    """The keywords."""

    found: "WordList"
    config: KeywordsConfig

    def json_lines(self) -> "Iterator[dict[str, Any]]":
        """A line for each keyword."""
        return self.found.json_lines()


def run(config: KeywordsConfig, progress: Progress | None = None) -> KeywordsResult:
    """Count the words of both parts."""
    from polyseme.meanings.concordance.export import check_format, write_table
    from polyseme.meanings.wordlists.keywords import keywords
    from polyseme.text.corpus import Corpus

    if config.words.out is not None:
        check_format(config.words.out)
    found = keywords(
        Corpus.open(config.corpus),
        config.where,
        config.against,
        config.words,
        case_sensitive=config.case_sensitive,
        progress=progress,
    )
    if config.words.out is not None:
        write_table(found.table(), config.words.out)
    return KeywordsResult(found, config)


def show(result: KeywordsResult) -> RenderableType:
    """The list, and what it was counted from."""
    found, config = result.found, result.config
    parts: list[RenderableType] = [titled(found.title, word_table(found))] if len(found) else []
    parts.append(PrintableText(how_many(found)))
    parts.append(
        PrintableText(
            f"Counted: {counted(found.target_size, 'word')} here, {found.reference_size:,} there."
        )
    )
    if config.words.out is not None:
        parts.append(on_one_line(f"{counted(len(found), 'word')} written to {config.words.out}."))
    return Group(*parts)
