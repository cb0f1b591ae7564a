"""Conditions on metadata: what a user writes in, which rows meet it out.

    in   text such as `year<1860 and not (genre=news or author~Dickens)`, and the values of each
         column
    out  a `Condition`, and which rows of a table meet it; or a `ConditionError` that says where the
         text cannot be understood, and what was expected there

    condition  = all { "or" all }
    all        = term { "and" term }
    term       = { "not" } ( "(" condition ")" | comparison )
    comparison = name ( "<" | "<=" | ">" | ">=" | "=" | "!=" | "~" ) [ value ]

Names and values stand in double quotes, or plainly. A plain value goes on to the next `and` or `or`
with a term behind it: `title=Pride and Prejudice and year<1860` has two comparisons. Parentheses in
it belong to it as long as they are closed: `title=Emma (1815)`.

A column whose values are all numbers is compared as numbers, any other as text, by code points. So
that no answer is given to another question than was meant, a value that could not be compared, or
that no row has, is refused.

A row without a value, or with an empty one, is equal to the empty value only (`author=`). It is
neither less nor greater than any, and contains none. `not` turns every answer round, also this one.

`subcorpus=letters` stands for the condition that was kept under that name beside the corpus, in
`NAME.subcorpora.toml`: letters = "genre=letter and year<1900". A condition is kept with no other
name in it, so that none can lead in a circle.
"""

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import tomli_w
from rich.cells import cell_len

from polyseme.display import printable
from polyseme.errors import ConfigError, InputError
from polyseme.limits import TOML_BYTES, LimitError, parse_toml, read_text
from polyseme.meanings.concordance.sentence_table import DOCUMENT, TextColumn
from polyseme.storage.files import disk_faults_explained, write_text
from polyseme.text.corpus import Corpus, beside

MAX_CHARACTERS, MAX_COMPARISONS, MAX_DEPTH = 100_000, 1_000, 50
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_EQUALITIES: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "!=": ne}
_OPERATORS = (*_ORDERS, *_EQUALITIES, "~")


@dataclass(frozen=True)
class Comparison:
    """A column, an operator, and a value that the column can be compared with."""

    column: str
    operator: str
    value: str
    number: Decimal | None = None  # the value, if the column is one of numbers

    def accepts(self, found: str | None) -> bool:
        """Whether a value of the column meets it."""
        if not (found and self.value):
            # One of them is missing, and then they are equal only if both are.
            return self.operator in _EQUALITIES and (bool(found) == bool(self.value)) == (
                self.operator == "="
            )
        if self.operator == "~":
            return self.value.casefold() in found.casefold()
        compare = (_ORDERS | _EQUALITIES)[self.operator]
        if self.number is None:
            return compare(found, self.value)
        return compare(number_of(found), self.number)

    def __str__(self) -> str:
        return f"{quoted(self.column)}{self.operator}{quoted(self.value)}"


@dataclass(frozen=True)
class Not:
    """What does not meet its part."""

    part: "Condition"

    def __str__(self) -> str:
        return f"not {_inside(self.part)}"


@dataclass(frozen=True)
class All:
    """What meets all parts."""

    parts: "tuple[Condition, ...]"

    def __str__(self) -> str:
        return " and ".join(map(_inside, self.parts))


@dataclass(frozen=True)
class Some:
    """What meets at least one part."""

    parts: "tuple[Condition, ...]"

    def __str__(self) -> str:
        return " or ".join(map(_inside, self.parts))


Condition = Comparison | Not | All | Some
EVERYTHING = All(())
"""The condition that every row meets."""
SUBCORPUS = "subcorpus"
"""What conditions ask about as if it were a column: the parts of the corpus that have a name."""


def _inside(condition: Condition) -> str:
    return f"({condition})" if isinstance(condition, All | Some) else str(condition)


def quoted(text: str) -> str:
    """A name or a value as a condition has it: in quotes, unless it is a plain word."""
    is_plain = re.fullmatch(r"[\w.+-]*", text) and text.lower() not in ("and", "or", "not")
    return text if is_plain else '"{}"'.format(text.replace('"', '""'))


