"""Two parts of a corpus in, the words that are more frequent in one of them out.

A part is the sentences that meet a condition on metadata, or those with a use of a word in a sense.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
from polyseme.meanings.settings import Conditions, WindowConfig, WordListConfig
from polyseme.meanings.wordlists.collocates import NamedUses, around_uses, between_uses
from polyseme.meanings.wordlists.counting import (
    Chosen,
    RowGroup,
    Selection,
    Unit,
    count_words,
    sentences_chosen,
)
from polyseme.meanings.wordlists.word_list import WordList, list_words
from polyseme.progress import SILENT, Progress
from polyseme.text.corpus import Corpus


def keywords(
    corpus: Corpus,
    where: Conditions,
    against: Conditions,
    config: WordListConfig,
    *,
    case_sensitive: bool = False,
    progress: Progress = SILENT,
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
    parts = _TwoParts(target, reference)
    selection = Selection(corpus, parts, read, unit, has_rest=not against)
    asked = "the sentences of --where", "the sentences of --against" if against else "the rest"
    title = f"Keywords of {target}" + (f" against {reference}" if against else "")
    return _list(selection, config, title, asked, progress)


def keywords_of(
    corpus: Corpus,
    of: NamedUses,
    against: NamedUses | None,
    config: WordListConfig,
    *,
    where: Conditions = (),
    case_sensitive: bool = False,
    progress: Progress = SILENT,
) -> WordList:
    """The words of the sentences with a use, against those of sentences with another use, or of all
    others.

    The uses themselves are of neither part, nor is a sentence with both kinds of use: so the counts
    are those of collocates within sentences.
    """
    sentence, unit = (
        WindowConfig(sentence=True),
        Unit(config.attribute, config.upos, case_sensitive),
    )
    if against is None:
        selection = around_uses(corpus, of, sentence, unit, where)
    else:
        selection = between_uses(corpus, (of, against), sentence, unit, where)
    names = [of.name, *([against.name] if against else [])]
    title = f"Keywords of sentences with {' against those with '.join(names)}"
    asked = [f"the sentences with {each}" for each in names]
    return _list(selection, config, title, [*asked, "the rest"], progress)


def _list(
    selection: Selection,
    config: WordListConfig,
    title: str,
    parts: Sequence[str],
    progress: Progress,
) -> WordList:
    """The words that are more and less frequent. `parts`: what either is called in an error."""
    counts = replace(count_words(selection, progress), uses=0)  # as of collocates only
    for part, size in zip(parts, (counts.target_size, counts.reference_size), strict=False):
        if not size:
            raise ConfigError(f"There are no words in {part}, so there is nothing to compare.")
    names = ("here", "there")
    return list_words(
        counts, selection, config, title=title, names=names, with_fewer=True, progress=progress
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
        target, reference = (sentences_chosen(each, group.words) for each in (here, there))
        return Chosen(target, reference, sentences=(here, there))
