"""Judgments of several people: sheets to fill in, read back; how far they agree; one for all.

    in   sheets that annotators filled in (CSV), or DURel's judgments, as many as there are
    out  `Judgments`; and `Agreement`: alpha, the agreement of each two, what is most in dispute,
         and for each item what most say

An item is a pair of uses, judged on DURel's scale, or a line, which gets one of the senses named in
the sheet. It is known by its uses, so that sheets, annotators and rows may come in any order. A
cell that is no judgment is set aside and told with its row and column, as a spreadsheet counts
them; an empty one is not judged yet.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from polyseme.display import counted, html_table, summary
from polyseme.errors import ConfigError, InputError
from polyseme.meanings.agreement import (
    Counts,
    Estimate,
    Level,
    disputes,
    estimate_alpha,
    estimate_mean,
    krippendorff_alpha,
)
from polyseme.meanings.concordance import durel
from polyseme.meanings.concordance.export import (
    Cell,
    Tabular,
    check_format,
    guarded,
    read_table,
    write_table,
)

Kind = Literal["pairs", "lines"]
Value: TypeAlias = int | str
"""A step of the scale, or a sense."""

SCALE = (1, 2, 3, 4)
"""Unrelated, distantly related, closely related, identical (Schlechtweg et al., 2018)."""
CANNOT_DECIDE = {"pairs": "0", "lines": "?"}
"""What is written instead of a judgment."""
SAME = 2.5
"""Pairs whose mean judgment is above are taken for one sense, below for two."""
RANDOM, CHOSEN = "random", "chosen"
PAIR_COLUMNS = (
    *("id", "sentence1", "sentence2", "judgment", "comment"),
    *("annotator", "sample", "identifier1", "identifier2", "lemma"),
)
LINE_COLUMNS = (
    *("id", "sentence", "sense", "comment", "senses"),
    *("annotator", "sample", "sentence_id", "begin", "lemma"),
)
DUREL_ENDING = ".judgments.tsv"
_BETWEEN = " | "  # senses, in the cell that lists them
_MOST_SENSES = 50
_TABLES = (".csv", ".tsv")


class Key(NamedTuple):
    """What an item is known by, in all sheets."""

    lemma: str
    first: str
    second: str
    """Of a pair, the identifiers of its uses; of a line, its sentence and where the use begins."""

    @classmethod
    def of_pair(cls, lemma: str, one: str, two: str) -> "Key":
        """Whichever comes first."""
        return cls(lemma, *sorted((one, two)))

    @property
    def id(self) -> str:
        """Its short name: the same in every sheet. No spreadsheet takes it for a number."""
        content = "\t".join(self).encode("utf-8", "surrogatepass")
        return f"i{hashlib.blake2b(content, digest_size=4).hexdigest()}"


@dataclass(frozen=True)
class Item:
    """A pair of uses, or a line, that is judged."""

    key: Key
    sentences: tuple[str, ...]
    """Each with its use between asterisks; none if the file has none."""
    sample: str = ""
    """`random`, or `chosen` for a reason; empty if the file does not tell."""
    senses: tuple[str, ...] = ()
    """Of a line: those to choose from; empty if any will do."""


@dataclass(frozen=True)
class Rejected:
    """A cell that is no judgment."""

    path: Path
    row: int
    """As a spreadsheet counts them: the first below the names of the columns is 2."""
    column: str
    cell: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path.name}, row {self.row}, {self.column}: {self.cell!r} {self.reason}."


@dataclass(frozen=True, eq=False)
class Judgments:
    """What people said of items."""

    kind: Kind
    items: Mapping[Key, Item]
    """In order of their keys, whichever sheet came first."""
    values: Mapping[Key, Mapping[str, Value]]
    """Of each item that was judged, by annotator."""
    annotators: tuple[str, ...]
    num_undecided: int = 0
    num_open: int = 0
    """Cells that are empty as yet."""
    rejected: tuple[Rejected, ...] = ()
    comments: Mapping[tuple[Key, str], str] | None = None

    @property
    def num_judgments(self) -> int:
        """How many there are."""
        return sum(map(len, self.values.values()))

    @property
    def lemmas(self) -> list[str]:
        """The words they are about."""
        return sorted({key.lemma for key in self.items})

    @property
    def scale(self) -> list[Value]:
        """The values that there are."""
        if self.kind == "pairs":
            return [*SCALE]
        found = sorted({str(v) for given in self.values.values() for v in given.values()})
        if len(found) > _MOST_SENSES:
            raise InputError(
                f"The column sense has {len(found):,} different values; at most {_MOST_SENSES} are "
                "compared. Name the senses to choose from: polyseme judge --senses."
            )
        return [*found]

    @property
    def level(self) -> Level:
        """How values are compared."""
        return "ordinal" if self.kind == "pairs" else "nominal"

    def counts(
        self, keys: Sequence[Key] | None = None, annotators: Sequence[str] | None = None
    ) -> Counts:
        """(N, V): how many people gave each value to each of these items, or all judged ones."""
        column = {value: number for number, value in enumerate(self.scale)}
        chosen = list(self.values) if keys is None else keys
        found = np.zeros((len(chosen), len(column)), np.int64)
        for row, key in enumerate(chosen):
            given = self.values.get(key, {})
            for annotator in given if annotators is None else annotators:
                if annotator in given:
                    found[row, column[given[annotator]]] += 1
        return found

    def mean(self, key: Key) -> float:
        """The mean judgment of a pair."""
        return float(np.mean([float(value) for value in self.values[key].values()]))

    def label(self, key: Key) -> str | None:
        """What most say of an item; None if as many say something else. Of a pair: true if it has
        one sense, as `polyseme same --pairs` reads it."""
        if self.kind == "pairs":
            mean = self.mean(key)
            return None if mean == SAME else str(mean > SAME).lower()
        [(label, most), *others] = Counter(self.values[key].values()).most_common()
        return None if others and others[0][1] == most else str(label)


# Reading


def read_judgments(paths: Sequence[Path]) -> Judgments:
    """All judgments in these sheets and files of DURel, and in those of these folders."""
    reader = _Reader()
    for path in paths:
        if path.is_dir():
            inside = (p for p in sorted(path.rglob("*")) if p.suffix.lower() in _TABLES)
            for each in inside:
                reader.read(each, is_named=False)
        else:
            reader.read(path, is_named=True)
    return reader.finished(paths)


class _Reader:
    """What was read so far."""

    def __init__(self) -> None:
        self.kinds: dict[Kind, Path] = {}
        self.items: dict[Key, Item] = {}
        self.given: dict[tuple[Key, str], list[tuple[str, Callable[[str], Rejected]]]] = (
            defaultdict(list)
        )
        self.comments: dict[tuple[Key, str], str] = {}
        self.contexts: dict[str, str] = {}
        self.rejected: list[Rejected] = []
        self.num_open = 0

    def read(self, path: Path, *, is_named: bool) -> None:
        columns, rows = read_table(path, _is_durel)
        names = set(columns)
        if {"identifier", "context", "indexes_target_token"} <= names:
            for row in rows:
                context = row["context"]
                self.contexts[row["identifier"]] = durel.marked_context(
                    context, row["indexes_target_token"]
                )
        elif {"identifier1", "identifier2", "judgment"} <= names:
            self._read_sheet("pairs", path, rows)
        elif {"sentence_id", "begin", "sense"} <= names:
            self._read_sheet("lines", path, rows)
        elif is_named:
            raise InputError(
                f"{path} has no judgments. Expected are sheets that `polyseme judge` wrote, or "
                f"DURel's judgments, with the columns {', '.join(durel.JUDGMENTS)}."
            )

    def _read_sheet(self, kind: Kind, path: Path, rows: Iterator[dict[str, str]]) -> None:
        self.kinds.setdefault(kind, path)
        pair = kind == "pairs"
        column = "judgment" if pair else "sense"
        names = ("identifier1", "identifier2") if pair else ("sentence_id", "begin")
        for number, row in enumerate(rows, start=2):
            one, two, lemma = (cell_text(row.get(name, "")) for name in (*names, "lemma"))
            cell = " ".join(row[column].split())
            key = Key.of_pair(lemma, one, two) if pair else Key(lemma, one, two)

            def reject(reason: str, number: int = number, cell: str = cell) -> Rejected:
                return Rejected(path, number, column, cell, reason)

            if not (one and two) or row.get("id", key.id) != key.id:
                if cell:
                    self.rejected.append(
                        reject(f"is of an item whose {' or '.join(names)} was changed")
                    )
                continue
            item = _item(key, row, pair)
            before = self.items.get(key)
            # What was drawn at random stays so if it is given again, as it was in dispute.
            if before is None or (item.sample, item.sentences) > (before.sample, before.sentences):
                self.items[key] = item
            annotator = row.get("annotator", "").strip() or path.stem
            if not cell:
                self.num_open += 1
                continue
            self.given[key, annotator].append((cell, reject))
            if comment := row.get("comment", "").strip():
                self.comments[key, annotator] = comment

    def finished(self, paths: Sequence[Path]) -> Judgments:
        if not self.kinds:
            raise InputError(
                f"No judgments in {', '.join(map(str, paths))}. Expected are sheets that `polyseme "
                "judge` wrote, filled in, or DURel's judgments.csv."
            )
        if len(self.kinds) > 1:
            pairs, lines = self.kinds["pairs"], self.kinds["lines"]
            raise ConfigError(f"{pairs} has pairs and {lines} has lines: read them one by one.")
        [kind] = self.kinds
        values: dict[Key, dict[str, Value]] = defaultdict(dict)
        num_undecided = 0
        for (key, annotator), cells in sorted(self.given.items(), key=lambda each: each[0]):
            found: list[Value] = []
            is_undecided = False
            for cell, reject in cells:
                value = _value(kind, cell, self.items[key].senses)
                if value is not None:
                    found.append(value)
                elif cell in (CANNOT_DECIDE[kind], "0.0"):
                    is_undecided = True
                else:
                    expected = "1 to 4, or 0" if kind == "pairs" else "a sense of its list, or ?"
                    self.rejected.append(reject(f"is not {expected}"))
            one = _one_of(kind, found)
            if one is not None:
                values[key][annotator] = one
            elif found:
                self.rejected.append(cells[-1][1](f"is one of {len(found)} that differ"))
            num_undecided += is_undecided and not found
        items = {key: self._with_sentences(self.items[key]) for key in sorted(self.items)}
        return Judgments(
            kind,
            items,
            dict(values),
            tuple(sorted({annotator for _, annotator in self.given})),
            num_undecided,
            self.num_open,
            tuple(sorted(self.rejected, key=lambda each: (str(each.path), each.row))),
            self.comments,
        )

    def _with_sentences(self, item: Item) -> Item:
        """Of DURel's judgments, the contexts of their uses, if they were read."""
        uses = item.key[1:]
        if item.sentences or not all(use in self.contexts for use in uses):
            return item
        return Item(item.key, tuple(self.contexts[use] for use in uses), item.sample)


