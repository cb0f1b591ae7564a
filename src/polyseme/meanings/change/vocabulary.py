"""Which words of a whole vocabulary changed between two sides of a corpus?

    in   a corpus, two sides, and what describes uses
    out  `VocabularyChange`: the words as one table, the most changed first, with p-values adjusted
         for the number of words, and the controls that a reviewer asks for

Each word is measured on a sample of its uses, by itself: so a run can stop after any word and go
on, from a `WordLog`. Two controls: words of the same frequency, since sides that differ in topic
move all words; and whole documents dealt to the sides at random, where no word has changed, so that
what is still found shows how often such a finding is false.

APD varies with how varied a word's uses are, change or not. So words are ranked by its *excess*:
APD less what it is on average when documents are shuffled.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from polyseme.display import html_table, summary
from polyseme.errors import InputError
from polyseme.limits import FILE_BYTES, parse_json, read_bytes
from polyseme.meanings.change.measure import (
    MIN_DOCUMENTS,
    SIGNIFICANT,
    Side,
    Unit,
    benjamini_hochberg,
    measure_change,
)
from polyseme.meanings.change.sides import (
    MIN_SIDE,
    SideWords,
    band_of,
    count_sides,
    mean_own_side_share,
    substitute_vectors,
)
from polyseme.meanings.concordance.conditions import EVERYTHING, Condition
from polyseme.meanings.concordance.export import Cell, Tabular
from polyseme.meanings.concordance.search import search
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import Uses, numbers_by_word
from polyseme.progress import SILENT, Progress
from polyseme.storage.files import canonical_json, write_text
from polyseme.text.corpus import Corpus

if TYPE_CHECKING:
    from polyseme.meanings.features.use_encoder import ModelUseEncoder

NUM_SHUFFLES = 5
"""How often documents are dealt to the sides at random, for the control."""
_PERMUTATIONS_OF_CONTROL = 199
_MAX_SHARE = 1e-3
"""Words that make up more of the text are not asked about: they are grammar, not meaning."""
_FOUND_AT_ONCE = 100_000  # uses that are looked for in one reading of the corpus: some 50 MB

TOO_FEW = "fewer than {} documents on a side"
_COLUMNS = (
    *("rank", "word", "uses_before", "uses_after", "excess", "apd", "apd_by_chance", "prt"),
    *("p", "q", "controls_below", "controls", "documents_before", "documents_after", "shuffled"),
)


@dataclass(frozen=True)
class VocabularyQuestion:
    """What is asked of every word."""

    before: Condition
    after: Condition
    where: Condition = EVERYTHING
    min_uses: int = 50  # uses that a word needs on each side
    max_uses: int = 200  # uses of each side that are described: a sample, where there are more
    permutations: int = 9_999
    unit: Unit = "documents"
    """What is shuffled. Words in fewer than five documents of a side are then left out."""
    seed: int = 1

    def to_json(self) -> dict[str, object]:
        """Plain values, by which an unfinished run is known again."""
        sides = {name: str(getattr(self, name)) for name in ("before", "after", "where")}
        return asdict(self) | sides


def compare_vocabulary(
    corpus: Corpus,
    encoder: "ModelUseEncoder",
    question: VocabularyQuestion,
    *,
    words: Sequence[str] | None = None,
    known: "Mapping[str, ChangedWord | None] | None" = None,
    on_word: "Callable[[str, ChangedWord | None], None]" = lambda *_: None,
    progress: Progress = SILENT,
) -> "VocabularyChange":
    """Measure every word that has enough uses on both sides, or of `words` those that do.

    `known`: what an earlier run found; `on_word` is told of each word as soon as it is measured.
    None stands for a word that is in too few documents.
    """
    known = known or {}
    sides = count_sides(corpus, (question.before, question.after), question.where)
    chosen = _chosen_words(sides, question, words)
    work = _Work(corpus, encoder, question, sides)
    found = {word: known[word] for word in chosen if word in known}
    progress.start("Comparing words", len(chosen))
    progress.update(len(found))
    for word, change in work.measure([word for word in chosen if word not in found]):
        found[word] = change
        on_word(word, change)
        progress.update(len(found), word)
    asked = {word.casefold() for word in words or ()}
    passed_over = Counter({"fewer uses on a side": len(asked - set(chosen))})
    few = TOO_FEW.format(MIN_DOCUMENTS)
    passed_over[few] = sum(change is None for change in found.values())
    return VocabularyChange.of([c for c in found.values() if c], dict(+passed_over))


@dataclass(frozen=True, slots=True)
class ChangedWord:
    """One word on two sides."""

    word: str
    before: int
    after: int
    """Uses in the corpus; up to so many were compared."""
    documents_before: int
    documents_after: int
    apd: float
    apd_by_chance: float
    prt: float
    p_value: float
    unit: Unit
    own_side: float
    """How far it moved, as `controls.py` has it."""
    by_chance: tuple[float, ...]
    """P-values after documents were dealt to the sides at random, each time for all words alike."""

    @property
    def excess(self) -> float:
        """APD less what it is on average after shuffling."""
        return self.apd - self.apd_by_chance


@dataclass(frozen=True, slots=True)
class RankedWord:
    """A word beside the others."""

    change: ChangedWord
    q_value: float
    """P-value adjusted for the number of words (Benjamini and Hochberg 1995)."""
    controls_below: int
    controls: int
    """Of so many of the other words that are about as frequent, how many moved less far."""


@dataclass(frozen=True, eq=False)
class VocabularyChange(Tabular):
    """Words, the most changed first."""

    words: tuple[RankedWord, ...]
    passed_over: Mapping[str, int]
    """How many words were not compared, by the reason."""

    @classmethod
    def of(cls, found: Sequence[ChangedWord], passed_over: Mapping[str, int]) -> "VocabularyChange":
        """Ranked, adjusted, and each beside its controls."""
        adjusted = benjamini_hochberg([word.p_value for word in found])
        bands = [band_of((word.before, word.after)) for word in found]
        ranked = []
        for number, (word, q) in enumerate(zip(found, adjusted, strict=True)):
            others = [
                other.own_side
                for index, other in enumerate(found)
                if bands[index] == bands[number] and index != number
            ]
            below = sum(share < word.own_side for share in others)
            ranked.append(RankedWord(word, q, below, len(others)))
        ranked.sort(key=lambda each: (-each.change.excess, each.change.word))
        return cls(tuple(ranked), dict(passed_over))

    @property
    def significant(self) -> list[RankedWord]:
        """Words that differ by more than chance: about one in twenty of them by chance."""
        return [word for word in self.words if word.q_value < SIGNIFICANT]

    @property
    def false_positives(self) -> float | None:
        """The share of words with p < 0.05 when documents are dealt at random; 0.05 is expected.

        None, if there are too few documents for it.
        """
        values = [p for word in self.words for p in word.change.by_chance]
        return float(np.mean(np.array(values) < SIGNIFICANT)) if values else None

    @property
    def notes(self) -> list[str]:
        """What to know before believing the table."""
        notes = [
            f"Words not compared, {why}: {count:,}." for why, count in self.passed_over.items()
        ]
        if self.false_positives is not None:
            notes.append(
                "Control: with documents assigned to the sides at random, "
                f"{self.false_positives:.1%} of the words have p < 0.05 (5% are expected)."
            )
        notes.append("Sides may differ in topic and genre as well: read the lines behind a word.")
        return notes

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        first = ", ".join(each.change.word for each in self.words[:5])
        found = f"{len(self.significant):,} of {len(self):,} words differ (q < {SIGNIFICANT})"
        return summary("VocabularyChange", found, f"most changed: {first}" if first else "")

    def _repr_html_(self) -> str:
        rows = [row[:12] for row in self.rows()][:20]
        return html_table(repr(self), [[*map(_plain, row)] for row in rows], _COLUMNS[:12])

    @property
    def columns(self) -> list[str]:
        """Names of the columns of a table of all words."""
        return [*_COLUMNS]

    def rows(self) -> Iterator[list[Cell]]:
        """One row per word, the most changed first."""
        for rank, each in enumerate(self.words, start=1):
            word = each.change
            measured = (word.excess, word.apd, word.apd_by_chance, word.prt, word.p_value)
            yield [
                *(rank, word.word, word.before, word.after),
                *(round(value, 6) for value in (*measured, each.q_value)),
                *(each.controls_below, each.controls),
                *(word.documents_before, word.documents_after, word.unit),
            ]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "words": [
                {**asdict(each.change), "excess": each.change.excess, "q_value": each.q_value,
                 "controls_below": each.controls_below, "controls": each.controls}
                for each in self.words
            ],
            "passed_over": dict(self.passed_over),
            "false_positives": self.false_positives,
            "notes": self.notes,
        }  # fmt: skip


class WordLog:
    """Words that were compared, and those that had too few documents."""

    def __init__(self, path: Path, asked: Mapping[str, Any]) -> None:
        self.path, self._asked = path, parse_json(canonical_json(dict(asked)))
        self.found: dict[str, ChangedWord | None] = {}
        if path.exists():
            self._read()
        else:
            write_text(path, json.dumps({"asked": self._asked}, ensure_ascii=False) + "\n")

    def add(self, word: str, change: ChangedWord | None) -> None:
        """Keep a word's result; returns once it is on the disk."""
        found = None if change is None else asdict(change)
        line = json.dumps({"word": word, "found": found}, ensure_ascii=False) + "\n"
        with self.path.open("ab") as file:
            file.write(line.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        self.found[word] = change

    def remove(self) -> None:
        """All is done and written elsewhere."""
        self.path.unlink(missing_ok=True)

    def _read(self) -> None:
        try:
            content = read_bytes(self.path, FILE_BYTES)
            whole = content[: content.rfind(b"\n") + 1]
            header, *lines = whole.decode("utf-8").splitlines()
            asked = parse_json(header)["asked"]
            for line in lines:
                entry = parse_json(line)
                self.found[str(entry["word"])] = _CHANGE.validate_python(entry["found"])
        except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
            raise InputError(
                f"{self.path}, an unfinished run, is damaged. Remove it to start again."
            ) from error
        if asked != self._asked:
            differ = sorted(k for k in {*asked, *self._asked} if asked.get(k) != self._asked.get(k))
            raise InputError(
                f"{self.path} is an unfinished run with other settings ({', '.join(differ)} "
                "differs). Resume that run, remove the file, or choose another --out."
            )
        if len(whole) < len(content):  # a line that was cut short when a process was killed
            os.truncate(self.path, len(whole))


_CHANGE: TypeAdapter[ChangedWord | None] = TypeAdapter(ChangedWord | None)


def _chosen_words(
    sides: SideWords, question: VocabularyQuestion, words: Sequence[str] | None
) -> list[str]:
    overlap = sides.documents[0] & sides.documents[1]
    if overlap and question.unit == "documents":
        raise InputError(
            f"{len(overlap):,} documents are on both sides, as {sorted(overlap)[0]!r}. Choose "
            "sides that exclude each other, or shuffle uses."
        )
    if question.unit == "documents" and min(map(len, sides.documents)) < MIN_DOCUMENTS:
        numbers = " and ".join(f"{len(side):,}" for side in sides.documents)
        raise InputError(
            f"The sides have {numbers} documents; to shuffle documents, each needs "
            f"{MIN_DOCUMENTS}. Choose wider sides, or shuffle uses (--shuffle uses), where a "
            "difference between two authors may look like change."
        )
    max_share = _MAX_SHARE if words is None else 1.0
    candidates = sides.candidates(question.min_uses, max_share)
    if words is not None:
        asked = {word.casefold() for word in words}
        candidates = [word for word in candidates if word in asked]
    if not candidates:
        raise InputError(
            f"No word has {question.min_uses} uses on each side. Choose wider sides, or ask for "
            "fewer uses (--min-uses); below 50 per side, only large changes are found."
        )
    return candidates


@dataclass(frozen=True)
class _Work:
    """Words in, their changes out, one after the other."""

    corpus: Corpus
    encoder: "ModelUseEncoder"
    question: VocabularyQuestion
    sides: SideWords

    def measure(self, words: Sequence[str]) -> Iterator[tuple[str, ChangedWord | None]]:
        """Each word with its change; None for one in too few documents."""
        for batch in self._batches(words):
            spellings = frozenset().union(*(self.sides.spellings[word] for word in batch))
            table, rows, spans = search(self.corpus, [(spellings,)], self.question.where)
            uses = Uses(table, rows, spans)
            numbers = numbers_by_word(uses)
            for word in batch:
                yield word, self._change(word, uses.select(numbers[word]))

    def _batches(self, words: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        size = 0
        for word in words:
            count = sum(counts[word] for counts in self.sides.counts)
            if batch and size + count > _FOUND_AT_ONCE:
                yield batch
                batch, size = [], 0
            batch.append(word)
            size += count
        if batch:
            yield batch

    def _change(self, word: str, uses: Uses) -> ChangedWord | None:
        asked = self.question
        random = np.random.default_rng([asked.seed, *word.encode()])
        drawn = [
            np.sort(random.permutation(uses.matching(side))[: asked.max_uses])
            for side in (asked.before, asked.after)
        ]
        chosen, edge = uses.select(np.concatenate(drawn)), len(drawn[0])
        documents = chosen.metadata(DOCUMENT)
        if asked.unit == "documents" and (
            min(len(set(documents[:edge])), len(set(documents[edge:]))) < MIN_DOCUMENTS
        ):
            return None
        features = self.encoder(chosen.sentences(), chosen.spans)
        vectors = substitute_vectors(features, asked.seed)
        change = measure_change(
            Side(vectors[:edge], documents[:edge]),
            Side(vectors[edge:], documents[edge:]),
            unit=asked.unit,
            permutations=asked.permutations,
            seed=asked.seed,
        )
        before, after = (counts[word] for counts in self.sides.counts)
        band = band_of((before, after))
        own_side = mean_own_side_share(
            features,
            (np.arange(edge), np.arange(edge, len(chosen))),
            min(asked.max_uses, band.uses if band else MIN_SIDE),
            documents if asked.unit == "documents" else None,
            asked.seed,
        )
        return ChangedWord(
            word=word,
            before=before,
            after=after,
            documents_before=change.before.documents or 0,
            documents_after=change.after.documents or 0,
            apd=change.apd,
            apd_by_chance=change.apd_by_chance,
            prt=change.prt,
            p_value=change.p_value,
            unit=change.unit,
            own_side=own_side,
            by_chance=tuple(self._by_chance(vectors, documents)),
        )

    def _by_chance(
        self,
        vectors: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]",
        documents: Sequence[str | None],
    ) -> Iterator[float]:
        """P-values after whole documents were dealt to the sides at random."""
        asked = self.question
        for number, first in enumerate(self._dealt):
            is_first = np.array([document in first for document in documents])
            groups = [
                [document for document, own in zip(documents, is_first, strict=True) if own == side]
                for side in (True, False)
            ]
            if min(len(set(group)) for group in groups) < MIN_DOCUMENTS:
                continue
            yield measure_change(
                Side(vectors[is_first], groups[0]),
                Side(vectors[~is_first], groups[1]),
                unit=asked.unit,
                permutations=_PERMUTATIONS_OF_CONTROL,
                seed=number,
            ).p_value

    @cached_property
    def _dealt(self) -> list[set[str]]:
        """The documents of the side before, in each random dealing; as many as there are."""
        before, after = self.sides.documents
        every = sorted(before | after)
        random = np.random.default_rng(self.question.seed)
        return [
            {every[n] for n in random.permutation(len(every))[: len(before)]}
            for _ in range(NUM_SHUFFLES)
        ]


def _plain(value: Cell) -> object:
    """Measures differ in the third digit."""
    return f"{value:.3f}" if isinstance(value, float) else value
