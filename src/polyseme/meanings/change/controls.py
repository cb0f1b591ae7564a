"""Control words: how far ordinary words of like frequency move between the same two sides.

    in   a corpus, two sides of it, and what describes uses
    out  `Controls`, which a word is held against: it changed more than so many of them

Two sets of texts differ in authors, topics, grammar and typesetting, and all words with them: nine
of ten differ by more than shuffled documents do. So a word has changed if it moved further than
others of its frequency did. How far it moved is told by the nearest neighbours of its uses, those
that share the most substitutes and are of other documents: by how many of them are of the use's own
side (Schilling 1986). That depends on the number of uses, so as many are taken of every word.

Control words are content words of the corpus. Nouns alone would do no better, nor a closer match of
frequency: of 382 words of novels from 1840 to 1920, as many uses taken of each, nouns move as far
as others (rank correlation -0.06), and frequent words as rare ones (0.02). They are measured once
for two sides and a model, and kept beside the corpus in `NAME.calibration/`.

Also here: how often every word occurs on the two sides, in one reading of the corpus.
"""

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from polyseme.limits import read_json
from polyseme.meanings.change.measure import MIN_DOCUMENTS, AgainstControls
from polyseme.meanings.concordance.background import Background
from polyseme.meanings.concordance.conditions import (
    EVERYTHING,
    All,
    Condition,
    Some,
    columns_of,
    rows_meeting,
)
from polyseme.meanings.concordance.query import Query
from polyseme.meanings.concordance.search import (
    ShardGroups,
    all_groups,
    in_threads,
    read_columns,
    search,
)
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import Uses, numbers_by_word
from polyseme.meanings.features.use_features import Describer, Ids, Labels, UseFeatures
from polyseme.meanings.groups.calibration import folder_of
from polyseme.meanings.groups.grouping import centred, unit_length
from polyseme.meanings.index.use_index import IndexedUses
from polyseme.progress import NullProgress, Progress
from polyseme.storage.files import sha256_of, write_text
from polyseme.storage.folders import MANIFEST
from polyseme.storage.parquet import ParquetReader
from polyseme.text.corpus import Corpus, damage_explained, words_of
from polyseme.text.shard_words import ShardWords

VERSION = 1
NUM_CONTROLS, MIN_CONTROLS = 60, 20
"""Control words that are measured; with fewer than the second there are none."""
_MOST_USES = 9_600  # of all control words together: less than a minute of one core
NEIGHBOURS = 10
_DRAWS = 5  # of a word's uses, if it has more
_MOST_FOUND = 400_000  # uses of control words that are looked for: 100 MB


class Band(NamedTuple):
    """Words of like frequency, on the side on which they are rarer."""

    least: int
    most: int
    """They are rarer than that."""
    uses: int
    """Of each side that are taken of such a word."""


_BANDS = (Band(20, 40, 20), Band(40, 80, 40), Band(80, 160, 80), Band(160, 1 << 62, 120))


@dataclass(frozen=True)
class Controls:
    """Control words of one band of frequency."""

    by_document: bool
    """Whether neighbours are of other documents."""
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


def band_of(counts: tuple[int, int]) -> Band | None:
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
    matrix = _tf_idf(features.substitutes)
    found: npt.NDArray[np.float64] = (matrix @ matrix.T).toarray()
    return found


def _tf_idf(substitutes: Ids) -> Any:
    """Sparse (N, V), rows of length one."""
    from scipy.sparse import csr_matrix

    rows, k = substitutes.shape
    words, columns = np.unique(substitutes, return_inverse=True)
    in_uses = np.bincount(columns.ravel(), minlength=len(words))
    weights = np.log((1 + rows) / (1 + in_uses)) + 1
    values = unit_length(weights[columns.reshape(rows, k)]).ravel().astype(np.float64)
    starts = np.arange(0, rows * k + 1, k)
    return csr_matrix((values, columns.ravel(), starts), shape=(rows, len(words)))


@dataclass(frozen=True)
class Sides:
    """Two sides of a corpus."""

    before: Condition
    after: Condition
    where: Condition = EVERYTHING
    """What sentences of either must meet."""

    def numbers(self, uses: Uses) -> tuple[Labels, Labels]:
        """Which uses are of either."""
        return uses.matching(self.before), uses.matching(self.after)

    @property
    def columns(self) -> set[str]:
        """What they are told apart by."""
        return columns_of(All((self.before, self.after)))


