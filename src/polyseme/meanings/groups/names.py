"""What to call a group of uses: words that set it apart from the other groups.

    in   the group of each use; for each use some words: its substitutes, or those around it
    out  for each group the words that are most its own

By log-odds with an informative Dirichlet prior (Monroe et al., 2008): a word must be more frequent
here than in the other groups, by more than chance explains. Substitutes say what kind of thing is
meant, collocates what the text is about; a person wants both.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from sys import getsizeof

import numpy as np

from polyseme.meanings.features.use_features import Ids, Labels

NUM_NAMES = 8
"""Words that a group is given as a name."""
_BEST = 20  # substitutes of a use that count for the name of its group
_WINDOW = 10  # words on either side that count as collocates
_PRIOR = 500.0  # words that the prior weighs, distributed as in all groups together
_MIN_USES = 3  # in which a word must occur to be a name


@dataclass(frozen=True, eq=False)
class UseWords:
    """For each use the words that may name its group; not those that are frequent everywhere."""

    substitutes: list[list[str]]
    """Empty for each use, if the model has none."""
    collocates: list[list[str]]

    @property
    def num_bytes(self) -> int:
        """Memory of its lists. They share their words."""
        return sum(
            getsizeof(words) for each in (self.substitutes, self.collocates) for words in each
        )

    def names(self, labels: Labels) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """For each group its own substitutes and its own collocates."""
        each = [distinctive_words(labels, words) for words in (self.substitutes, self.collocates)]
        return list(zip(*each, strict=True))


def substitutes_of(substitutes: Ids, words: Sequence[str]) -> list[list[str]]:
    """For each use the words that could best stand in its place."""
    return [[words[number] for number in row] for row in substitutes[:, :_BEST].tolist()]


def collocates_of(
    sentences: Sequence[Sequence[str]], spans: Sequence[Sequence[int]]
) -> list[list[str]]:
    """For each use the words that stand near it."""
    each = []
    lowered: dict[str, str] = {}  # thousands of uses share a few words
    for sentence, (begin, end) in zip(sentences, spans, strict=True):
        near = [*sentence[max(0, begin - _WINDOW) : begin], *sentence[end : end + _WINDOW]]
        each.append([lowered.setdefault(word, word.lower()) for word in near])
    return each


def distinctive_words(
    labels: Labels,
    words: Sequence[Sequence[str]],
    *,
    is_frequent: Callable[[str], bool] = lambda _: False,
    number: int = NUM_NAMES,
) -> list[tuple[str, ...]]:
    """For each group the words of its uses that are most its own, the most certain first.

    A word counts once a use; one without a letter, or that is frequent everywhere, is no name. With
    a single group, its most frequent words.
    """
    num_groups = int(labels.max()) + 1
    counts: list[Counter[str]] = [Counter() for _ in range(num_groups)]
    names = {word for found in words for word in found}
    names = {word for word in names if any(map(str.isalpha, word)) and not is_frequent(word)}
    for group, found in zip(labels.tolist(), words, strict=True):
        counts[group].update(names.intersection(found))
    total: Counter[str] = sum(counts, Counter())
    if num_groups == 1:
        return [tuple(word for word, _ in _ranked(total)[:number])]
    return [_of_group(count, total, number) for count in counts]


def _of_group(count: Counter[str], total: Counter[str], number: int) -> tuple[str, ...]:
    words = [word for word in total if count[word] >= _MIN_USES]
    if not words:
        return ()
    here = np.array([count[word] for word in words], np.float64)
    everywhere = np.array([total[word] for word in words], np.float64)
    there = everywhere - here
    all_here, all_words = count.total(), total.total()
    all_there = all_words - all_here
    prior = _PRIOR * everywhere / all_words
    odds_here = (here + prior) / (all_here + _PRIOR - here - prior)
    odds_there = (there + prior) / (all_there + _PRIOR - there - prior)
    spread = np.sqrt(1 / (here + prior) + 1 / (there + prior))
    scores = (np.log(odds_here) - np.log(odds_there)) / spread
    best = sorted(zip(scores.tolist(), words, strict=True), key=lambda pair: (-pair[0], pair[1]))
    return tuple(word for score, word in best[:number] if score > 0)


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
