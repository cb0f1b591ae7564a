"""List the words that set one part of a corpus apart from another (keywords).

The part is chosen by a condition on metadata, --where, and compared with the sentences of
--against, or with all others. Or it is the sentences with a word in a sense that is kept, --sense,
compared with those that have it in another, or with all others. First come words that are more
frequent there, then those that are less. The log ratio tells how many times as often, as a power of
two, with a 95 % interval that takes documents, not words, as drawn.

Examples:

  polyseme keywords --in corpus/en --where "year<1860"

  polyseme keywords --in corpus/en --where author~Dickens --against author~Eliot --sort log-ratio

  polyseme keywords --in corpus/en --where genre=letter --attribute lemma --upos VERB --out k.csv

  polyseme keywords bank --in corpus/en --sense river --against-sense money
"""

from typing import TYPE_CHECKING, Annotated, ClassVar

from rich.console import Group, RenderableType

from polyseme.commands import Result
from polyseme.commands.collocates import how_many, word_table
from polyseme.config import Folder, Option, Settings
from polyseme.display import counted, on_one_line, titled
from polyseme.errors import ConfigError
from polyseme.meanings.settings import Conditions, WordListConfig
from polyseme.progress import SILENT, Progress

if TYPE_CHECKING:
    from polyseme.meanings.wordlists.word_list import WordList
    from polyseme.text.corpus import Corpus


class KeywordsConfig(Settings):
    """Which part of a corpus, against which other, and which words are listed."""

    arguments: ClassVar[tuple[str, ...]] = ("word",)

    corpus: Annotated[Folder, Option("--in", "CORPUS")]
    """The corpus folder."""
    word: str | None = None
    """The word that --sense is of, if several have such a sense."""
    where: Conditions = ()
    """The sentences whose metadata meet this condition. Repeat the option for more conditions; all
    must be met. With --sense: count only in these."""
    against: Conditions = ()
    """Compare them with the sentences that meet this condition; by default, with all others."""
    sense: str | None = None
    """The sentences with a use in this sense, of those that `polyseme senses --keep` or `label
    --keep` kept."""
    against_sense: str | None = None
    """Compare them with the sentences with a use of the word in this sense; by default, with all
    others."""
    case_sensitive: bool = False
    """Match case: Bank is not bank."""
    words: WordListConfig = WordListConfig()
    """Which words are listed."""


def run(config: KeywordsConfig, progress: Progress = SILENT) -> "Result[WordList, KeywordsConfig]":
    """Count the words of both parts."""
    from polyseme.meanings.concordance.export import check_format, write_table
    from polyseme.text.corpus import Corpus

    _check(config)
    if config.words.out is not None:
        check_format(config.words.out)
    found = _find(config, Corpus.open(config.corpus), progress)
    if config.words.out is not None:
        write_table(found.table(), config.words.out)
    return Result(found, config)


def _check(config: KeywordsConfig) -> None:
    """Refuse what does not go together."""
    if config.sense is None:
        if config.against_sense is not None:
            raise ConfigError("--against-sense needs a --sense to compare with it.")
        if config.word is not None:
            raise ConfigError(
                f"Keywords of {config.word!r} are those of a sense: give --sense. The words around "
                f"all its uses: polyseme collocates {config.word} --sentence"
            )
        if not config.where:
            raise ConfigError("Which part of the corpus? Give --where CONDITION, or --sense NAME.")
    elif config.against:
        raise ConfigError("--against goes with --where alone. With --sense: --against-sense.")


def _find(config: KeywordsConfig, corpus: "Corpus", progress: Progress) -> "WordList":
    from polyseme.meanings.concordance.kept_senses import find_senses_of
    from polyseme.meanings.wordlists.collocates import NamedUses
    from polyseme.meanings.wordlists.keywords import keywords, keywords_of

    words, case = config.words, config.case_sensitive
    if config.sense is None:
        where, against = config.where, config.against
        return keywords(corpus, where, against, words, case_sensitive=case, progress=progress)
    kept = find_senses_of(corpus, config.word, config.sense)
    own, other = NamedUses.of_sense(kept, config.sense), config.against_sense
    against_uses = None if other is None else NamedUses.of_sense(kept, other)
    where = config.where
    return keywords_of(
        corpus, own, against_uses, words, where=where, case_sensitive=case, progress=progress
    )


def show(result: "Result[WordList, KeywordsConfig]") -> RenderableType:
    """The list, and what it was counted from."""
    found, config = result.found, result.config
    parts: list[RenderableType] = [titled(found.title, word_table(found))] if len(found) else []
    parts += [
        how_many(found),
        f"Counted: {counted(found.target_size, 'word')} here, {found.reference_size:,} there.",
    ]
    if config.words.out is not None:
        parts.append(on_one_line(f"{counted(len(found), 'word')} written to {config.words.out}."))
    return Group(*parts)