def _unquoted(text: str) -> str:
    return text[1:-1].replace('""', '"') if text.startswith('"') else text


def columns_of(condition: Condition) -> set[str]:
    """The columns that it asks about."""
    match condition:
        case Comparison():
            return {condition.column}
        case Not():
            return columns_of(condition.part)
        case All() | Some():
            return {name for part in condition.parts for name in columns_of(part)}


def rows_meeting(condition: Condition, columns: Mapping[str, TextColumn]) -> npt.NDArray[np.bool_]:
    """Which rows meet a condition. Each distinct value is looked at once for each comparison."""
    match condition:
        case Comparison():
            column = columns[condition.column]
            accepts = [condition.accepts(value) for value in (*column.values, None)]
            return np.array(accepts, np.bool_)[column.codes]  # the code of no value is -1, the last
        case Not():
            return ~rows_meeting(condition.part, columns)
        case All() | Some():
            is_all = isinstance(condition, All)
            found = np.full(len(columns[DOCUMENT].codes), is_all)
            combine = np.logical_and if is_all else np.logical_or
            for part in condition.parts:
                combine(found, rows_meeting(part, columns), out=found)
            return found


_NUMBER = re.compile(r"[+-]?\d{1,100}(\.\d{1,100})?", re.ASCII)


def number_of(text: str) -> Decimal | None:
    """A number as people write one: digits, a sign before them, a point between them."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


class ColumnValues:
    """The distinct values of a column, and whether all of them are numbers."""

    def __init__(self, values: Iterable[str | None]) -> None:
        self.texts = frozenset(value for value in values if value)

    @cached_property
    def numbers(self) -> frozenset[Decimal] | None:
        """All values as numbers; None if one of them is none, or there are no values."""
        numbers = [number for text in self.texts if (number := number_of(text)) is not None]
        return frozenset(numbers) if 0 < len(numbers) == len(self.texts) else None

    @cached_property
    def ordered(self) -> list[str]:
        """All values, numbers by size."""
        return sorted(self.texts) if self.numbers is None else sorted(self.texts, key=Decimal)

    @cached_property
    def folded(self) -> dict[str, str]:
        """All values by what `~` sees of them."""
        return {text.casefold(): text for text in self.ordered}

    def has(self, comparison: Comparison) -> bool:
        """Whether any row has the value that this looks for."""
        if comparison.operator == "~":
            return any(comparison.value.casefold() in text for text in self.folded)
        if comparison.number is not None and self.numbers is not None:
            return comparison.number in self.numbers
        return comparison.value in self.texts

    def near(self, comparison: Comparison) -> tuple[Comparison, ...]:
        """Comparisons that somebody may have meant whose value no row has."""
        column, value = comparison.column, comparison.value.strip("'‘’“”「」")
        if comparison.number is not None and self.numbers is not None:
            wanted = comparison.number
            nearest = sorted(self.texts, key=lambda text: abs(Decimal(text) - wanted))[:2]
            return tuple(Comparison(column, comparison.operator, text) for text in nearest)
        operator = "=" if comparison.operator == "~" else comparison.operator
        folded = value.casefold()
        holding = [text for key, text in self.folded.items() if folded in key][:_NEAR]
        similar = [] if holding else self._similar(value)
        found = [Comparison(column, operator, text) for text in holding or similar]
        # Several contain it: then perhaps all of them were meant.
        part = [Comparison(column, "~", value)] if holding and operator == "=" else []
        return (*found, *part)

    def _similar(self, value: str) -> list[str]:
        """Values with nearly the same words in any order: `Charles Dickens`, `Dickens, Charles`."""
        by_words = {_words(text): text for text in self.ordered[:_COMPARED]}
        close = difflib.get_close_matches(_words(value), by_words, n=_NEAR, cutoff=0.6)
        return [by_words[words] for words in close]


class Subcorpora(ColumnValues):
    """Named parts of a corpus (`subcorpora.py`): the values of a column that there is not."""

    def __init__(self, conditions: Mapping[str, str]) -> None:
        super().__init__(conditions)
        self.conditions = conditions


_SHOWN = 200  # characters of what a user wrote, or of a list of columns, in a message
_NEAR = 3  # values that are named instead of one that no row has
_COMPARED = 5_000  # values that are compared letter by letter: a second


def _words(text: str) -> str:
    return " ".join(sorted(re.findall(r"\w+", text.casefold())))


SENTENCES = {
    "column": "Expected a column, a comparison and a value, as in year<1860.",
    "no_column": "There is no column {column}.",
    "columns": "Columns: {columns}.",
    "operator": "Expected one of < <= > >= = != ~ after {column}.",
    "no_operator": "{operator} is no comparison. Expected one of < <= > >= = != ~, and quotation "
    "marks around a value that begins with such a sign.",
    "value": "Expected a value after {operator}.",
    "no_order": "Expected a name after {column}= or {column}!=.",
    "not_a_number": "{column} is a column of numbers, such as {example}; {value} is not a number.",
    "not_all_numbers": "{column} has values that are not numbers, such as {example}, so {operator} "
    "compares text, and as text {number} and {value} have another order than as numbers. Use = or "
    "~, or correct the values.",
    "no_value": "No sentence has {comparison}.",
    "joined": "Expected a comparison after {word}. If it belongs to the value, put quotation marks "
    "around the value.",
    "did_you_mean": "Did you mean {choices}?",
    "or": " or ",
    "values": "Values: {values}.",
    "no_end": "Expected and, or, or the end.",
    "open_quote": "This quotation mark has no second one.",
    "open_parenthesis": "This parenthesis is not closed.",
    "too_long": "A condition has at most {most} characters; this one has {length}.",
    "too_many": "A condition has at most {most} comparisons.",
    "too_deep": "Parentheses are at most {most} deep.",
}
"""What can be wrong with a condition, by key: the explorer has the same keys in other languages."""
Sentence = tuple[str, dict[str, object]]
"""A key of `SENTENCES`, and its values. A list of values is of choices: one *or* another."""


class ConditionError(ConfigError):
    """A condition that cannot be understood, or that asks for what is not there."""

    language: ClassVar[Mapping[str, str]] = SENTENCES
    prefix: ClassVar[str] = "condition"  # of these keys in other languages
    sentences: tuple[Sentence, ...]
    condition: str
    at: int  # the character of the condition that it is about

    @classmethod
    def of(cls, condition: str, at: int, *sentences: Sentence) -> Self:
        """In English, with a caret under the character. Not `__init__`: errors travel as text."""
        before, after = _around(condition, at)
        caret = " " * cell_len(before) + "^"
        error = cls(say_in(cls.language, sentences), f"  {before}{after}", f"  {caret}")
        error.sentences, error.condition, error.at = sentences, condition, at
        return error

    @property
    def marked(self) -> tuple[str, str, str]:
        """What stands before the character, the character, and what stands after it."""
        before, after = _around(self.condition, self.at)
        return before, after[:1], after[1:]


def say_in(language: Mapping[str, str], sentences: Sequence[Sentence]) -> str:
    """Sentences one after the other, in a language."""
    told = []
    for key, values in sentences:
        plain = {
            name: language["or"].join(map(_short, value if isinstance(value, list) else [value]))
            for name, value in values.items()
        }
        told.append(language[key].format(**plain))
    return " ".join(told)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _around(text: str, at: int) -> tuple[str, str]:
    """What stands before a place and what after it, as far as a screen of 80 columns has room."""
    before, after = printable(text[max(0, at - 40) : at]), printable(text[at : at + 40])
    while cell_len(before) > 40:
        before = before[1:]
    while cell_len(after) > 30:
        after = after[:-1]
    return before, after


def parse_where(
    where: "str | Condition | Sequence[str | Condition]", columns: Mapping[str, ColumnValues]
) -> Condition:
    """One condition, or several of which all must be met."""
    if isinstance(where, str):
        return parse_condition(where, columns)
    if isinstance(where, Condition):
        return where
    parts = [parse_where(each, columns) for each in where]
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def parse_condition(text: str, columns: Mapping[str, ColumnValues]) -> Condition:
    """What a user wrote, held against the columns that there are."""
    if len(text) > MAX_CHARACTERS:
        values: dict[str, object] = {"most": f"{MAX_CHARACTERS:,}", "length": f"{len(text):,}"}
        raise ConditionError.of(text, 0, ("too_long", values))
    return _Parser(text, columns).parse()


def joined(texts: Sequence[str]) -> str:
    """Several conditions as one text, as a heading has it."""
    is_several = len(texts) > 1
    return " and ".join(
        f"({text})" if is_several and re.search(r"\sor\s", text, re.IGNORECASE) else text
        for text in texts
    )


_QUOTED = r'"(?:[^"]|"")*+"'
_WORD = r'(?<!\S)(?:and|or)(?=[\s("]|$)'
_NAME = rf'(?:(?!{_WORD})[^<>=!~()"])++'
_NOT = r'not(?=[\s("]|$)\s*+'
# Possessive, and ends at the next `and`: so each part of a text is looked at a few times at most.
_TERM = re.compile(rf"\s*+(?:{_NOT})*+(?:\(|(?:{_QUOTED}\s*+|{_NAME})[<>=!~])", re.IGNORECASE)
_BETWEEN = re.compile(_WORD, re.IGNORECASE)
_PLAIN_VALUE_END = re.compile(rf"[()]|{_WORD}", re.IGNORECASE)


class _Parser:
    """Reads a condition from left to right. Each method begins where `at` is, and moves it."""

    def __init__(self, text: str, columns: Mapping[str, ColumnValues]) -> None:
        self.text, self.columns = text, columns
        self.at = self.count = 0

    def parse(self) -> Condition:
        found = self._some(0)
        if self._skip_spaces() < len(self.text):
            raise self._error(self.at, ("no_end", {}))
        return found

    def _some(self, depth: int) -> Condition:
        parts = [self._all(depth)]
        while self._take(r"or(?!\w)"):
            parts.append(self._all(depth))
        return Some(tuple(parts)) if len(parts) > 1 else parts[0]

    def _all(self, depth: int) -> Condition:
        parts = [self._term(depth)]
        while self._take(r"and(?!\w)"):
            parts.append(self._term(depth))
        return All(tuple(parts)) if len(parts) > 1 else parts[0]

    def _term(self, depth: int) -> Condition:
        is_not = False
        while self._take(_NOT):
            is_not = not is_not
        found = self._in_parentheses(depth) if self._sees("(") else self._comparison()
        return Not(found) if is_not else found

    def _in_parentheses(self, depth: int) -> Condition:
        begin = self.at
        if depth == MAX_DEPTH:
            raise self._error(begin, ("too_deep", {"most": MAX_DEPTH}))
        self.at += 1
        found = self._some(depth + 1)
        if not self._take(r"\)"):
            if self._skip_spaces() == len(self.text):
                raise self._error(begin, ("open_parenthesis", {}))
            raise self._error(self.at, ("no_end", {}))
        return found

    def _comparison(self) -> Condition:
        self.count += 1
        if self.count > MAX_COMPARISONS:
            raise self._error(self.at, ("too_many", {"most": f"{MAX_COMPARISONS:,}"}))
        begin = self._skip_spaces()
        column = self._quoted() or self._take(_NAME).rstrip()
        if not column:
            raise self._error(begin, ("column", {}))
        operator = self._operator(column)
        if column not in self.columns:
            near = difflib.get_close_matches(column, self.columns, n=1)
            mean: list[Sentence] = [("did_you_mean", {"choices": near})] if near else []
            names = ", ".join(self.columns)
            raise self._error(
                begin, ("no_column", {"column": column}), *mean, ("columns", {"columns": names})
            )
        begin = self._skip_spaces()
        if (value := self._quoted()) is not None:
            found = self._checked(column, operator, value, begin, begin)
        else:
            found = self._checked(column, operator, self._plain_value(), begin, self.at)
        values = self.columns[column]
        return self._named(found, values, begin) if isinstance(values, Subcorpora) else found

    def _named(self, found: Comparison, values: Subcorpora, begin: int) -> Condition:
        """What stands under a name."""
        if found.operator not in _EQUALITIES or not found.value:
            raise self._error(begin, ("no_order", {"column": found.column}))
        plain = {name: self.columns[name] for name in self.columns if name != found.column}
        part = parse_condition(values.conditions[found.value], plain)
        return part if found.operator == "=" else Not(part)

    def _operator(self, column: str) -> str:
        begin = self._skip_spaces()
        operator = self._take(r"[<>=!~]+")
        if not operator:
            raise self._error(begin, ("operator", {"column": column}))
        operator = "=" if operator == "==" else operator
        if operator not in _OPERATORS:
            raise self._error(begin, ("no_operator", {"operator": operator}))
        return operator

    def _plain_value(self) -> str:
        begin, depth = self.at, 0
        self.at = len(self.text)
        for found in _PLAIN_VALUE_END.finditer(self.text, begin):
            if found[0] == "(":
                depth += 1
            elif found[0] == ")" and depth:
                depth -= 1
            elif found[0] == ")" or (not depth and _TERM.match(self.text, found.end())):
                self.at = found.start()
                break
        return self.text[begin : self.at].strip()

    def _quoted(self) -> str | None:
        """What stands in quotation marks, if there are any."""
        if not self._sees('"'):
            return None
        if not (found := self._take(_QUOTED)):
            raise self._error(self.at, ("open_quote", {}))
        return _unquoted(found)

    def _checked(self, column: str, operator: str, value: str, at: int, ends_at: int) -> Comparison:
        """A comparison that can be made, and whose value is there."""
        values = self.columns[column]
        if not value:
            if operator not in _EQUALITIES:
                raise self._error(at, ("value", {"operator": operator}))
            return Comparison(column, operator, value)
        is_numeric = values.numbers is not None and operator != "~"
        found = Comparison(column, operator, value, number_of(value) if is_numeric else None)
        is_there = values.has(found)
        if not is_there and (word := _BETWEEN.search(self.text, at, ends_at)):
            raise self._error(word.end(), ("joined", {"word": word[0]}), *self._near(found))
        if is_numeric and found.number is None:
            example = {"column": column, "example": values.ordered[0], "value": value}
            raise self._error(at, ("not_a_number", {**example}))
        if operator in _ORDERS:
            self._check_order(found, at)
        elif not is_there:
            told = f"{column}{'~' if operator == '~' else '='}{value}"
            raise self._error(at, ("no_value", {"comparison": told}), *self._near(found))
        return found

    def _check_order(self, found: Comparison, at: int) -> None:
        """Numbers among text are compared as text, and refused where that is another order."""
        if found.number is not None or (limit := number_of(found.value)) is None:
            return
        values, compare = self.columns[found.column], _ORDERS[found.operator]
        for text in values.ordered:
            number = number_of(text)
            if number is not None and compare(number, limit) != compare(text, found.value):
                example = next(each for each in values.ordered if number_of(each) is None)
                told = {"column": found.column, "example": example, "operator": found.operator,
                        "number": text, "value": found.value}  # fmt: skip
                raise self._error(at, ("not_all_numbers", {**told}))

    def _near(self, found: Comparison) -> Iterator[Sentence]:
        values = self.columns[found.column]
        if found.operator in _ORDERS:
            return
        if near := values.near(found):
            yield "did_you_mean", {"choices": [str(each) for each in near]}
        elif values.texts:
            shown = ", ".join(map(quoted, values.ordered[:5]))
            yield "values", {"values": shown + (", …" if len(values.texts) > 5 else "")}

    def _sees(self, character: str) -> bool:
        return self.text.startswith(character, self._skip_spaces())

    def _skip_spaces(self) -> int:
        self._take("")
        return self.at

    def _take(self, pattern: str) -> str:
        """What matches here, after spaces; empty if nothing does."""
        found = re.compile(rf"\s*+({pattern})", re.IGNORECASE).match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[1]

    def _error(self, at: int, *sentences: Sentence) -> ConditionError:
        return ConditionError.of(self.text, at, *sentences)


class Choice(NamedTuple):
    """What may be written next."""

    shown: str
    text: str  # all that was written, with the choice in the place of its beginning


_CHOICES = 20
_TERM_BEGIN = re.compile(rf"\(|{_WORD}|{_NOT}", re.IGNORECASE)
_BEGUN = re.compile(rf"({_QUOTED}\s*+|{_NAME})([<>=!~]++)\s*+(.*)", re.DOTALL | re.IGNORECASE)


def complete(text: str, columns: Mapping[str, ColumnValues]) -> list[Choice]:
    """What may follow a condition that somebody writes: a column, an operator, a value, `and`."""
    begins = [0, *(found.end() for found in _TERM_BEGIN.finditer(text))]
    # The last term is what is written now; or an `and` is part of a value, as of a title.
    found = [choice for begin in reversed(begins[-8:]) for choice in _term(text, begin, columns)]
    try:
        parse_condition(text, columns)
    except ConditionError:
        return found[:_CHOICES]
    more = [Choice(word, f"{text.rstrip()} {word} ") for word in ("and", "or")]
    return [*found, *(more if text[-1:].isspace() else [])][:_CHOICES]


def _term(text: str, begin: int, columns: Mapping[str, ColumnValues]) -> Iterator[Choice]:
    """The choices for a term that begins there."""
    term = text[begin:].lstrip()
    before = text[: len(text) - len(term)]
    if begun := _BEGUN.match(term):
        column = _unquoted(begun[1].strip())
        if column in columns and begun[2] in _OPERATORS:
            before += term[: begun.start(3)]
            written = begun[3].strip().lstrip('"').casefold()
            there = [value for value in columns[column].ordered if written in value.casefold()]
            for value in sorted(there, key=lambda value: not value.casefold().startswith(written)):
                if (new := before + quoted(value)) != text:
                    yield Choice(value, new)
    elif (name := term.rstrip()) in columns:
        is_numeric = columns[name].numbers is not None
        for operator in (*_ORDERS, *_EQUALITIES) if is_numeric else (*_EQUALITIES, "~"):
            yield Choice(f"{name}{operator}", f"{before}{quoted(name)}{operator}")
    else:
        for name in columns:
            if name.casefold().startswith(term.casefold()):
                yield Choice(name, before + quoted(name))


_SUBCORPUS_NAME = re.compile(r"[\w.-]{1,100}")


def path_of(corpus: Corpus) -> Path:
    """Where the names of a corpus are kept."""
    return beside(corpus.folder, "subcorpora.toml")


def read_subcorpora(corpus: Corpus) -> dict[str, str]:
    """Each name with its condition."""
    path = path_of(corpus)
    try:
        found = parse_toml(read_text(path, TOML_BYTES))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, LimitError) as error:
        raise InputError(f"The subcorpora in {path} cannot be read: {error}.") from error
    if wrong := [name for name, text in found.items() if not isinstance(text, str)]:
        raise InputError(f'{wrong[0]!r} in {path} is no condition. Expected: letters = "year<1900"')
    return found


def keep_subcorpus(corpus: Corpus, name: str, where: Condition) -> None:
    """Keep a condition under a name, in the place of what had it."""
    if not _SUBCORPUS_NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is not a valid name for a subcorpus: use letters, digits, - and _."
        )
    if SUBCORPUS in corpus.config.meta:
        raise ConfigError(
            f"{corpus.folder} has its own column {SUBCORPUS!r}, and conditions refer to that."
        )
    _write(corpus, {**read_subcorpora(corpus), name: str(where)})


def remove_subcorpus(corpus: Corpus, name: str) -> None:
    """Forget a name. The corpus stays as it is."""
    kept = read_subcorpora(corpus)
    if name not in kept:
        names = ", ".join(kept) or "none"
        raise InputError(f"{corpus.folder} has no subcorpus {name!r}; it has: {names}.")
    _write(corpus, {each: text for each, text in kept.items() if each != name})


def _write(corpus: Corpus, kept: Mapping[str, str]) -> None:
    path = path_of(corpus)
    with disk_faults_explained(path.parent):
        write_text(path, tomli_w.dumps(dict(sorted(kept.items()))))
