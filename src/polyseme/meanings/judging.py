"""What to judge next: pairs of uses, or lines, drawn at random or chosen after judgments so far.

    in   uses of a word, a model or an index that describes them, perhaps judgments so far
    out  items for each annotator: the same for all, but for those that were in dispute

Random items tell how related the uses of a word are, and how far people agree. Chosen ones are
those to talk about: pairs of which a classifier, learned from the judgments so far (`same.py`), is
least sure, and items that two people judged differently, for those who have not judged them. The
classifier learns no more from them than from random ones (docs/experiments.md). The sheets say
which is which (`sample`), and means are of random ones alone.
"""

import math
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from polyseme.display import counted
from polyseme.errors import ConfigError, InputError, extra_needed_for
from polyseme.meanings.concordance import durel
from polyseme.meanings.concordance.export import write_table
from polyseme.meanings.concordance.lines import sample_uses
from polyseme.meanings.concordance.sentence_table import Integers
from polyseme.meanings.concordance.uses import Use, Uses
from polyseme.meanings.features.use_features import Floats, UseEncoder
from polyseme.meanings.judgments import (
    CHOSEN,
    RANDOM,
    SAME,
    Item,
    Judgments,
    Key,
    Kind,
    Sheet,
    cell_text,
)
from polyseme.progress import SILENT, Progress
from polyseme.storage.files import make_output

_DESCRIBED = 600  # uses that new pairs are chosen from
_CANDIDATES = 3_000  # pairs that new ones are chosen from
_PER_USE = 2  # chosen pairs that one use may be in: many of one use teach little more than one
_IN_DISPUTE = 2  # steps of the scale that two judgments of a pair are apart
_DISPUTED_SHARE = 2  # at most one in so many items is one that was in dispute

Pair = tuple[int, int]


@dataclass(frozen=True)
class Plan:
    """Who is to judge how much of what."""

    annotators: Sequence[str]
    number: int
    """How many items each gets."""
    senses: Sequence[str] = ()
    """Those to choose from: then lines are judged, not pairs."""
    seed: int = 1

    @property
    def kind(self) -> Kind:
        """What is judged."""
        return "lines" if self.senses else "pairs"


@dataclass(frozen=True)
class Material:
    """What each annotator is to judge."""

    kind: Kind
    lemma: str
    uses: Uses
    """Those that the items have."""
    sheets: Mapping[str, Sequence[Item]]
    """The items of each annotator, in an order of their own."""
    notes: tuple[str, ...] = ()

    @property
    def items(self) -> dict[Key, Item]:
        """All of them."""
        found = {item.key: item for items in self.sheets.values() for item in items}
        return dict(sorted(found.items()))


def draw_material(uses: Uses, plan: Plan) -> Material:
    """Items drawn at random."""
    named = _Named(uses)
    if plan.senses:
        lines = _Named(sample_uses(uses, plan.number, seed=plan.seed))
        items = [lines.line(row, RANDOM, plan.senses) for row in range(len(lines.all))]
    else:
        pairs = _random_pairs(named, plan.number, plan.seed)
        items = [named.pair(pair, RANDOM) for pair in pairs]
    notes = []
    if len(items) < plan.number:
        notes.append(f"There are no more than {len(items):,} {plan.kind}.")
    return _material(named, plan, dict.fromkeys(plan.annotators, items), notes)


