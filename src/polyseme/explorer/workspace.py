"""What the pages work on: a corpus, a model, a few words in memory, the user's notes.

Memory is bounded: the words least lately looked at are forgotten, and their work is stopped. Who
asks for one again waits for it again; what was judged of it is on disk.
"""

import contextlib
import hashlib
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from polyseme.embedding.loading import load_for_corpus
from polyseme.embedding.word_embedder import WordEmbedder
from polyseme.errors import ConfigError, InputError
from polyseme.explorer.explored_word import ExploredWord, Job, WorkQueue
from polyseme.explorer.language import PageError, told_as
from polyseme.explorer.view import View
from polyseme.limits import read_json
from polyseme.meanings.change.sides import Controls, FrequencyBand, Sides, band_of, controls_of
from polyseme.meanings.concordance.background import Background
from polyseme.meanings.concordance.conditions import (
    EVERYTHING,
    SUBCORPUS,
    Condition,
    ConditionError,
    path_of,
)
from polyseme.meanings.concordance.cql import asks_for_senses
from polyseme.meanings.concordance.kept_senses import folder_of as senses_folder
from polyseme.meanings.concordance.lines import Sizes, count_words_by
from polyseme.meanings.concordance.search import CorpusColumns, Query
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import NoUseError, Uses, find_uses
from polyseme.meanings.edits import NAME as EDITS
from polyseme.meanings.edits import Edit, EditLog, append_next, read_edits
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.groups.senses import Senses
from polyseme.meanings.index.use_index import IndexedUses, UseIndex
from polyseme.meanings.use_map import Floats, lay_out
from polyseme.meanings.wordlists.word_list import WordList
from polyseme.storage.files import disk_faults_explained, make_output, write_text
from polyseme.text.corpus import Corpus

_WORDS = 3
_BYTES = 32 << 20  # of words that are kept; the one looked at is kept whatever it takes
_HISTORY = 30
_SUGGESTED = 8  # words
_SUGGESTED_USES = 300, 100, 30  # of small corpora, fewer
_SIDES = 8  # pairs of sides whose control words are kept
_SIZES = 4  # conditions whose sizes are kept
_LISTS = 16  # lists of words that are kept
_ENDING = 10  # seconds that work has to end
ABOUT = "about.json"


class Search(NamedTuple):
    """What was looked for, and how much was found."""

    view: View
    num_uses: int


@dataclass(eq=False)
class MeasuredControls:
    """Control words of two sides, once a thread has measured them."""

    job: Job | None = None  # None, if a word is too rare to have any
    found: Controls | None = None


