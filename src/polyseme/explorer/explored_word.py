"""One word as it is explored: its uses at once, its groups and its map once a thread made them.

    in   the uses that were found, and what describes them
    out  `Senses` for each degree of fineness and each layer that was asked for, places on a map

Uses are described once; that takes longest. Groups of another fineness follow from the same
features in a second or two. A few groupings are kept, the least lately asked for forgotten.

Long work in a thread of its own: how far it is, how long it will take, and how to stop it.
"""

import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np

from polyseme.errors import PolysemeError
from polyseme.explorer.language import PageError, log_details
from polyseme.explorer.view import GroupingKey
from polyseme.meanings.concordance.search import InLongerWords, in_longer_words
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.edits import Edit
from polyseme.meanings.features.use_encoder import LayerUseEncoder, ModelUseEncoder
from polyseme.meanings.features.use_features import Floats, UseFeatures
from polyseme.meanings.groups.grouping import MIN_USES, Grouping, by_size, unit_length
from polyseme.meanings.groups.senses import (
    Senses,
    draw_uses,
    find_senses,
)
from polyseme.meanings.index.use_index import IndexedUses
from polyseme.meanings.labels import (
    LearnedLabels,
    draw_together,
    first_to_label,
    grouped_by_label,
    labels_when_left_out,
    learn_labels,
)
from polyseme.meanings.use_map import lay_out
from polyseme.processes import return_freed_memory

_log = logging.getLogger(__name__)
_STAGES = {
    "Describing uses": "describe",
    "Calibrating on frequent words": "calibrate",
    "Measuring control words": "controls",
}
"""What the pages call what the library says."""
State = Literal["waiting", "running", "done", "failed", "stopped"]


class JobStoppedError(Exception):
    """The user asked for the work to be stopped."""


class WorkQueue:
    """One thread works at a time, and besides it one that has time: it began when no other waited.

    So nobody waits for what takes long and is not needed at once, and two cores have work.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._in_haste = 0  # waiting or at work
        self._is_taken = {False: False, True: False}  # by who has time, or has none

    @contextmanager
    def slot(self, *, has_time: bool = False) -> Iterator[None]:
        """Wait for one's turn, and have it as long as this lasts."""
        with self._changed:
            self._in_haste += not has_time
            self._changed.wait_for(
                lambda: not self._is_taken[has_time] and not (has_time and self._in_haste)
            )
            self._is_taken[has_time] = True
        try:
            yield
        finally:
            with self._changed:
                self._in_haste -= not has_time
                self._is_taken[has_time] = False
                self._changed.notify_all()


class Job:
    """A `Progress` that a page can look at while a thread does the work."""

    def __init__(
        self, work: Callable[["Job"], None], queue: WorkQueue, *, has_time: bool = False
    ) -> None:
        self._queue, self._has_time = queue, has_time
        self._stop = threading.Event()
        self.ended = threading.Event()
        self.state: State = "waiting"
        self.stage = ""
        self.done, self.total = 0, 0
        self.error: PolysemeError | None = None
        self._began = time.monotonic()
        # Only the thread knows the work, which knows the word, which knows this job: a circle would
        # keep a word that is forgotten in memory.
        threading.Thread(target=self._run, args=(work,), daemon=True, name="polyseme-job").start()

    @property
    def is_open(self) -> bool:
        """Whether it waits or works."""
        return self.state in ("waiting", "running")

    @property
    def seconds_left(self) -> float | None:
        """Of this stage, by how it went so far; None as long as nothing can be said."""
        elapsed = time.monotonic() - self._began
        if not self.done or elapsed < 0.5:
            return None
        return elapsed * (self.total - self.done) / self.done

    def stop(self) -> None:
        """Ask it to end; it does so between two uses."""
        self._stop.set()

    def log(self, message: str) -> None:
        """Nobody reads it."""

    def start(self, what: str, total: int) -> None:
        """A new stage."""
        self._check()
        self.stage = _STAGES.get(what, what)
        self.done, self.total, self._began = 0, total, time.monotonic()

    def update(self, done: int, note: str = "") -> None:
        """So much of the stage is done."""
        del note
        self._check()
        self.done = done

    def _check(self) -> None:
        if self._stop.is_set():
            raise JobStoppedError

    def _run(self, work: Callable[["Job"], None]) -> None:
        try:
            with self._queue.slot(has_time=self._has_time):
                self._check()
                self.state = "running"
                work(self)
            self.state = "done"
        except JobStoppedError:
            self.state = "stopped"
        except PolysemeError as error:
            log_details(error)
            self.error, self.state = error, "failed"
        except Exception as error:  # noqa: BLE001  # a thread's error would be seen by nobody
            _log.exception("A job failed")
            self.error, self.state = PageError("bug", name=type(error).__name__), "failed"
        finally:
            del work
            self.ended.set()
            return_freed_memory()


_GROUPINGS = 4  # kept; each takes some 16 MB for 5,000 uses
SEED = 1
_FIRST, _NEXT = 6, 8
"""Lines that are offered to be sorted: at the beginning, and then."""


@dataclass
class _Grouped:
    senses: Senses
    places: Floats | None = None
    drawing: Job | None = None