def choose_material(
    uses: Uses,
    encoder: UseEncoder,
    judgments: Judgments,
    plan: Plan,
    progress: Progress = SILENT,
) -> Material:
    """Items chosen after the judgments so far: those in dispute, and those that are least clear."""
    if judgments.kind != plan.kind:
        raise ConfigError(
            f"The judgments so far are of {judgments.kind}: "
            + ("leave out --senses." if plan.senses else "name the senses with --senses.")
        )
    named = _Named(uses)
    judged = named.numbers(judgments)
    if not judged:
        raise InputError(
            f"None of the judgments so far is of uses of {named.lemma!r} that are found here. Look "
            "for the same word, with the same forms and conditions, in the same corpus."
        )
    disputed = _disputed(judgments, list(judged))
    mine: dict[str, list[Item]] = {}
    for annotator in plan.annotators:
        open_ones = [key for key in disputed if annotator not in judgments.values[key]]
        mine[annotator] = [
            Item(key, judgments.items[key].sentences, CHOSEN, tuple(plan.senses))
            for key in open_ones[: plan.number // _DISPUTED_SHARE]
        ]
    again = {item.key for items in mine.values() for item in items}
    chooser = _Chooser(named, encoder, judgments, judged, plan, progress)
    items, note = chooser.unclear_lines() if plan.senses else chooser.unsure_pairs()
    sheets = {one: [*own, *items[: plan.number - len(own)]] for one, own in mine.items()}
    notes = [note]
    if again:
        notes.append(f"{counted(len(again), 'item')} in dispute had not been judged by everyone.")
    return _material(named, plan, sheets, notes)


def write_material(material: Material, folder: Path) -> list[Path]:
    """A sheet for each annotator; and, of pairs, the uses and the pairs in DURel's format."""
    word = re.sub(r"[^\w]+", "-", material.lemma)[:40].strip("-") or "word"
    paths = {one: folder / f"{word}-{_file_part(one)}.csv" for one in material.sheets}
    if len(set(paths.values())) < len(paths):
        raise ConfigError("Two annotators have one name. Call each otherwise.")
    if there := [path for path in paths.values() if path.exists()]:
        raise ConfigError(f"{there[0]} is there already, and may be filled in. Name another --out.")
    make_output(folder)
    for annotator, items in material.sheets.items():
        write_table(Sheet(material.kind, items, annotator), paths[annotator])
    if material.kind == "pairs":
        durel.write_lines(folder / f"{word}.uses.tsv", durel.use_lines(material.uses))
        # In sheets they may have an apostrophe, against formulas.
        names = {cell_text(name): name for name in map(durel.identifier, material.uses)}
        rows = ((names[key.first], names[key.second], key.lemma) for key in material.items)
        instances = durel.tab_separated(durel.INSTANCES, rows)
        durel.write_lines(folder / f"{word}.instances.tsv", instances)
    return list(paths.values())


def _file_part(annotator: str) -> str:
    return re.sub(r"[^\w.]+", "-", annotator).strip("-.") or "annotator"


class _Named:
    """Uses by what they are called in sheets."""

    def __init__(self, uses: Uses) -> None:
        if not len(uses):
            raise InputError("There is no use to judge.")
        self.all = uses
        self.lemma = cell_text(durel.lemma_of(uses))
        begins = uses.spans[:, 0].tolist()
        self.names = [
            cell_text(durel.identifier_of(sentence, begin))
            for sentence, begin in zip(uses.sentence_ids(), begins, strict=True)
        ]

    @property
    def by_name(self) -> dict[str, int]:
        """The number of each use by its identifier."""
        return {name: number for number, name in enumerate(self.names)}

    @property
    def by_place(self) -> dict[tuple[str, str], int]:
        """The same by its sentence and where it begins there."""
        return {_place(use): number for number, use in enumerate(self.all)}

    def numbers(self, judgments: Judgments) -> dict[Key, tuple[int, ...]]:
        """The uses of each judged item, of those whose uses are here."""
        own = [key for key in judgments.values if key.lemma == self.lemma]
        if judgments.kind == "lines":
            places = self.by_place
            return {key: (places[key[1:]],) for key in own if key[1:] in places}
        names = self.by_name
        return {
            key: (names[key.first], names[key.second])
            for key in own
            if key.first in names and key.second in names
        }

    def key(self, pair: Pair) -> Key:
        return Key.of_pair(self.lemma, *(self.names[number] for number in pair))

    def pair(self, pair: Pair, sample: str) -> Item:
        key = self.key(pair)
        if self.names[pair[0]] != key.first:
            pair = pair[1], pair[0]
        return Item(key, tuple(_marked(self.all[number]) for number in pair), sample)

    def line(self, number: int, sample: str, senses: Sequence[str]) -> Item:
        use = self.all[number]
        return Item(Key(self.lemma, *_place(use)), (_marked(use),), sample, tuple(senses))


def _place(use: Use) -> tuple[str, str]:
    return cell_text(use.sentence_id), str(use.starts[use.begin])


def _marked(use: Use) -> str:
    begin = use.starts[use.begin]
    return durel.marked(use.text, begin, begin + len(use.form))


def _random_pairs(
    named: _Named, number: int, seed: int, among: Integers | None = None
) -> list[Pair]:
    """Pairs of uses in two sentences, each once, in random order."""
    numbers = np.arange(len(named.all)) if among is None else among
    random = np.random.default_rng(seed)
    total = math.comb(len(numbers), 2)
    if total <= 4 * number:
        pairs = np.array([*combinations(range(len(numbers)), 2)], np.int64).reshape(-1, 2)
        pairs = pairs[random.permutation(len(pairs))]
    else:
        pairs = np.sort(random.integers(len(numbers), size=(4 * number + 100, 2)), axis=1)
    rows = named.all.sentence_rows[numbers]
    pairs = pairs[rows[pairs[:, 0]] != rows[pairs[:, 1]]]
    found = dict.fromkeys(map(tuple, numbers[pairs].tolist()))
    return list(found)[:number]


def _disputed(judgments: Judgments, keys: Sequence[Key]) -> list[Key]:
    """Those that two people judged differently: pairs two steps apart or more; the most first."""

    def apart(key: Key) -> float:
        given = judgments.values[key].values()
        if judgments.kind == "lines":
            return len(set(given)) - 1
        steps = [int(value) for value in given]
        return max(steps) - min(steps)

    least = _IN_DISPUTE if judgments.kind == "pairs" else 1
    found = [key for key in keys if apart(key) >= least]
    return sorted(found, key=lambda key: (-apart(key), key))


@dataclass(frozen=True)
class _Chooser:
    """Chooses what is judged next of a word's uses, after the judgments so far."""

    named: _Named
    encoder: UseEncoder
    judgments: Judgments
    judged: Mapping[Key, tuple[int, ...]]
    """The uses of each judged item."""
    plan: Plan
    progress: Progress

    def unsure_pairs(self) -> tuple[list[Item], str]:
        """New pairs of which a classifier of those judged is least sure; or random ones."""
        with extra_needed_for("Choosing pairs"):
            from polyseme.meanings.nearest import Centre, pair_similarities
            from polyseme.meanings.same import FOLDS, MIN_PAIRS, SameClassifier

        named, judgments, judged = self.named, self.judgments, self.judged
        names = named.by_name
        drawn = _Named(sample_uses(named.all, _DESCRIBED, seed=self.plan.seed))
        wanted = {names[name] for name in drawn.names} | {
            n for pair in judged.values() for n in pair
        }
        numbers = np.array(sorted(wanted), np.int64)
        candidates = [
            pair
            for pair in _random_pairs(named, _CANDIDATES + len(judged), self.plan.seed, numbers)
            if named.key(pair) not in judged
        ]
        is_same = {key: judgments.mean(key) > SAME for key in judged if judgments.mean(key) != SAME}
        kinds = Counter(is_same.values())
        if len(is_same) < MIN_PAIRS or min(kinds[True], kinds[False]) < FOLDS:
            items = [named.pair(pair, RANDOM) for pair in candidates[: self.plan.number]]
            return items, (
                f"New pairs are random: to choose them takes {MIN_PAIRS} judged pairs, {FOLDS} of "
                f"them the same and {FOLDS} not; there are {len(is_same)}, {kinds[True]} of them "
                "the same."
            )
        self.progress.start("Describing uses", len(numbers))
        features = self.encoder.without_syntax(
            self.encoder.encode(named.all.select(numbers), self.progress.update)
        )
        row = {use: index for index, use in enumerate(numbers.tolist())}
        centre = Centre.of(features)

        def views(pairs: Sequence[tuple[int, ...]]) -> Floats:
            sides = (np.array([row[pair[side]] for pair in pairs], np.int64) for side in (0, 1))
            one, two = (features.select(side) for side in sides)
            return pair_similarities(one, two, centre)

        gold = np.array([*is_same.values()], np.bool_)
        classifier = SameClassifier.learn(centre, views([judged[key] for key in is_same]), gold)
        unsure = np.abs(classifier.probabilities(views(candidates)) - 0.5)
        chosen: list[Pair] = []
        taken: Counter[int] = Counter()
        for index in np.argsort(unsure, kind="stable").tolist():
            pair = candidates[index]
            if len(chosen) < self.plan.number and max(taken[use] for use in pair) < _PER_USE:
                chosen.append(pair)
                taken.update(pair)
        return [named.pair(pair, CHOSEN) for pair in chosen], (
            f"New pairs are those of which the model is least sure. Calibrated on "
            f"{counted(classifier.num_pairs, 'judged pair')}, it tells {classifier.accuracy:.0%} "
            f"of them right in cross-validation (majority baseline: {classifier.majority:.0%})."
        )

    def unclear_lines(self) -> tuple[list[Item], str]:
        """New lines, as `polyseme label` chooses them after what most people say."""
        with extra_needed_for("Choosing lines"):
            from polyseme.meanings.groups.calibration import encode_uses
            from polyseme.meanings.groups.grouping import join_views
            from polyseme.meanings.groups.senses import draw_uses
            from polyseme.meanings.labels import draw_together, learn_labels

        named, judgments, judged = self.named, self.judgments, self.judged
        done = {rows[0] for rows in judged.values()}
        names = named.by_name
        drawn = _Named(draw_uses(named.all, self.plan.seed))
        numbers = sorted({names[name] for name in drawn.names} | done)
        labels = {
            numbers.index(rows[0]): label
            for key, rows in judged.items()
            if (label := judgments.label(key)) is not None
        }
        if not labels:
            raise InputError(
                "As many people say one thing as another of each line: nothing to learn."
            )
        self.progress.start("Describing uses", len(numbers))
        features = encode_uses(named.all.select(numbers), self.encoder, self.progress.update)
        learned = learn_labels(draw_together(join_views(features, seed=self.plan.seed)), labels)
        order = learned.next_to_label(self.plan.number + len(done))
        chosen = [numbers[row] for row in order if numbers[row] not in done][: self.plan.number]
        return [named.line(row, CHOSEN, self.plan.senses) for row in chosen], (
            "New lines are those whose sense is least clear after the judgments so far."
        )


def _material(
    named: _Named, plan: Plan, items: Mapping[str, Sequence[Item]], notes: Sequence[str]
) -> Material:
    """Each annotator's items in an order of their own, by the name."""
    sheets = {}
    for annotator, own in items.items():
        random = np.random.default_rng([plan.seed, zlib.crc32(annotator.encode())])
        sheets[annotator] = [own[index] for index in random.permutation(len(own)).tolist()]
    names = {name for own in items.values() for item in own for name in item.key[1:]}
    numbers = [number for number, name in enumerate(named.names) if name in names]
    uses = named.all.select(numbers)  # of lines, none: they are not written
    return Material(plan.kind, named.lemma, uses, sheets, tuple(notes))
