"""One word in two sets of texts: all its uses grouped together, then the sets compared.

    in   uses of both sides, which of them are before and which after, and what describes them
    out  `WordChange`: the change that was measured, and the groups with their lines

Groups are those of all uses together, so that a group is the same meaning on both sides. Distances
are those of substitutes: what the model expects in a use's place. Topics are left out, since two
periods write of different things with the same words; so are contexts, which tell people's
judgements of change less well (`benchmarks/change.py`).
"""

import contextlib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from polyseme.display import counted, summary
from polyseme.errors import InputError
from polyseme.meanings.change.measure import (
    MIN_DOCUMENTS,
    SENTENCES,
    AgainstControls,
    Change,
    Side,
    Unit,
    measure_change,
)
from polyseme.meanings.concordance.background import Background
from polyseme.meanings.concordance.conditions import (
    EVERYTHING,
    All,
    Condition,
    Some,
    columns_of,
    rows_meeting,
)
from polyseme.meanings.concordance.search import (
    Query,
    ShardGroups,
    all_groups,
    in_threads,
    read_groups,
)
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import Uses, find_words, numbers_by_word
from polyseme.meanings.features.use_features import Floats, Labels, UseEncoder, UseFeatures
from polyseme.meanings.groups.calibration import Kept
from polyseme.meanings.groups.grouping import MIN_USES, centred, join_views, tf_idf
from polyseme.meanings.groups.senses import Senses, find_senses
from polyseme.meanings.index.use_index import IndexedUses
from polyseme.progress import SILENT, Progress
from polyseme.text.corpus import Corpus, damage_explained

VERSION = 1
NUM_CONTROLS, MIN_CONTROLS = 60, 20
"""Control words that are measured; with fewer than the second there are none."""
_MOST_USES = 9_600  # of all control words together: less than a minute of one core
NEIGHBOURS = 10
_DRAWS = 5  # of a word's uses, if it has more
_MOST_FOUND = 400_000  # uses of control words that are looked for: 100 MB


class FrequencyBand(NamedTuple):
    """Words of like frequency, on the side on which they are rarer."""

    least: int
    most: int  # they are rarer than that
    uses: int  # of each side that are taken of such a word


_BANDS = (
    FrequencyBand(20, 40, 20),
    FrequencyBand(40, 80, 40),
    FrequencyBand(80, 160, 80),
    FrequencyBand(160, 1 << 62, 120),
)


@dataclass(frozen=True)
class Controls:
    """Control words of one band of frequency."""

    by_document: bool  # whether neighbours are of other documents
    own_side: Mapping[int, Mapping[str, float]]
    """By the number of uses that were taken of each side: how far each word moved."""

    def rank(
        self,
        features: UseFeatures,
        sides: tuple[Labels, Labels],
        documents: Sequence[Hashable],
        words: Sequence[str] = (),
        seed: int = 1,
    ) -> AgainstControls | None:
        """Where a word stands among them; None if a side has too few uses.

        `sides`: the numbers of its uses before and after. `words`: its forms, which are no controls
        of their own. Of many uses some are drawn, several times, and the mean is taken.
        """
        uses = max((each for each in self.own_side if each <= min(map(len, sides))), default=0)
        if not uses:
            return None
        own = documents if self.by_document else None
        value = mean_own_side_share(features, sides, uses, own, seed)
        left_out = {word.casefold() for word in words}
        others = [share for word, share in self.own_side[uses].items() if word not in left_out]
        below = sum(share < value for share in others)
        return AgainstControls(below, len(others), uses, value)


_CONTROLS = TypeAdapter(Controls)


def band_of(counts: tuple[int, int]) -> FrequencyBand | None:
    """The band of a word that is so frequent before and after; None if it is too rare."""
    return next((band for band in _BANDS if band.least <= min(counts) < band.most), None)