@dataclass(frozen=True, eq=False)
class Sorting:
    """The uses of a word as the user sorts them: some by hand, the others learned from those."""

    edited: Senses
    vectors: Floats  # what labels are learned from

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
    load_encoder: Callable[[], ModelUseEncoder]
    queue: WorkQueue  # work that takes long is done by one thread at a time
    indexed: IndexedUses | None = None
    """What an index knows of it: the model need not describe these uses."""
    lay_out: Callable[[Floats, int], Floats] = lay_out  # what finds places on a map
    sidecar_state: Hashable = ()
    """That of the files beside the corpus that the query reads, when the uses were found."""
    job: Job | None = None  # the last that looked for groups
    _found: Senses | None = None
    """The first groups, by all features: others follow from the same features."""
    _by_layer: dict[int, UseFeatures] = field(default_factory=dict)
    _grouped: OrderedDict[GroupingKey, _Grouped] = field(default_factory=OrderedDict)
    _edited: tuple[Senses, tuple[Edit, ...], Senses] | None = None
    """The last that was edited, the edits, and what came out."""
    _sorting: Sorting | None = None  # the last that was sorted as the user does
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def uses(self) -> Uses:
        """Those that are described: all, or a sample of very many; or those that an index has."""
        return draw_uses(self.indexed.uses if self.indexed else self.found, SEED)

    @cached_property
    def in_longer_words(self) -> InLongerWords | None:
        """How often it is part of longer words, if that is much more often."""
        query, corpus = self.found.query, self.found.corpus
        return in_longer_words(query, corpus) if query and corpus else None

    @property
    def can_be_grouped(self) -> bool:
        """Whether there are uses enough."""
        return len(self.uses) >= MIN_USES

    def senses(self, key: GroupingKey, *, is_begun: bool = True) -> Senses | None:
        """The groups, if they are there. If not, a thread begins to find them.

        `is_begun`: also after work that failed or was stopped.
        """
        with self._lock:
            if key in self._grouped:
                self._grouped.move_to_end(key)
                return self._grouped[key].senses
            last = self.job
            may_begin = last is None or last.state == "done" or (is_begun and not last.is_open)
            if self.can_be_grouped and may_begin:
                self.job = Job(lambda job: self._work(key, job), self.queue)
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

    def places(self, key: GroupingKey) -> Floats | None:
        """(N, 2) a place on the map for each use, if they are there. If not, see `drawing`."""
        grouped = self._grouped.get(key)
        return grouped.places if grouped else None

    def drawing(self, key: GroupingKey) -> Job | None:
        """The work on a map; begun again, if it was stopped. None as long as there are no groups.

        It lets all work on groups go first: a reader can do without the map for a while.
        """
        with self._lock:
            grouped = self._grouped.get(key)
            if grouped is None:
                return None
            if grouped.drawing is None or grouped.drawing.state == "stopped":
                self._stop_drawing()
                grouped.drawing = Job(partial(self._draw, grouped), self.queue, has_time=True)
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
        found = self._found
        features = [*self._by_layer.values(), *([found.features] if found else [])]
        uses = [self.found, *([self.indexed.uses] if self.indexed else [])]
        vectors = sum(each.senses.grouping.vectors.nbytes for each in self._grouped.values())
        names = found.name_source.num_bytes if found and found.name_source else 0
        texts = sum(each.num_bytes for each in uses) + names
        return texts + vectors + sum(each.num_bytes for each in features)

    def _work(self, key: GroupingKey, job: Job) -> None:
        job.start("load", 0)
        if self._found is None:
            encoder = self.indexed or self.load_encoder()
            found = find_senses(self.uses, encoder, finer=key.finer, seed=SEED, progress=job)
            notes = tuple(self.indexed.notes) if self.indexed else ()
            self._found = replace(found, num_found=len(self.found), source_notes=notes)
            senses = self._found if key.layer is None else self._by_one_layer(key, job)
        elif key.layer is None:
            job.start("group", 0)
            senses = self._found.regrouped(finer=key.finer, seed=SEED)
        else:
            senses = self._by_one_layer(key, job)
        with self._lock:
            self._grouped[key] = _Grouped(senses)
            while len(self._grouped) > _GROUPINGS:
                self._grouped.popitem(last=False)
        self.drawing(key)

    def _by_one_layer(self, key: GroupingKey, job: Job) -> Senses:
        assert self._found is not None
        assert key.layer is not None
        if key.layer == 0:
            return self._found.in_groups(_by_form(self.uses))
        if key.layer not in self._by_layer:
            job.start("describe", len(self.uses))
            encoder = LayerUseEncoder(self.load_encoder().embedder, key.layer)
            self._by_layer[key.layer] = encoder.encode(self.uses, job.update)
        job.start("group", 0)
        features = self._by_layer[key.layer]
        return self._found.regrouped(finer=key.finer, seed=SEED, features=features)


def _by_form(uses: Uses) -> Grouping:
    """Layer 0 has seen no context: uses of one form have one vector, and are a group.

    Each form stands alone, as far from one as from another.
    """
    sentences, spans = uses.sentences(), uses.spans.tolist()
    forms = [
        " ".join(words[begin:end]) for words, (begin, end) in zip(sentences, spans, strict=True)
    ]
    number = {form: index for index, (form, _) in enumerate(Counter(forms).most_common())}
    labels, _ = by_size(np.array([number[form] for form in forms], np.int64))
    # A little apart, or all points of a form would lie on one spot of the map.
    apart = np.random.default_rng(SEED).normal(0, 0.05, (len(forms), max(2, len(number))))
    apart[np.arange(len(forms)), labels] += 1
    return Grouping(labels, (1.0,) * len(number), unit_length(apart.astype(np.float32)))
