"""A word's uses with a user's own labels: some given by hand, the others learned from them.

    in   uses, and labels of some of them: a column of a table, or a log of edits
    out  `LabelledUses`: every use with its label, how sure that is, and which to look at next

The table that comes out has the labels by hand in the column that they are read from. So a user
fills in the lines that were asked for, and gives the same table in again.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from polyseme.display import counted, html_table, summary
from polyseme.errors import InputError
from polyseme.limits import FILE_BYTES, LONGEST_LINE, LimitError, read_text
from polyseme.meanings.annotation.edit_log import read_edits
from polyseme.meanings.annotation.edited_groups import use_ids
from polyseme.meanings.annotation.edits import UseGroup, replay
from polyseme.meanings.annotation.labels import (
    LearnedLabels,
    draw_together,
    labels_when_left_out,
    learn_labels,
)
from polyseme.meanings.concordance.export import Cell, UseTable, guarded, to_pandas, write_uses
from polyseme.meanings.concordance.uses import Use, Uses
from polyseme.meanings.features.use_features import Describer, Floats
from polyseme.meanings.groups.calibration import describe_uses
from polyseme.meanings.groups.grouping import join_views
from polyseme.progress import NullProgress, Progress

if TYPE_CHECKING:
    import pandas

LABEL = "label"
"""The column that has the labels given by hand."""
_KEY = ("sentence_id", "begin")
_DELIMITERS = (",", ";", "\t")  # Excel writes CSV with the second where a comma is in numbers


@dataclass(frozen=True, eq=False)
class LabelledUses:
    """Every use with a label. `labelled.learned` has the confidences."""

    uses: Uses
    learned: LearnedLabels
    left_out: Mapping[str, tuple[int, int]]
    """For each label, how many uses were given it by hand; and how many of them would have got it,
    had they and up to a tenth of the others no label."""
    next: tuple[int, ...]
    """Numbers of the uses to look at next, the most useful first."""

    def lines_to_label(self) -> Iterator[Use]:
        """The uses to look at next."""
        return (self.uses[number] for number in self.next)

    @property
    def right_when_left_out(self) -> float:
        """Which share of the labels by hand would have been learned from the others."""
        return sum(right for _, right in self.left_out.values()) / len(self.learned.given)

    def __repr__(self) -> str:
        return summary("LabelledUses", counted(len(self.uses), "use"), repr(self.learned))

    def _repr_html_(self) -> str:
        lines = [(use.text, self.learned.labels[n], float(self.learned.confidence[n]))
                 for n, use in zip(self.next, self.lines_to_label(), strict=True)]  # fmt: skip
        below = html_table("Look at these next", lines, ("text", LABEL, "confidence"))
        return self.learned._repr_html_() + (below if lines else "")

    def table(self) -> UseTable:
        """The uses, one per row: label by hand, learned label, confidence, and which comes next."""
        learned, order = self.learned, {number: n for n, number in enumerate(self.next, start=1)}
        numbers = range(len(self.uses))
        columns: dict[str, list[Cell]] = {
            LABEL: [learned.given.get(number) for number in numbers],
            "predicted": list(learned.labels),
            "confidence": [round(float(value), 4) for value in learned.confidence],
            "look_next": [order.get(number) for number in numbers],
        }
        return UseTable(self.uses, columns)

    def to_pandas(self) -> "pandas.DataFrame":
        """`table` as a data frame; needs the package pandas."""
        return to_pandas(self.table())

    def to_csv(self, path: str | PathLike[str]) -> None:
        """`table` for a spreadsheet; with more labels filled in, it can be learned from again."""
        write_uses(self.table(), Path(path), kind=".csv")


def label_uses(
    uses: Uses,
    labels: Mapping[int, str],
    describer: Describer,
    *,
    num_next: int = 10,
    at_random: bool = False,
    seed: int = 1,
    progress: Progress | None = None,
) -> LabelledUses:
    """Learn from the labels of some uses, by their numbers, what the others are.

    The lines to look at next are those the labels leave unclear, or, `at_random`, a sample.
    """
    progress = progress or NullProgress()
    progress.start("Describing uses", len(uses))
    features = describe_uses(uses, describer, progress.update)
    vectors = draw_together(join_views(features, seed=seed))
    learned = learn_labels(vectors, labels)
    how = "random" if at_random else "uncertain"
    chosen = tuple(learned.next_to_label(num_next, how=how, seed=seed))  # type: ignore[arg-type]
    return LabelledUses(uses, learned, _left_out(learned, vectors), chosen)


def _left_out(learned: LearnedLabels, vectors: Floats) -> dict[str, tuple[int, int]]:
    """For each label how many have it, and how many would without it."""
    again = labels_when_left_out(vectors, learned.given)
    total = Counter(learned.given.values())
    right = Counter(own for number, own in learned.given.items() if again[number] == own)
    return {label: (total[label], right[label]) for label in sorted(total)}


def read_labels(path: Path, uses: Uses) -> dict[int, str]:
    """Labels by the number of the use: from a table with `sentence_id`, `begin`, or a log of edits.

    Rows without a label are passed over. Labels of uses that are not among these are an error.
    """
    if path.suffix.lower() == ".jsonl":
        return _from_log(path, uses)
    given: dict[tuple[str, str], str] = {}
    for number, row in enumerate(_rows(path), start=2):
        label, key = row[LABEL].strip(), (row[_KEY[0]], row[_KEY[1]].strip())
        if label and given.setdefault(key, label) != label:
            raise InputError(
                f"Line {number} of {path} calls a use {label!r} that is {given[key]!r} above."
            )
    if not given:
        raise InputError(f"The column {LABEL!r} of {path} is empty. Label some lines, 20 or so.")
    # As the table wrote them: a cell that looks like a formula has an apostrophe there.
    keys = [(str(guarded(use.sentence_id)), str(use.starts[use.begin])) for use in uses]
    found = {number: given[key] for number, key in enumerate(keys) if key in given}
    if missing := len(given.keys() - set(keys)):
        raise InputError(
            f"{missing:,} of {len(given):,} labels in {path} are of uses that are not found here. "
            "Look for the same word, with the same forms and conditions, in the same corpus."
        )
    return found


def _rows(path: Path) -> Iterator[dict[str, str]]:
    try:
        text = read_text(path, FILE_BYTES).removeprefix("\ufeff")
    except FileNotFoundError as error:
        raise InputError(f"There is no table of labels at {path}.") from error
    except (OSError, UnicodeDecodeError, LimitError) as error:
        raise InputError(f"The labels in {path} cannot be read: {error}.") from error
    header = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=header.count)
    csv.field_size_limit(LONGEST_LINE)
    reader = csv.DictReader(text.splitlines(keepends=True), delimiter=delimiter, restval="")
    missing = {LABEL, *_KEY} - set(reader.fieldnames or ())
    if missing:
        raise InputError(
            f"{path} lacks the column {', '.join(sorted(missing))}. Write a table with `polyseme "
            f"uses WORD --in CORPUS --sample 20 --out {path.name}`, add a column {LABEL!r}, and "
            "fill it in."
        )
    try:
        yield from reader
    except csv.Error as error:
        raise InputError(f"Line {reader.line_num} of {path} is not a row: {error}.") from error


def _from_log(path: Path, uses: Uses) -> dict[int, str]:
    if not path.is_file():
        raise InputError(f"There is no file of edits at {path}.")
    ids = use_ids(uses)
    labels = replay({"all": UseGroup("all", frozenset(ids))}, read_edits(path).edits).labels
    if not labels:
        raise InputError(f"No edit in {path} labels a use of these.")
    return {number: labels[use] for number, use in enumerate(ids) if use in labels}
