"""One word as it is explored: its uses at once, its groups and its map once a thread made them.

    in   the uses that were found, and what describes them
    out  `Senses` for each degree of fineness and each layer that was asked for, places on a map

Uses are described once; that takes longest. Groups of another fineness follow from the same
features in a second or two. A few groupings are kept, the least lately asked for forgotten.
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from polyseme.explorer.jobs import Gate, Job, Stage
from polyseme.meanings.annotation.edited_groups import grouped_by_label, use_ids
from polyseme.meanings.annotation.edits import Edit, UseId
from polyseme.meanings.annotation.labels import (
    LearnedLabels,
    draw_together,
    first_to_label,
    labels_when_left_out,
    learn_labels,
)
from polyseme.meanings.concordance.query import InLongerWords, in_longer_words
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.features.layer_describer import LayerDescriber
from polyseme.meanings.features.use_describer import UseDescriber
from polyseme.meanings.features.use_features import Describer, Floats, UseFeatures
from polyseme.meanings.groups.calibration import Calibration, calibration_of, describe_uses
from polyseme.meanings.groups.grouping import MIN_USES, Grouping, by_size, group_uses, unit_length
from polyseme.meanings.groups.layout import lay_out
from polyseme.meanings.groups.named_groups import Senses, draw_uses, name_groups, name_source
from polyseme.meanings.groups.names import NameSource
from polyseme.meanings.index.use_index import IndexedUses

_GROUPINGS = 4  # kept; each takes some 16 MB for 5,000 uses
SEED = 1
_FIRST, _NEXT = 6, 8
"""Lines that are offered to be sorted: at the beginning, and then."""


class Fineness(NamedTuple):
    """How uses are grouped."""

    finer: int
    layer: int | None
    """None: by what the model expects in the word's place, which tells meanings best."""


@dataclass
class _Grouped:
    senses: Senses
    places: Floats | None = None
    drawing: Job | None = None


@dataclass(frozen=True, eq=False)
class Sorting:
    """The uses of a word as the user sorts them: some by hand, the others learned from those."""

    edited: Senses
    vectors: Floats
    """What labels are learned from."""

    @property
    def labels(self) -> list[str]:
        """The user's, in the order in which they were given first."""
        return list(dict.fromkeys(self.edited.labels_by_hand.values()))

    @cached_property
    def learned(self) -> LearnedLabels | None:
        """None as long as there are not two labels to choose from."""
        by_hand = self.edited.labels_by_hand
        return learn_labels(self.vectors, by_hand) if len(self.labels) > 1 else None

    @cached_property
    def senses(self) -> Senses | None:
        """A group for each label."""
        return grouped_by_label(self.edited, self.learned) if self.learned else None

    @cached_property
    def num_found_again(self) -> int:
        """How many labels by hand would have been learned, had those uses none."""
        by_hand = self.edited.labels_by_hand
        again = labels_when_left_out(self.vectors, by_hand)
        return sum(again[number] == label for number, label in by_hand.items())

    @cached_property
    def next_lines(self) -> list[int]:
        """Which uses to sort next: those that show what there is; then those in doubt."""
        if self.learned is not None:
            return self.learned.next_to_label(_NEXT)
        first = first_to_label(self.vectors, _FIRST, seed=SEED)
        return [number for number in first if number not in self.edited.labels_by_hand]