def _is_durel(columns: list[str]) -> bool:
    """Whether quotation marks are text: in DURel's files, not in sheets that have tabs."""
    return "id" not in columns and bool({"identifier", "identifier1"} & set(columns))


def _item(key: Key, row: Mapping[str, str], pair: bool) -> Item:
    sample = row.get("sample", "").strip()
    if not pair:
        senses = tuple(filter(None, (s.strip() for s in row.get("senses", "").split(_BETWEEN))))
        return Item(key, (row.get("sentence", ""),), sample, senses)
    first, second = row.get("sentence1", ""), row.get("sentence2", "")
    if cell_text(row["identifier1"]) != key.first:
        first, second = second, first
    return Item(key, (first, second) if first and second else (), sample)


def _value(kind: Kind, cell: str, senses: Sequence[str]) -> Value | None:
    """The judgment in a cell, if it is one."""
    if kind == "pairs":
        try:
            number = float(cell.replace(",", "."))
        except ValueError:
            return None
        return int(number) if number in SCALE else None
    if cell == CANNOT_DECIDE[kind]:
        return None
    if not senses:
        return cell
    return next((sense for sense in senses if sense.casefold() == cell.casefold()), None)


def _one_of(kind: Kind, found: Sequence[Value]) -> Value | None:
    """Of what one person said of one item, perhaps more than once: as DURel does, the median."""
    if kind == "lines" or not found:
        return found[0] if len(set(found)) == 1 else None
    middle = median(int(value) for value in found)
    return int(middle) if middle in SCALE else None