@dataclass(eq=False)
class Workspace:
    """A corpus and a model, opened."""

    corpus: Corpus
    model: str
    notes: Path  # folder for what the user judges: a folder in it for each word
    opening: View = field(default_factory=View)  # what the first page offers
    examples: tuple[View, ...] = ()  # what the page of that word says one could try next
    index: UseIndex | None = None
    """Knows uses of some words, which the model then need not describe."""
    embedder: WordEmbedder | None = None  # the model, if it is loaded already
    title: str = ""  # what the corpus is called; by default as its folder
    lay_out: Callable[[Floats, int], Floats] = lay_out  # what finds places on maps
    is_closed: bool = False  # whether nobody will ask for anything any more
    _words: OrderedDict[Query, ExploredWord] = field(default_factory=OrderedDict)
    _history: OrderedDict[View, int] = field(default_factory=OrderedDict)
    _controls: OrderedDict[tuple[Sides, FrequencyBand | None], MeasuredControls] = field(
        default_factory=OrderedDict
    )
    _queue: WorkQueue = field(default_factory=WorkQueue)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _loading: threading.Lock = field(default_factory=threading.Lock)
    _counting: threading.Lock = field(default_factory=threading.Lock)
    _listing: threading.Lock = field(default_factory=threading.Lock)
    _lists: OrderedDict[Hashable, WordList] = field(default_factory=OrderedDict)
    _encoder: ModelUseEncoder | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """`document`, and the user's metadata."""
        return (DOCUMENT, *self.corpus.config.meta)

    @cached_property
    def values(self) -> CorpusColumns:
        """The values of each column."""
        return CorpusColumns(self.corpus)

    @cached_property
    def suggestions(self) -> tuple[View, ...]:
        """Words to begin with, for who has none in mind: frequent enough to be grouped well."""
        background = Background.of(self.corpus)
        for least in _SUGGESTED_USES:
            if words := background.content_words(least, _SUGGESTED):
                return tuple(View(q=word) for word in words)
        return ()

    @cached_property
    def name(self) -> str:
        """What the corpus is called."""
        return self.title or self.corpus.folder.resolve().name

    @property
    def model_name(self) -> str:
        """What the model is called."""
        return Path(self.model).name

    def encoder(self) -> ModelUseEncoder:
        """The model; loaded when it is asked for first, which takes seconds."""
        with self._loading:
            if self._encoder is None:
                with told_as("model_error"):
                    embedder = self.embedder or load_for_corpus(self.model, self.corpus)
                    self.corpus.check_same_words(embedder.preparation)
                    self._encoder = ModelUseEncoder(embedder, self.corpus)
            return self._encoder

    def sizes(self, where: Condition = EVERYTHING) -> dict[str, Sizes]:
        """How many words there are with each value of each column, in sentences that meet this.

        Reads the corpus, unless the condition is one of the last.
        """
        with self._counting:
            return self._sizes(where)

    @cached_property
    def _sizes(self) -> Callable[[Condition], dict[str, Sizes]]:
        count = partial(count_words_by, self.corpus, list(self.columns))
        return lru_cache(_SIZES)(count)

    def word_list(self, key: Hashable, make: Callable[[], WordList]) -> WordList:
        """A list of words; counted, unless it is one of the last."""
        with self._listing:  # two at once would both be slow
            if key not in self._lists:
                self._lists[key] = make()
            self._lists.move_to_end(key)
            while len(self._lists) > _LISTS:
                self._lists.popitem(last=False)
            return self._lists[key]

    def word(self, view: View) -> ExploredWord:
        """The uses of what a view looks for."""
        query = view.query
        sidecar_state = self._sidecar_state(query)
        with self._lock:
            if query in self._words and self._words[query].sidecar_state != sidecar_state:
                self._words.pop(query).stop()
            if query in self._words:
                self._words.move_to_end(query)
                return self._words[query]
        uses = self._find(view)
        found = ExploredWord(
            uses, self.encoder, self._queue, self._indexed(query), self.lay_out, sidecar_state
        )
        with self._lock:
            kept = self._words.setdefault(query, found)
            self._words.move_to_end(query)
            while len(self._words) > 1 and (len(self._words) > _WORDS or self.num_bytes > _BYTES):
                self._words.popitem(last=False)[1].stop()
            return kept

    def _sidecar_state(self, query: Query) -> Hashable:
        """The state of the files beside the corpus that a query reads, kept senses and subcorpora:
        they may change while the corpus stays as it is."""
        paths: list[Path] = []
        if query.is_cql and asks_for_senses(query.forms[0]):
            paths += sorted(senses_folder(self.corpus).glob("*.json"))
        if SUBCORPUS in query.where:
            paths.append(path_of(self.corpus))
        found = []
        for path in paths:
            with contextlib.suppress(OSError):
                state = path.stat()
                found.append((path.name, state.st_mtime_ns, state.st_size, state.st_ino))
        return tuple(found)

    def _find(self, view: View) -> Uses:
        try:
            return find_uses(self.corpus, view.query)
        except NoUseError as error:
            is_pattern = view.regex or view.query.is_cql
            raise PageError("no_match" if is_pattern else "no_use", word=view.q) from error
        except ConditionError:
            raise
        except ConfigError as error:
            raise PageError("bad_pattern", pattern=view.q) from error
        except InputError as error:
            raise PageError("too_many_uses", word=view.q) from error

    def _indexed(self, query: Query) -> IndexedUses | None:
        """What the index knows of a word; None if it has not all that is looked for."""
        if self.index is None:
            return None
        try:
            return self.index.find(self.corpus, query)
        except InputError:
            return None

    def controls(
        self, word: ExploredWord, sides: Sides, counts: tuple[int, int]
    ) -> MeasuredControls:
        """Words to compare with, which occur as often on either side: measured, or begun to be."""
        key = sides, band_of(counts)
        with self._lock:
            kept = self._controls.get(key)
            if kept is None or (kept.job and kept.job.state in ("failed", "stopped")):
                kept = self._controls[key] = MeasuredControls()
                if band_of(counts) is not None:
                    work = partial(self._measure, kept, word.indexed, sides, counts)
                    kept.job = Job(work, self._queue)
            self._controls.move_to_end(key)
            while len(self._controls) > _SIDES:
                old = self._controls.popitem(last=False)[1]
                if old.job:
                    old.job.stop()
            return kept

    def _measure(
        self,
        kept: MeasuredControls,
        indexed: IndexedUses | None,
        sides: Sides,
        counts: tuple[int, int],
        job: Job,
    ) -> None:
        measure = partial(controls_of, self.corpus, sides=sides, counts=counts)
        kept.found = measure(encoder=indexed, progress=job) if indexed else None
        if kept.found is None:  # also if the index has too few of these words
            kept.found = measure(encoder=self.encoder(), progress=job)

    @property
    def num_bytes(self) -> int:
        """Memory of all words that are kept."""
        return sum(word.num_bytes for word in self._words.values())

    def begin(self, view: View) -> None:
        """Find a word and begin to group it, before a page asks for it."""
        self.word(view).senses(view.grouping)

    def close(self) -> None:
        """Stop all work, and wait until the model is left in peace."""
        self.is_closed = True
        with self._lock:
            words = list(self._words.values())
            jobs = [each.job for each in words] + [each.job for each in self._controls.values()]
        for word in words:
            word.stop()
        for job in filter(None, jobs):
            job.stop()
        for job in filter(None, jobs):  # a thread stopped in its work would end the process
            job.ended.wait(_ENDING)

    def remember(self, view: View, num_uses: int) -> None:
        """Put a search into the history."""
        search = View(q=view.q, regex=view.regex, case=view.case)
        with self._lock:
            self._history.pop(search, None)
            self._history[search] = num_uses
            while len(self._history) > _HISTORY:
                self._history.popitem(last=False)

    @property
    def history(self) -> list[Search]:
        """What was looked for, the last first."""
        with self._lock:
            return [Search(*entry) for entry in reversed(self._history.items())]

    def edited(self, view: View, word: ExploredWord, senses: Senses) -> Senses:
        """Groups as the user left them."""
        return word.edited(senses, self.edits(view).edits)

    def edits(self, view: View) -> EditLog:
        """What the user did to these groups."""
        with told_as("notes_error"):
            return read_edits(self.folder(view) / EDITS)

    def add_edit(self, view: View, make_edit: Callable[[tuple[Edit, ...]], Edit]) -> None:
        """Write down what the user did, once and for all. `make_edit` is given what was before."""
        folder = self.folder(view)
        with told_as("notes_error"):
            with disk_faults_explained(folder):
                make_output(folder)
                if not (folder / ABOUT).exists():
                    about = json.dumps(self._about(view), ensure_ascii=False, indent=2)
                    write_text(folder / ABOUT, about + "\n")
            append_next(folder / EDITS, make_edit)

    def folder(self, view: View) -> Path:
        """Where the notes on a word are: a name to read, and one that no other has.

        They are the same in any order and case of its forms, and however its uses are grouped.
        """
        about = self._about(view)
        unique = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:10]
        readable = re.sub(r"[^\w]+", "-", ",".join(about["forms"]))[:40].strip("-") or "word"
        folder = self.notes / f"{readable}-{unique}"
        if folder.exists():
            return folder
        return self._older_folder(view, self.notes.glob(f"{readable}-*/{ABOUT}")) or folder

    def _older_folder(self, view: View, found: Iterable[Path]) -> Path | None:
        """Version 0.1 had a folder for each fineness, layer and model: this one's, or any."""
        about = self._about(view)
        how = {**view.grouping._asdict(), "model": self.model_name}
        same = []
        for path in sorted(found):
            with contextlib.suppress(OSError, ValueError):
                noted = read_json(path)
                if isinstance(noted, dict) and about.items() <= noted.items():
                    same.append((not how.items() <= noted.items(), path.parent))
        return min(same)[1] if same else None

    def _about(self, view: View) -> dict[str, Any]:
        """What notes are of: what is looked for is the same in any case and order."""
        query = view.query
        forms = list(query.forms)
        if not (query.is_case_sensitive or query.is_regex or query.is_cql):
            forms = sorted({form.casefold() for form in forms})
        about = {**asdict(query), "forms": forms}
        if not query.is_cql:  # as it was before there were queries: their notes are found again
            del about["is_cql"], about["where"]
        return about
