"""What to call a group of uses: what could stand there, what stands near, and how it is used.

    in   for each use its sentence, its place there, its document, its substitutes; the counts of
         all words of the corpus; the group of each use
    out  for each group three short lists: substitutes, collocates, frames

A word names a group only if it is there more than in the *other groups* and more than in the
*corpus*: the first alone lets in whatever the texts of a group happen to share, the second alone
names all groups alike. The strength of either is the signed root of the log-likelihood ratio
(Dunning, 1993); the smaller of the two counts. A substitute must be expected in a twentieth of the
group's places, and more than in any other group. A frame is a few words in a row with the word
among them: *electric ~*, *~ of the river*.

The corpus's commonest words are no names. A document counts at most twice (of few long ones, each a
little more often), and lines that are copies of each other count once, or a name would tell the
text and not the meaning. Of forms of one word the best is kept, in its usual case. The order of the
uses does not matter.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from sys import getsizeof
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from polyseme.meanings.concordance.background import Background
from polyseme.meanings.features.use_features import Ids, Labels

NUM_SUBSTITUTES, NUM_COLLOCATES, NUM_FRAMES = 4, 4, 2
SLOT = "~"
"""Where the word stands in a frame."""
_WINDOW = 10  # words on either side that count as collocates
_PER_DOCUMENT = 2  # uses of one document that count for a word or a frame, or
_EVEN_SHARE = 5  # a fifth of its even share of all uses: a corpus may be ten long books
_FEW_DOCUMENTS = 10  # if uses come from fewer, documents say nothing: a corpus may be one long file
_MIN_USES = 3  # in which a collocate or a frame must occur; by _PER_DOCUMENT, in two documents
_MIN_STRENGTH = 1.0  # of a collocate or a frame, in standard deviations
_MIN_SHARE = 0.05  # of a group's places that must expect a substitute
_BEST = 30  # substitutes of a use that count
_LONGER = 0.15  # more strength for each further word of a frame, which says more
_ENDINGS = re.compile(r"(ies|es|s|ed|ing|ly)$")
_SHINGLE = 3  # words in a row, by which lines are compared
_MIN_SHINGLES = 5  # a line of fewer is no copy: "Yes, yes." is said often
_ALIKE = 0.8  # the share of both lines' shingles that makes them copies (Jaccard index)

Frame = tuple[str, ...]


@dataclass(frozen=True)
class GroupName:
    """What sets a group apart, the best first in each list."""

    substitutes: tuple[str, ...] = ()
    collocates: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = " ".join(self.substitutes), " ".join(self.collocates), "; ".join(self.frames)
        return " | ".join(part for part in parts if part)


@dataclass(frozen=True, eq=False)
class NameSource:
    """What names are made from; a row for each use."""

    sentences: Sequence[Sequence[str]]
    spans: npt.NDArray[np.int64]
    background: Background
    substitutes: Ids | None = None  # (N, K), the best first
    words: Sequence[str] = ()  # what the numbers of substitutes stand for
    documents: Sequence[Hashable] | None = None
    copy_of: Labels | None = None
    """(N,) the use whose line each is a copy of, itself if none: `first_copies`."""

    @cached_property
    def _taken(self) -> frozenset[str]:
        """Words that are no names: the commonest, and forms of the word itself."""
        forms = {
            word.lower()
            for sentence, (begin, end) in zip(self.sentences, self.spans.tolist(), strict=True)
            for word in sentence[begin:end]
        }
        return self.background.stop_words | forms | {stem(form) for form in forms}

    @property
    def num_bytes(self) -> int:
        """Memory of its lists of words, which share their words."""
        lists = {id(words): words for words in self.sentences}
        items = [self._near[0], self._frames_of_uses] if "_near" in self.__dict__ else []
        kept = sum(each.num_bytes for each in items)
        return kept + sum(getsizeof(words) for words in lists.values())

    def names(self, labels: Labels, *, with_substitutes: bool = True) -> list[GroupName]:
        """The name of each group. `with_substitutes`: false where a model's guesses are poor."""
        number = int(labels.max()) + 1
        rows = self._rows
        collocates, usual = self._collocates(labels, rows, number)
        frames = self._frames(labels, rows, number)
        substitutes = self._substitutes(labels, number) if with_substitutes else [[]] * number
        found = []
        for group in range(number):
            best = _one_of_astem(substitutes[group], NUM_SUBSTITUTES)
            stems = {stem(word.lower()) for word in best}
            near = _one_of_astem(collocates[group], NUM_COLLOCATES, stems)
            found.append(
                GroupName(
                    tuple(best),
                    tuple(map(usual, near)),
                    tuple(_joined(map(usual, frame)) for frame in frames[group][:NUM_FRAMES]),
                )
            )
        return found

    def _is_name(self, word: str) -> bool:
        folded = word.lower()
        return _is_word(word) and folded not in self._taken and stem(folded) not in self._taken

    @cached_property
    def _rows(self) -> Labels:
        """The uses that are no copies of others: they alone are counted."""
        whole: Labels = np.arange(len(self.spans))
        return whole if self.copy_of is None else np.unique(self.copy_of)

    @cached_property
    def _near(self) -> tuple["_Items", Labels, Mapping[str, str]]:
        """The words near each use; how many there are; the usual spelling of each.

        The same however uses are grouped: they are grouped anew after each edit.
        """
        near: list[list[str]] = []
        spellings: dict[str, Counter[str]] = defaultdict(Counter)
        for row in self._rows.tolist():
            words, (begin, end) = self.sentences[row], self.spans[row].tolist()
            indices = [
                *range(max(0, begin - _WINDOW), begin),
                *range(end, min(len(words), end + _WINDOW)),
            ]
            near.append([words[index].lower() for index in indices])
            for index in indices:
                if index:  # a capital at the beginning of a sentence says nothing
                    spellings[words[index].lower()][words[index]] += 1
        lengths: Labels = np.array([len(words) for words in near], np.int64)
        usual = {
            word: min(forms, key=lambda form: (-forms[form], form))
            for word, forms in spellings.items()
        }
        return _Items.of(self._rows, near, self._is_name), lengths, usual

    @cached_property
    def _frames_of_uses(self) -> "_Items":
        """The frames of each use."""
        stops = self._taken

        def says_something(frame: Frame) -> bool:
            content = [word for word in frame if word != SLOT and word not in stops]
            is_bare = len(frame) == 2 and frame[0] in stops
            return bool(content) and frame[-1] not in stops and not is_bare

        spans = self.spans.tolist()
        each = [_frames_of(self.sentences[row], spans[row]) for row in self._rows.tolist()]
        return _Items.of(self._rows, each, says_something)

    def _collocates(
        self, labels: Labels, rows: Labels, number: int
    ) -> tuple[list[list[str]], Callable[[str], str]]:
        """Words near the uses of each group, the strongest first; and its usual spelling."""
        near, lengths_of, usual = self._near
        counts, total = self._count(near, labels, number)
        sizes = np.bincount(labels[rows], minlength=number)
        lengths = np.bincount(labels[rows], lengths_of, number)
        frequent = {word for count in counts for word, uses in count.items() if uses >= _MIN_USES}
        in_corpus = self.background.counts(frequent)
        found = []
        for group, count in enumerate(counts):
            others, scores = len(rows) - sizes[group], {}
            for word, uses in count.items():
                if uses < _MIN_USES:
                    continue
                everywhere = in_corpus[word] + 0.5
                strength = _strength(uses, lengths[group], everywhere, self.background.total)
                if others:
                    there = total[word] - uses
                    strength = min(strength, _strength(uses, sizes[group], there, others))
                if strength > _MIN_STRENGTH:
                    scores[word] = strength
            found.append(_ranked(scores))
        return found, lambda word: usual.get(word, word)

    def _substitutes(self, labels: Labels, number: int) -> list[list[str]]:
        """Words expected here more than in any other group: share times the log of its ratio."""
        if self.substitutes is None:
            return [[]] * number
        sizes = np.maximum(np.bincount(labels, minlength=number), 1)
        shares = np.stack(
            [
                np.bincount(
                    self.substitutes[labels == group, :_BEST].ravel(), minlength=len(self.words)
                )
                / sizes[group]
                for group in range(number)
            ]
        )
        found = []
        for group, here in enumerate(shares):
            scores = here
            if number > 1:
                few = 1 / max(10, int(sizes[group]))
                there = np.delete(shares, group, axis=0).max(axis=0)
                scores = here * np.log((here + few) / (there + few))
            best = np.argsort(-scores, kind="stable")[:200].tolist()
            kept = [each for each in best if scores[each] > 0 and here[each] >= _MIN_SHARE]
            found.append([self.words[each] for each in kept if self._is_name(self.words[each])])
        return found

    def _frames(self, labels: Labels, rows: Labels, number: int) -> list[list[Frame]]:
        counts, total = self._count(self._frames_of_uses, labels, number)
        sizes = np.bincount(labels[rows], minlength=number)
        found = []
        for group, count in enumerate(counts):
            others, scores = len(rows) - sizes[group], {}
            for frame, uses in count.items():
                there = total[frame] - uses
                strength = _strength(uses, sizes[group], there, others) if others else uses**0.5
                longer = 1 + _LONGER * (len(frame) - 2)
                if uses >= _MIN_USES and strength * longer > _MIN_STRENGTH:
                    scores[frame] = strength * longer
            chosen: list[Frame] = []
            for frame in _ranked(scores):
                if not any(
                    set(frame) <= set(other) or set(other) <= set(frame) for other in chosen
                ):
                    chosen.append(frame)
            found.append(chosen)
        return found

    def _count(
        self, items: "_Items", labels: Labels, number: int
    ) -> tuple[list[dict[Any, int]], dict[Any, int]]:
        """In how many uses of each group something is, a document counted at most a few times; and
        in how many of all groups."""
        documents = self._documents
        num, num_documents = len(items.names), int(documents.max(initial=0)) + 1
        most = max(_PER_DOCUMENT, len(labels) // (_EVEN_SHARE * num_documents))
        pairs = labels[items.rows].astype(np.int64) * num + items.numbers
        keys, uses = np.unique(pairs * num_documents + documents[items.rows], return_counts=True)
        pairs, places = np.unique(keys // num_documents, return_inverse=True)
        sums = np.bincount(places, np.minimum(uses, most), len(pairs)).astype(np.int64)
        totals = np.bincount(pairs % max(1, num), sums, num).astype(np.int64)
        counts: list[dict[Any, int]] = [{} for _ in range(number)]
        for pair, count in zip(pairs.tolist(), sums.tolist(), strict=True):
            counts[pair // num][items.names[pair % num]] = count
        return counts, dict(zip(items.names, totals.tolist(), strict=True))

    @cached_property
    def _documents(self) -> Labels:
        """(N,) the number of each use's document; where these are few, that of the use."""
        numbers: dict[Hashable, int] = {}
        documents = self.documents or ()
        found = [numbers.setdefault(document, len(numbers)) for document in documents]
        return np.array(found if len(numbers) >= _FEW_DOCUMENTS else range(len(self.spans)))


class _Items(NamedTuple):
    """What stands around uses, each thing once for a use."""

    rows: Labels  # (P,) the use
    numbers: Labels  # (P,) which of the names
    names: Sequence[Any]

    @property
    def num_bytes(self) -> int:
        """Memory of the pairs, and about that of the names."""
        return self.rows.nbytes + self.numbers.nbytes + 150 * len(self.names)

    @classmethod
    def of(
        cls, rows: Labels, each: Sequence[Sequence[Any]], is_kept: Callable[[Any], bool]
    ) -> "_Items":
        """Of what each of these uses has, that which can be part of a name."""
        kept: dict[Any, bool] = {}
        numbers: dict[Any, int] = {}
        pairs: list[tuple[int, int]] = []
        for row, items in zip(rows.tolist(), each, strict=True):
            for item in set(items):
                if item not in kept:
                    kept[item] = is_kept(item)
                if kept[item]:
                    pairs.append((row, numbers.setdefault(item, len(numbers))))
        found = np.array(pairs, np.int64).reshape(-1, 2)
        return cls(found[:, 0], found[:, 1], list(numbers))


def first_copies(sentences: Sequence[Sequence[str]], spans: npt.NDArray[np.int64]) -> Labels:
    """(N,) for each use the one that its line is a copy of, or nearly; itself if of none.

    Boilerplate, quotations and tables bring the same line again and again. Lines are compared by
    the words in a row they share around the use. Of copies, the one whose line comes first in the
    alphabet stands for all, whatever their order.
    """
    from scipy.sparse import coo_matrix, csr_matrix
    from scipy.sparse.csgraph import connected_components

    ids: dict[Frame, int] = {}
    rows, columns, keys = [], [], []
    for row, (words, (begin, end)) in enumerate(zip(sentences, spans.tolist(), strict=True)):
        near = tuple(word.lower() for word in words[max(0, begin - _WINDOW) : end + _WINDOW])
        keys.append(near)
        shingles = {near[at : at + _SHINGLE] for at in range(len(near) - _SHINGLE + 1)}
        if len(shingles) >= _MIN_SHINGLES:
            columns += [ids.setdefault(shingle, len(ids)) for shingle in shingles]
            rows += [row] * len(shingles)
    itself: Labels = np.arange(len(keys))
    if not rows:
        return itself
    shape = (len(keys), len(ids))
    has = csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
    sizes = np.diff(has.indptr)
    shared = (has @ has.T).tocoo()
    either = sizes[shared.row] + sizes[shared.col] - shared.data
    is_copy = shared.data >= _ALIKE * either
    is_copy &= shared.row < shared.col
    edges = (np.ones(int(is_copy.sum())), (shared.row[is_copy], shared.col[is_copy]))
    parts = connected_components(coo_matrix(edges, shape=(len(keys),) * 2), directed=False)[1]
    firsts: dict[int, int] = {}
    for row in sorted(range(len(keys)), key=lambda row: (keys[row], row)):
        firsts.setdefault(int(parts[row]), row)
    return np.array([firsts[part] for part in parts.tolist()], np.int64)


def _frames_of(words: Sequence[str], span: Sequence[int]) -> list[Frame]:
    """The word with one to three of its neighbours, on either side."""
    begin, end = span
    left = [word.lower() for word in words[max(0, begin - 2) : begin]]
    right = [word.lower() for word in words[end : end + 3]]
    found: list[Frame] = [(*left[len(left) - n :], SLOT) for n in (1, 2) if len(left) >= n]
    found += [(SLOT, *right[:n]) for n in (1, 2, 3) if len(right) >= n]
    found += [(left[-1], SLOT, right[0])] if left and right else []
    return [frame for frame in found if all(word == SLOT or _is_word(word) for word in frame)]


def _joined(words: Iterable[str]) -> str:
    """In one line; languages that write no spaces have none here."""
    frame = tuple(words)
    has_spaces = all(word[0] < "\u2e80" for word in frame)
    return (" " if has_spaces else "").join(frame)


def _strength(here: float, all_here: float, there: float, all_there: float) -> float:
    """Signed root of the log-likelihood ratio that `here` of `all_here` is more than chance."""
    both, size = here + there, all_here + all_there
    ratio = here * np.log(here * size / (all_here * both)) if here else 0.0
    ratio += there * np.log(there * size / (all_there * both)) if there else 0.0
    sign = 1 if here * all_there > there * all_here else -1
    return float(sign * np.sqrt(max(2 * ratio, 0.0)))


def _ranked(scores: Mapping[Any, float]) -> list[Any]:
    return sorted(scores, key=lambda item: (-scores[item], item))


def _one_of_astem(words: Sequence[str], number: int, taken: set[str] | None = None) -> list[str]:
    """The first words, of those with one stem only the best."""
    stems = set(taken or ())
    found: list[str] = []
    for word in words:
        key = stem(word.lower())
        if key not in stems and len(found) < number:
            stems.add(key)
            found.append(word)
    return found


def stem(word: str) -> str:
    """The word without its ending, roughly: enough to see that two forms are of one word."""
    found = _ENDINGS.sub("", word) if word.isascii() else word
    return found if len(found) >= 3 else word


def _is_word(word: str) -> bool:
    return any(map(str.isalpha, word)) and (len(word) > 1 or not word.isascii())