# Measuring


class TwoAnnotators(NamedTuple):
    """How far two people agree."""

    first: str
    second: str
    num_items: int
    """That both judged."""
    same: float
    """Share of them of which both said the same."""
    alpha: float


class OfWord(NamedTuple):
    """The figures of one of several words."""

    lemma: str
    alpha: Estimate
    relatedness: Estimate | None


@dataclass(frozen=True, eq=False)
class Agreement(Tabular):
    """How far people agree in their judgments."""

    judgments: Judgments
    alpha: Estimate
    relatedness: Estimate | None
    """The mean judgment of pairs: of those drawn at random, if the sheets tell which they are."""
    pairs: tuple[TwoAnnotators, ...]
    words: tuple[OfWord, ...]
    """If there are several."""
    dispute: Mapping[Key, float]
    """How far the judgments of each item are apart, 1 being as far as by chance."""

    @property
    def most_disputed(self) -> list[Key]:
        """The items in dispute, the most disputed first."""
        found = [key for key, value in self.dispute.items() if value > 0]
        return sorted(found, key=lambda key: (-self.dispute[key], key))

    @property
    def judges_per_item(self) -> float:
        """How many judged an item, of those that several judged."""
        several = [len(given) for given in self.judgments.values.values() if len(given) > 1]
        return float(np.mean(several)) if several else 0.0

    def __repr__(self) -> str:
        number = counted(self.judgments.num_judgments, "judgment")
        people = counted(len(self.judgments.annotators), "annotator")
        return summary("Agreement", number, people, f"alpha {self.alpha.value:.3f}")

    def _repr_html_(self) -> str:
        rows = [(t.first, t.second, t.num_items, f"{t.alpha:.3f}") for t in self.pairs]
        return html_table(repr(self), rows, ("", "", "items", "alpha"))

    def table(self) -> "ItemTable":
        """The items, one per row, with each judgment and what most say."""
        return ItemTable(self)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        judgments = self.judgments
        words = [
            {"lemma": word.lemma, "alpha": word.alpha.to_json(), "relatedness": _json(word[2])}
            for word in self.words
        ]
        return {
            "kind": judgments.kind,
            "items": len(judgments.items),
            "judgments": judgments.num_judgments,
            "annotators": list(judgments.annotators),
            "cannot_decide": judgments.num_undecided,
            "not_judged": judgments.num_open,
            "rejected": list(map(str, judgments.rejected)),
            "level": judgments.level,
            "alpha": self.alpha.to_json(),
            "relatedness": _json(self.relatedness),
            "pairs": [
                pair._asdict() | {"alpha": None if math.isnan(pair.alpha) else pair.alpha}
                for pair in self.pairs
            ],
            "words": words,
            "disputed": [key.id for key in self.most_disputed],
        }


