"""The changes of many words as one table, the most changed first.

    in   for each word how far its uses on two sides are apart, and what chance does
    out  `VocabularyChange`: ranked, p-values adjusted, beside words of the same frequency

APD varies with how varied a word's uses are, change or not. So words are ranked by its *excess*:
APD less what it is on average when documents are shuffled.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polyseme.display import html_table, summary
from polyseme.meanings.change.measure import Change, Unit, benjamini_hochberg, frequency_matches
from polyseme.meanings.concordance.export import Cell, to_pandas, write_uses

if TYPE_CHECKING:
    import pandas

NUM_CONTROLS = 20
"""Words of about the same frequency that each is compared with."""
SIGNIFICANT = 0.05
_COLUMNS = (
    *("rank", "word", "uses_before", "uses_after", "excess", "apd", "apd_by_chance", "prt"),
    *("p", "q", "controls_below", "controls", "documents_before", "documents_after", "shuffled"),
)


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
    by_chance: tuple[float, ...]
    """P-values after documents were dealt to the sides at random, each time for all words alike."""

    @classmethod
    def of(
        cls, word: str, counts: tuple[int, int], change: Change, by_chance: tuple[float, ...]
    ) -> "ChangedWord":
        """From what was measured."""
        documents = change.before.documents or 0, change.after.documents or 0
        chance = change.apd_by_chance
        return cls(word, *counts, *documents, change.apd, chance, change.prt, change.p_value,
                   change.unit, by_chance)  # fmt: skip

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
    """Of so many words of about the same frequency on both sides, how many changed less."""


@dataclass(frozen=True, eq=False)
class VocabularyChange:
    """Words, the most changed first."""

    words: tuple[RankedWord, ...]
    passed_over: Mapping[str, int]
    """How many words were not compared, by the reason."""

    @classmethod
    def of(cls, found: Sequence[ChangedWord], passed_over: Mapping[str, int]) -> "VocabularyChange":
        """Ranked, adjusted, and each beside its controls."""
        adjusted = benjamini_hochberg([word.p_value for word in found])
        counts = np.array([[word.before, word.after] for word in found], np.float64).reshape(-1, 2)
        excess = np.array([word.excess for word in found])
        ranked = []
        for number, (word, q) in enumerate(zip(found, adjusted, strict=True)):
            near = frequency_matches(counts, number, NUM_CONTROLS)
            below = int((excess[near] < word.excess).sum())
            ranked.append(RankedWord(word, q, below, len(near)))
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

    def to_pandas(self) -> "pandas.DataFrame":
        """A data frame, one row per word; needs the package pandas."""
        return to_pandas(self)

    def to_csv(self, path: str | PathLike[str]) -> None:
        """All words, for a spreadsheet or any other tool."""
        write_uses(self, Path(path), kind=".csv")

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


def _plain(value: Cell) -> object:
    """Measures differ in the third digit."""
    return f"{value:.3f}" if isinstance(value, float) else value