def controls_of(
    corpus: Corpus,
    describer: Describer,
    sides: Sides,
    counts: tuple[int, int],
    progress: Progress | None = None,
) -> Controls | None:
    """What was measured before for these sides and this model; else it is measured.

    `counts`: how often the word in question is on each side. None if the corpus, or the index that
    describes it, has too few words as frequent.
    """
    band = band_of(counts)
    if band is None or describer.is_of_layer:
        return None
    made_from = sha256_of(corpus.folder / MANIFEST)
    asked = sorted(map(str, (sides.before, sides.after)))
    key = json.dumps([VERSION, made_from, describer.fingerprint, asked, str(sides.where), band])
    name = f"change-{made_from[:8]}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
    path = folder_of(corpus.folder.resolve()) / name
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        told = read_json(path)
        if told["key"] == key:
            shares = {
                int(uses): {str(word): float(share) for word, share in each.items()}
                for uses, each in told["own_side"].items()
            }
            return _enough(Controls(bool(told["by_document"]), shares))
    found = _measure(corpus, describer, sides, band, progress or NullProgress())
    if found is None:  # and a model may have more to say
        return None
    content = {"key": key, **asdict(found)}
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        for older in path.parent.glob("change-*.json"):
            if not older.name.startswith(f"change-{made_from[:8]}"):  # of texts that have changed
                older.unlink()
        write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return _enough(found)


def _enough(found: Controls) -> Controls | None:
    return found if min(map(len, found.own_side.values())) >= MIN_CONTROLS else None


def _measure(
    corpus: Corpus,
    describer: Describer,
    sides: Sides,
    band: Band,
    progress: Progress,
) -> Controls | None:
    """None if an index has too few words as frequent."""
    number = band.uses
    pair = (sides.before, sides.after)
    counted = count_sides(corpus, pair, sides.where)
    content = Background.of(corpus).content_words(2 * band.least, len(counted.spellings))
    rarer = {word: min(counts[word] for counts in counted.counts) for word in content}
    words = [word for word in content if band.least <= rarer[word] < band.most]
    if isinstance(describer, IndexedUses):
        words = sorted({*words} & {*describer.index.word_counts()[0]})
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
    uses, describer = _find(corpus, describer, words, sides, max(1, total // _MOST_FOUND))
    chosen = _draw(uses, words, pair, number)
    every = uses.select(np.concatenate([np.empty(0, np.int64), *chosen.values()]))
    progress.start("Measuring control words", len(every))
    features = describer.describe(every, progress.update)
    documents = every.metadata(DOCUMENT)
    shares: dict[int, dict[str, float]] = {}
    for taken in sorted({each.uses for each in _BANDS if each.uses <= number}):
        shares[taken] = {}
        for place, word in enumerate(chosen):
            first = 2 * number * place + np.arange(taken)
            rows = np.concatenate([first, first + number])
            own = [documents[row] for row in rows.tolist()] if by_document else None
            share = own_side_share(features.select(rows), taken, own)
            shares[taken][word] = round(share, 6)
    return Controls(by_document, shares)


def _find(
    corpus: Corpus, describer: Describer, words: Sequence[str], sides: Sides, every: int
) -> tuple[Uses, Describer]:
    """Uses of all these words on either side; in very large corpora only in part of the texts."""
    query = Query(tuple(words))
    where = All((Some((sides.before, sides.after)), sides.where))
    if isinstance(describer, IndexedUses):
        found = describer.index.find(corpus, query, where=where)
        return found.uses, found
    parts = [
        part._replace(groups=range(group, group + 1))
        for part in all_groups(corpus)
        for group in part.groups
    ][::every]
    table, rows, spans = search(corpus, query.resolve(corpus), where, threads=2, parts=parts)
    return Uses(table, rows, spans, query, corpus), describer


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
    *,
    threads: int = 2,
) -> SideWords:
    """Count the words of both sides. `where`: what sentences of either must meet."""
    columns = list({DOCUMENT, *columns_of(All((*sides, where)))})
    total = SideWords()
    for part in in_threads(partial(_count, sides, where, columns), all_groups(corpus), threads):
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
    with (
        damage_explained(part.path),
        ParquetReader(part.path, columns) as metadata,
    ):
        shard = ShardWords(words_of(part.path))
        for group in part.groups:
            values = read_columns(metadata, group, columns)
            masks = [rows_meeting(All((side, where)), values) for side in sides]
            if not any(mask.any() for mask in masks):
                continue
            words = shard[group]
            lengths = np.diff(words.offsets)
            documents = values[DOCUMENT]
            for number, mask in enumerate(masks):
                chosen_words = words.codes[np.repeat(mask, lengths)]
                counts = np.bincount(chosen_words)
                there = np.flatnonzero(counts)
                spelled = words.spell(there)
                found.counts[number].update(dict(zip(spelled, counts[there].tolist(), strict=True)))
                chosen = np.unique(documents.codes[mask])
                found.documents[number].update(
                    documents.values[code] for code in chosen[chosen >= 0]
                )
    return found