def _json(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else estimate.to_json()


def measure_agreement(judgments: Judgments, *, seed: int = 1) -> Agreement:
    """Alpha with its interval, over all and of each two; means; what is in dispute."""
    if not judgments.values:
        raise InputError("The sheets have no judgment yet: fill in some, and save them.")
    keys = list(judgments.values)
    counts = judgments.counts(keys)
    lemmas = judgments.lemmas
    of_lemma = {lemma: np.array([key.lemma == lemma for key in keys], np.bool_) for lemma in lemmas}
    words = [
        OfWord(
            lemma,
            estimate_alpha(counts[own], judgments.level, seed=seed),
            _relatedness(judgments, [key for key in keys if key.lemma == lemma], seed),
        )
        for lemma, own in of_lemma.items()
        if len(lemmas) > 1
    ]
    apart = disputes(counts, judgments.level)
    return Agreement(
        judgments,
        estimate_alpha(counts, judgments.level, seed=seed),
        _relatedness(judgments, keys, seed),
        tuple(_each_two(judgments, keys)),
        tuple(words),
        dict(zip(keys, apart.tolist(), strict=True)),
    )


def _relatedness(judgments: Judgments, keys: Sequence[Key], seed: int) -> Estimate | None:
    if judgments.kind == "lines":
        return None
    drawn = [key for key in keys if judgments.items[key].sample != CHOSEN]
    return estimate_mean([judgments.mean(key) for key in drawn], seed=seed)


def _each_two(judgments: Judgments, keys: Sequence[Key]) -> Iterator[TwoAnnotators]:
    for first, second in combinations(judgments.annotators, 2):
        both = [key for key in keys if {first, second} <= judgments.values[key].keys()]
        if not both:
            continue
        counts = judgments.counts(both, (first, second))
        same = float((counts.max(axis=1) == 2).mean())
        alpha = krippendorff_alpha(counts, judgments.level)
        yield TwoAnnotators(first, second, len(both), same, alpha)


# Writing


@dataclass(frozen=True)
class ItemTable:
    """Items with what each annotator said. Pairs as `polyseme same --pairs` reads them, lines as
    `polyseme label --labels` does."""

    agreement: Agreement

    @property
    def columns(self) -> list[str]:
        """Of both kinds, with the names that the sheets have for them."""
        judgments = self.agreement.judgments
        by = [f"by {annotator}" for annotator in judgments.annotators]
        if judgments.kind == "pairs":
            return [
                *("id", "sentence1", "sentence2", *by, "mean", "label", "dispute"),
                *("identifier1", "identifier2", "lemma"),
            ]
        return ["id", "sentence", *by, "label", "dispute", "sentence_id", "begin", "lemma"]

    def __len__(self) -> int:
        return len(self.agreement.judgments.values)

    def rows(self) -> Iterator[list[Cell]]:
        """In order of the keys."""
        judgments = self.agreement.judgments
        for key, given in judgments.values.items():
            sentences = judgments.items[key].sentences or ("", "")
            by = [given.get(annotator) for annotator in judgments.annotators]
            mean = [round(judgments.mean(key), 4)] if judgments.kind == "pairs" else []
            label, dispute = judgments.label(key), round(self.agreement.dispute[key], 4)
            yield [key.id, *sentences, *by, *mean, label, dispute, *key[1:], key.lemma]


def check_judgments_format(path: Path) -> None:
    """Refuse a file whose name does not say what it is to be."""
    if not path.name.lower().endswith(DUREL_ENDING):
        check_format(path)


def write_judgments(agreement: Agreement, path: Path) -> None:
    """The items with their judgments, or, by the end of the name, DURel's file of judgments."""
    if not path.name.lower().endswith(DUREL_ENDING):
        write_table(agreement.table(), path)
        return
    judgments = agreement.judgments
    if judgments.kind != "pairs":
        raise ConfigError("DURel's judgments are of pairs, and these are of lines.")
    comments = judgments.comments or {}
    rows = (
        (key.first, key.second, annotator, value, comments.get((key, annotator), " "), key.lemma)
        for key, given in judgments.values.items()
        for annotator, value in given.items()
    )
    durel.write_lines(path, durel.tab_separated(durel.JUDGMENTS, rows))


@dataclass(frozen=True)
class Sheet:
    """Items as one annotator gets them."""

    kind: Kind
    items: Sequence[Item]
    annotator: str

    @property
    def columns(self) -> list[str]:
        """What an annotator reads and fills in first, then what the reader needs."""
        return [*(PAIR_COLUMNS if self.kind == "pairs" else LINE_COLUMNS)]

    def __len__(self) -> int:
        return len(self.items)

    def rows(self) -> Iterator[list[Cell]]:
        """In the order that they have here."""
        for item in self.items:
            key = item.key
            about = [self.annotator, item.sample, key.first, key.second, key.lemma]
            if self.kind == "pairs":
                yield [key.id, *item.sentences, None, None, *about]
            else:
                senses = _BETWEEN.join(item.senses)
                yield [key.id, *item.sentences, None, None, senses, *about]


def cell_text(text: str) -> str:
    """As it will be read again from a table: keys are made of this."""
    return str(guarded(durel.plain(text))).strip()