@dataclass(eq=False)
class ExploredWord:
    """Uses of a word, and what is known of them so far."""

    found: Uses
    load_describer: Callable[[], UseDescriber]
    gate: Gate
    """Work that takes long is done by one thread at a time."""
    indexed: IndexedUses | None = None
    """What an index knows of it: the model need not describe these uses."""
    lay_out: Callable[[Floats, int], Floats] = lay_out
    """What finds places on a map."""
    job: Job | None = None
    """The last that looked for groups."""
    _features: UseFeatures | None = None
    _calibration: Calibration | None = None
    _name_source: NameSource | None = None
    """What names groups; the same for groups of any fineness."""
    _by_layer: dict[int, UseFeatures] = field(default_factory=dict)
    _grouped: OrderedDict[Fineness, _Grouped] = field(default_factory=OrderedDict)
    _edited: tuple[Senses, tuple[Edit, ...], Senses] | None = None
    """The last that was edited, the edits, and what came out."""
    _sorting: Sorting | None = None
    """The last that was sorted as the user does."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def uses(self) -> Uses:
        """Those that are described: all, or a sample of very many; or those that an index has."""
        return draw_uses(self.indexed.uses if self.indexed else self.found, SEED)

    @cached_property
    def ids(self) -> list[UseId]:
        """What stays the same of each use."""
        return use_ids(self.uses)

    @cached_property
    def in_longer_words(self) -> InLongerWords | None:
        """How often it is part of longer words, if that is much more often."""
        query, corpus = self.found.query, self.found.corpus
        return in_longer_words(query, corpus) if query and corpus else None

    @property
    def can_be_grouped(self) -> bool:
        """Whether there are uses enough."""
        return len(self.uses) >= MIN_USES

    def senses(self, how: Fineness, *, is_begun: bool = True) -> Senses | None:
        """The groups, if they are there. If not, a thread begins to find them.

        `is_begun`: also after work that failed or was stopped.
        """
        with self._lock:
            if how in self._grouped:
                self._grouped.move_to_end(how)
                return self._grouped[how].senses
            if self.can_be_grouped and _may_begin(self.job, is_begun=is_begun):
                self.job = Job(lambda job: self._work(how, job), self.gate)
        return None

    def edited(self, senses: Senses, edits: tuple[Edit, ...]) -> Senses:
        """Groups as a user left them."""
        last = self._edited
        if last is None or last[0] is not senses or last[1] != edits:
            last = self._edited = (senses, edits, senses.edited(edits))
        return last[2]

    def sorting(self, edited: Senses) -> Sorting:
        """The uses as the user sorts them."""
        last = self._sorting
        if last is None or last.edited is not edited:
            same = last and last.edited.grouping.vectors is edited.grouping.vectors
            vectors = last.vectors if last and same else draw_together(edited.grouping.vectors)
            last = self._sorting = Sorting(edited, vectors)
        return last

    def places(self, how: Fineness) -> Floats | None:
        """(N, 2) a place on the map for each use, if they are there. If not, see `drawing`."""
        grouped = self._grouped.get(how)
        return grouped.places if grouped else None

    def drawing(self, how: Fineness) -> Job | None:
        """The work on a map; begun again, if it was stopped. None as long as there are no groups.

        It lets all work on groups go first: a reader can do without the map for a while.
        """
        with self._lock:
            grouped = self._grouped.get(how)
            if grouped is None:
                return None
            if grouped.drawing is None or grouped.drawing.state == "stopped":
                self._stop_drawing()
                grouped.drawing = Job(partial(self._draw, grouped), self.gate, has_time=True)
            return grouped.drawing

    def _draw(self, grouped: _Grouped, job: Job) -> None:
        job.start("map", 0)
        grouped.places = self.lay_out(grouped.senses.grouping.vectors, SEED)

    def stop(self) -> None:
        """End what is being done."""
        if self.job:
            self.job.stop()
        with self._lock:
            self._stop_drawing()

    def _stop_drawing(self) -> None:
        """Maps that nobody looks at any more need not be drawn."""
        for grouped in self._grouped.values():
            if grouped.drawing and grouped.drawing.is_open:
                grouped.drawing.stop()

    @property
    def num_bytes(self) -> int:
        """Memory of its arrays, its texts and the words that name its groups: most of it."""
        features = [self._features, *self._by_layer.values()]
        vectors = [each.senses.grouping.vectors.nbytes for each in self._grouped.values()]
        uses = [self.found, *([self.indexed.uses] if self.indexed else [])]
        return (
            sum(each.num_bytes for each in uses)
            + sum(each.num_bytes for each in features if each)
            + sum(vectors)
            + (self._name_source.num_bytes if self._name_source else 0)
        )

    def _work(self, how: Fineness, job: Job) -> None:
        job.start("load", 0)
        describer = self.indexed or self.load_describer()
        features = self._describe(describer, job)
        if self._name_source is None:
            self._name_source = name_source(self.uses, features, describer, self._calibration)
        source = self._name_source
        grouping = self._group(features, how, job, source)
        groups = name_groups(source, grouping)
        notes = tuple(self.indexed.notes) if self.indexed else ()
        senses = Senses(
            self.uses,
            grouping,
            features,
            groups,
            len(self.found),
            self._calibration,
            source,
            source_notes=notes,
        )
        with self._lock:
            self._grouped[how] = _Grouped(senses)
            while len(self._grouped) > _GROUPINGS:
                self._grouped.popitem(last=False)
        self.drawing(how)

    def _describe(self, describer: Describer, job: Job) -> UseFeatures:
        if self._features is None:
            job.start("describe", len(self.uses))
            self._features = describe_uses(self.uses, describer, job.update)
            if self.uses.corpus is not None:
                self._calibration = calibration_of(
                    self.uses.corpus, describer, Stage(job, "calibrate")
                )
        return self._features

    def _group(
        self, features: UseFeatures, how: Fineness, job: Job, source: NameSource
    ) -> Grouping:
        if how.layer is None:
            job.start("group", 0)
            limits = self._calibration.limits if self._calibration else None
            return group_uses(
                features, finer=how.finer, seed=SEED, limits=limits, copy_of=source.copy_of
            )
        if how.layer == 0:
            job.start("group", 0)
            return _by_form(self.uses)
        if how.layer not in self._by_layer:
            job.start("describe", len(self.uses))
            describe = LayerDescriber(self.load_describer().embedder, how.layer)
            self._by_layer[how.layer] = describe(self.uses.sentences(), self.uses.spans, job.update)
        job.start("group", 0)
        return group_uses(self._by_layer[how.layer], finer=how.finer, seed=SEED)


def _may_begin(job: Job | None, *, is_begun: bool) -> bool:
    return job is None or job.state == "done" or (is_begun and not job.is_open)


def _by_form(uses: Uses) -> Grouping:
    """Layer 0 has seen no context: uses of one form have one vector, and are a group.

    Each form stands alone, as far from one as from another.
    """
    sentences, spans = uses.sentences(), uses.spans.tolist()
    forms = [
        " ".join(words[begin:end]) for words, (begin, end) in zip(sentences, spans, strict=True)
    ]
    number = {form: place for place, (form, _) in enumerate(Counter(forms).most_common())}
    labels, _ = by_size(np.array([number[form] for form in forms], np.int64))
    # A little apart, or all points of a form would lie on one spot of the map.
    apart = np.random.default_rng(SEED).normal(0, 0.05, (len(forms), max(2, len(number))))
    apart[np.arange(len(forms)), labels] += 1
    return Grouping(labels, (1.0,) * len(number), unit_length(apart.astype(np.float32)))