def mean_own_side_share(
    features: UseFeatures,
    sides: tuple[Labels, Labels],
    uses: int,
    documents: Sequence[Hashable] | None = None,
    seed: int = 1,
) -> float:
    """`own_side_share` of so many uses of each side; if there are more, the mean of some draws."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(_DRAWS if max(map(len, sides)) > uses else 1):
        chosen = np.concatenate([random.permutation(side)[:uses] for side in sides])
        own = None if documents is None else [documents[number] for number in chosen.tolist()]
        found.append(own_side_share(features.select(chosen), uses, own))
    return float(np.mean(found))


def own_side_share(
    features: UseFeatures, edge: int, documents: Sequence[Hashable] | None = None
) -> float:
    """Which part of the nearest neighbours of a use is of its own side, on average over uses.

    The uses before come first, up to `edge`. `documents`: neighbours are of others than the use's.
    """
    number = len(features)
    similar = _similar(features)
    names = range(number) if documents is None else documents
    codes: dict[Hashable, int] = {}
    own = np.array([codes.setdefault(name, len(codes)) for name in names])
    similar[own[:, None] == own] = -np.inf
    nearest = np.argsort(-similar, axis=1, kind="stable")[:, :NEIGHBOURS]
    counts = np.isfinite(np.take_along_axis(similar, nearest, axis=1))
    is_after = np.arange(number) >= edge
    is_own = is_after[nearest] == is_after[:, None]
    return float((is_own & counts).sum() / max(1, counts.sum()))


def _similar(features: UseFeatures) -> npt.NDArray[np.float64]:
    """(N, N) cosines of substitutes by TF-IDF; or of contexts, where there are no substitutes."""
    if features.substitutes is None:
        vectors = centred(features.context).astype(np.float64)
        return vectors @ vectors.T
    matrix = tf_idf(features.substitutes).astype(np.float64)
    found: npt.NDArray[np.float64] = (matrix @ matrix.T).toarray()
    return found


@dataclass(frozen=True)
class Sides:
    """Two sides of a corpus."""

    before: Condition
    after: Condition
    where: Condition = EVERYTHING  # what sentences of either must meet

    def numbers(self, uses: Uses) -> tuple[Labels, Labels]:
        """Which uses are of either."""
        return uses.matching(self.before), uses.matching(self.after)

    @property
    def columns(self) -> set[str]:
        """What they are told apart by."""
        return columns_of(All((self.before, self.after)))


def controls_of(
    corpus: Corpus,
    encoder: UseEncoder,
    sides: Sides,
    counts: tuple[int, int],
    progress: Progress = SILENT,
) -> Controls | None:
    """What was measured before for these sides and this model; else it is measured.

    `counts`: how often the word in question is on each side. None if the corpus, or the index that
    describes it, has too few words as frequent.
    """
    band = band_of(counts)
    if band is None or encoder.layer is not None:
        return None
    asked = sorted(map(str, (sides.before, sides.after)))
    kept = Kept.of(corpus, "change", VERSION, encoder.fingerprint, asked, str(sides.where), band)
    found = kept.read(_CONTROLS.validate_python)
    if found is None:
        found = _measure(corpus, encoder, sides, band, progress)
        if found is None:  # and a model may have more to say
            return None
        kept.write(asdict(found))
    return found if min(map(len, found.own_side.values())) >= MIN_CONTROLS else None


def _measure(
    corpus: Corpus,
    encoder: UseEncoder,
    sides: Sides,
    band: FrequencyBand,
    progress: Progress,
) -> Controls | None:
    """None if an index has too few words as frequent."""
    number = band.uses
    pair = (sides.before, sides.after)
    counted = count_sides(corpus, pair, sides.where)
    content = Background.of(corpus).content_words(2 * band.least, len(counted.spellings))
    rarer = {word: min(counts[word] for counts in counted.counts) for word in content}
    words = [word for word in content if band.least <= rarer[word] < band.most]
    if isinstance(encoder, IndexedUses):
        words = sorted({*words} & {*encoder.index.word_counts()[0]})
        if len(words) < MIN_CONTROLS:
            return None
    words.sort(key=lambda word: (rarer[word], word))
    wanted = min(NUM_CONTROLS, _MOST_USES // (2 * number), len(words))
    drawn = np.linspace(0, len(words) - 1, wanted).astype(int)
    words = [words[at] for at in drawn.tolist()]
    by_document = min(map(len, counted.documents)) >= MIN_DOCUMENTS
    if not words:
        return Controls(by_document, {number: {}})
    total = sum(counts[word] for counts in counted.counts for word in words)
    uses, encoder = _find(corpus, encoder, words, sides, max(1, total // _MOST_FOUND))
    chosen = _draw(uses, words, pair, number)
    every = uses.select(np.concatenate([np.empty(0, np.int64), *chosen.values()]))
    progress.start("Measuring control words", len(every))
    features = encoder.encode(every, progress.update)
    documents = every.metadata(DOCUMENT)
    shares: dict[int, dict[str, float]] = {}
    for taken in sorted({each.uses for each in _BANDS if each.uses <= number}):
        shares[taken] = {}
        for index, word in enumerate(chosen):
            first = 2 * number * index + np.arange(taken)
            rows = np.concatenate([first, first + number])
            own = [documents[row] for row in rows.tolist()] if by_document else None
            share = own_side_share(features.select(rows), taken, own)
            shares[taken][word] = round(share, 6)
    return Controls(by_document, shares)


def _find(
    corpus: Corpus, encoder: UseEncoder, words: Sequence[str], sides: Sides, every: int
) -> tuple[Uses, UseEncoder]:
    """Uses of all these words on either side; in very large corpora only in part of the texts."""
    where = All((Some((sides.before, sides.after)), sides.where))
    if isinstance(encoder, IndexedUses):
        found = encoder.index.find(corpus, Query(tuple(words)), where=where)
        return found.uses, found
    return find_words(corpus, words, where, step=every), encoder


def _draw(
    uses: Uses, words: Sequence[str], sides: tuple[Condition, Condition], number: int
) -> dict[str, Labels]:
    """As many uses of each side of every word that has them, those before first, in any order."""
    by_word = numbers_by_word(uses)
    matching = [uses.matching(side) for side in sides]
    random = np.random.default_rng(1)
    found = {}
    for word in words:
        own = by_word.get(word, np.empty(0, np.int64))
        both = [random.permutation(np.intersect1d(own, side))[:number] for side in matching]
        if min(map(len, both)) == number:
            found[word] = np.concatenate(both)
    return found


@dataclass
class SideWords:
    """The words of two sides."""

    counts: tuple[Counter[str], Counter[str]] = field(
        default_factory=lambda: (Counter(), Counter())
    )
    """How often each folded word is before and after."""
    spellings: dict[str, set[str]] = field(default_factory=dict)
    documents: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))
    """Which documents each side has."""

    def candidates(self, min_uses: int, max_share: float) -> list[str]:
        """Words with a letter, and so many uses on each side, but for the most frequent of all."""
        before, after = self.counts
        # In a small corpus any word that is frequent enough is a large share of it.
        most = max(max_share * (before.total() + after.total()), 10 * min_uses)
        return sorted(
            word
            for word, count in before.items()
            if count >= min_uses
            and after[word] >= min_uses
            and count + after[word] <= most
            and any(map(str.isalpha, word))
        )


def count_sides(
    corpus: Corpus,
    sides: tuple[Condition, Condition],
    where: Condition = EVERYTHING,
) -> SideWords:
    """Count the words of both sides. `where`: what sentences of either must meet."""
    columns = list({DOCUMENT, *columns_of(All((*sides, where)))})
    total = SideWords()
    for part in in_threads(partial(_count, sides, where, columns), all_groups(corpus)):
        for number, counts in enumerate(part.counts):
            for spelling, count in counts.items():
                word = spelling.casefold()
                total.counts[number][word] += count
                total.spellings.setdefault(word, set()).add(spelling)
            total.documents[number].update(part.documents[number])
    return total


def _count(
    sides: tuple[Condition, Condition], where: Condition, columns: list[str], part: ShardGroups
) -> SideWords:
    """The counts of some row groups, each spelling by itself."""
    found = SideWords()
    with damage_explained(part.path):
        for words, values in read_groups(part, columns):
            masks = [rows_meeting(All((side, where)), values) for side in sides]
            if not any(mask.any() for mask in masks):
                continue
            lengths, documents = np.diff(words.offsets), values[DOCUMENT]
            for number, mask in enumerate(masks):
                counts = np.bincount(words.codes[np.repeat(mask, lengths)])
                there = np.flatnonzero(counts)
                spelled = words.spell(there)
                found.counts[number].update(dict(zip(spelled, counts[there].tolist(), strict=True)))
                chosen = np.unique(documents.codes[mask])
                found.documents[number].update(documents.values[c] for c in chosen[chosen >= 0])
    return found


MIN_SIDE = MIN_USES // 2
"""Uses that each side needs: of 20 a side, large changes are found and small ones missed."""
RIVAL_SHARE = 1 / 3
"""What part of a side one author, or another value of a column, must have to be told."""
_MAX_SIDE = 2_500  # uses of a side that are described, sampled by seed
_GROUPS_IF_ONE = 4  # of a word that is beyond its controls, to see what moved


@dataclass(frozen=True, slots=True)
class Rival:
    """What may be the reason of a change in the place of time: one author, one genre, one text."""

    side: Literal["before", "after"]
    column: str
    value: str
    share: float  # of the side's uses
    without: AgainstControls | None = None
    """What is found without these uses; None if that was not asked, or too few are left."""

    def __str__(self) -> str:
        return (
            f"{self.share:.0%} of the uses {self.side} are of one {self.column}, {self.value}."
            f"{self.told_without}"
        )

    @property
    def told_without(self) -> str:
        """What is found without these uses, in a sentence."""
        if self.without is None:
            return ""
        if self.without.is_beyond:
            return " Without them they differ as much."
        return " Without them the uses differ as much as those of ordinary words do."


@dataclass(frozen=True, eq=False)
class WordChange:
    """How the uses of a word moved between two sides."""

    change: Change
    senses: Senses
    """All uses in groups: first those before, then those after."""
    num_before: int
    """How many of `senses.uses` are of the side before."""
    rivals: tuple[Rival, ...] = ()

    @property
    def verdict(self) -> str:
        """What was found, in a sentence."""
        key, values = self.change.sentence(self.senses.word)
        return SENTENCES[key].format(**values)

    @property
    def caveat(self) -> str:
        """What the test cannot say."""
        if self.change.unit == "documents":
            return "Sides may differ in topic and genre as well: read the lines behind a group."
        return (
            "Uses, not documents, were shuffled, because a side has fewer than five: an author's "
            "style may look like change."
        )

    def __repr__(self) -> str:
        return summary("WordChange", repr(self.change), repr(self.senses))

    def _repr_html_(self) -> str:
        return self.change._repr_html_() + self.senses._repr_html_()

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        rivals = [str(rival) for rival in self.rivals]
        return {"change": self.change.to_json(), "rivals": rivals, **self.senses.to_json()}


def compare_sides(
    uses: Uses,
    sides: Sides | tuple[Labels, Labels],
    encoder: UseEncoder,
    *,
    unit: Unit | None = None,
    seed: int = 1,
    progress: Progress = SILENT,
) -> WordChange:
    """Group the uses of both sides together, and measure how far the sides are apart.

    `sides`: conditions; or the numbers of the uses of either, which are then not compared with
    other words of the corpus.
    """
    before, after = sides.numbers(uses) if isinstance(sides, Sides) else sides
    _check_sides(before, after)
    random = np.random.default_rng(seed)
    first, second = (np.sort(random.permutation(side)[:_MAX_SIDE]) for side in (before, after))
    chosen, edge = uses.select(np.concatenate([first, second])), len(first)
    senses = find_senses(chosen, encoder, seed=seed, progress=progress)
    two = TwoSides(chosen, senses.features, (np.arange(edge), np.arange(edge, len(chosen))))
    if isinstance(sides, Sides) and uses.corpus is not None:
        counts = len(before), len(after)
        controls = controls_of(uses.corpus, encoder, sides, counts, progress)
        two = replace(two, controls=controls, told_apart_by=frozenset(sides.columns))
    change, senses = two.compare(senses, unit=unit, seed=seed)
    return WordChange(change, senses, edge, two.rivals(change))


@dataclass(frozen=True, eq=False)
class TwoSides:
    """Uses of a word on two sides, however they are grouped."""

    uses: Uses
    features: UseFeatures
    numbers: tuple[Labels, Labels]  # the uses before and after
    controls: Controls | None = None
    told_apart_by: frozenset[str] = frozenset()
    """Columns that the sides were chosen by, which are no rivals."""

    def compare(
        self, senses: Senses, *, unit: Unit | None = None, seed: int = 1
    ) -> tuple[Change, Senses]:
        """As `measure`; if one group moved beyond control words, split to see which uses did."""
        change = self.measure(senses.labels, unit=unit, seed=seed)
        is_beyond = change.controls is not None and change.controls.is_beyond
        if not (is_beyond and senses.grouping.is_one_meaning):
            return change, senses
        with contextlib.suppress(InputError):  # uses that are nearly all the same
            split = senses.regrouped(num_groups=_GROUPS_IF_ONE, seed=seed)
            note = (
                "By themselves these uses are one group. As they moved, they are split, to show "
                "which did."
            )
            senses = replace(split, source_notes=(*senses.source_notes, note))
        return self.measure(senses.labels, unit=unit, seed=seed), senses

    def measure(
        self, groups: Sequence[Hashable], *, unit: Unit | None = None, seed: int = 1
    ) -> Change:
        """How far apart they are, and which groups moved."""
        vectors, documents = substitute_vectors(self.features, seed), self.uses.metadata(DOCUMENT)
        sides = [
            Side(vectors[side], [documents[n] for n in side], [groups[n] for n in side])
            for side in self.numbers
        ]
        found = measure_change(*sides, unit=unit, seed=seed)
        return replace(found, controls=self._rank(self.numbers, seed))

    def rivals(self, change: Change) -> tuple[Rival, ...]:
        """Of each side the value that most of its uses have in common, and the other's have not.

        Numbers and dates are left out: a year or a period such as 1840-1859 is no rival.
        """
        found = []
        before, after = self.numbers
        for name, own, other in (("before", before, after), ("after", after, before)):
            shares: list[tuple[float, str, str]] = []
            for column in self.uses.columns:
                values = [value or "" for value in self.uses.metadata(column)]
                is_chosen = column in {DOCUMENT, *self.told_apart_by}
                if is_chosen:
                    continue
                [(value, count)] = Counter(values[n] for n in own).most_common(1)
                share = count / len(own)
                elsewhere = sum(values[n] == value for n in other) / len(other)
                is_date = not any(letter.isalpha() for letter in value)
                if not is_date and share >= RIVAL_SHARE and elsewhere < share / 2:
                    shares.append((share, column, value))
            if shares:
                share, column, value = max(shares, key=lambda each: each[0])  # the first of equals
                without = None if change.verdict == "alike" else self._without(column, value)
                side: Literal["before", "after"] = "before" if name == "before" else "after"
                found.append(Rival(side, column, value, share, without))
        return tuple(found)

    def _without(self, column: str, value: str) -> AgainstControls | None:
        is_other = np.array([each != value for each in self.uses.metadata(column)])
        before, after = (side[is_other[side]] for side in self.numbers)
        return self._rank((before, after))

    def _rank(self, numbers: tuple[Labels, Labels], seed: int = 1) -> AgainstControls | None:
        if self.controls is None:
            return None
        forms = self.uses.query.forms if self.uses.query else ()
        documents = self.uses.metadata(DOCUMENT)
        return self.controls.rank(self.features, numbers, documents, forms, seed)


def substitute_vectors(features: UseFeatures, seed: int) -> Floats:
    """(N, D) of length one: what stands for a use in distances; contexts, if nothing else does."""
    if features.substitutes is None:
        return join_views(replace(features, topic=None, expected=None), seed=seed)
    nothing = np.empty((len(features), 0), np.float32)
    return join_views(UseFeatures(nothing, nothing, features.substitutes), seed=seed)


def _check_sides(before: Labels, after: Labels) -> None:
    """Refuse sides that share uses, or have too few."""
    if both := np.intersect1d(before, after).size:
        raise InputError(
            f"The sides share {counted(both, 'use')}. Choose sides that exclude each other."
        )
    for name, side in (("before", before), ("after", after)):
        if len(side) < MIN_SIDE:
            raise InputError(
                f"The side {name!r} has {counted(len(side), 'use')}; each side needs at least "
                f"{MIN_SIDE}. Choose a wider side, or look for more forms of the word."
            )
