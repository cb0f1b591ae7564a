"""Two parts of a corpus in, the words that are more frequent in one of them out."""

from dataclasses import dataclass

from polyseme.errors import ConfigError
from polyseme.meanings.concordance.conditions import (
    Condition,
    Not,
    columns_of,
    parse_where,
    rows_meeting,
)
from polyseme.meanings.concordance.search import CorpusColumns
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.settings import Conditions, WordListConfig
from polyseme.meanings.wordlists.counting import (
    Chosen,
    RowGroup,
    Selection,
    Unit,
    count_words,
    sentences_chosen,
)
from polyseme.meanings.wordlists.word_list import WordList, list_words
from polyseme.progress import Progress
from polyseme.text.corpus import Corpus


def keywords(
    corpus: Corpus,
    where: Conditions,
    against: Conditions,
    config: WordListConfig,
    *,
    case_sensitive: bool = False,
    progress: Progress | None = None,
) -> WordList:
    """The words of the sentences that meet a condition, against those of others, or of the rest.

    First those that are more frequent, the strongest first; then those that are less, the strongest
    last.
    """
    columns = CorpusColumns(corpus)
    target = parse_where(where, columns)
    reference = parse_where(against, columns) if against else Not(target)
    read = frozenset({DOCUMENT, *columns_of(target), *columns_of(reference)})
    unit = Unit(config.attribute, config.upos, case_sensitive)
    selection = Selection(corpus, _TwoParts(target, reference), read, unit)
    counts = count_words(selection, progress)
    sizes = {"--where": counts.target_size, "--against": counts.reference_size}
    if empty := [name for name, size in sizes.items() if not size]:
        asked = f"the sentences of {empty[0]}" if against or empty[0] == "--where" else "the rest"
        raise ConfigError(f"There are no words in {asked}, so there is nothing to compare.")
    return list_words(
        counts,
        selection,
        config,
        title=f"Keywords of {target}" + (f" against {reference}" if against else ""),
        names=("here", "there"),
        with_fewer=True,
        progress=progress,
    )


@dataclass(frozen=True)
class _TwoParts:
    """The sentences that meet one condition, and those that meet another."""

    target: Condition
    reference: Condition

    def __call__(self, group: RowGroup) -> Chosen:
        here, there = (rows_meeting(each, group.columns) for each in (self.target, self.reference))
        if (here & there).any():
            raise ConfigError(
                f"Some sentences meet both {self.target} and {self.reference}. Choose two parts "
                "that have none in common."
            )
        return Chosen(sentences_chosen(here, group.words), sentences_chosen(there, group.words))
