"""What a page shows, as its address says it: every state is an address that can be kept and sent.

in   the query of an address, which anyone may have written
out  `View`, and from it other addresses: this page, but sorted, or of another group
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode

import numpy as np
from starlette.datastructures import QueryParams

from polyseme.explorer.language import PageError, told_as
from polyseme.meanings.concordance.cql import is_cql
from polyseme.meanings.concordance.search import Query

MAX_TEXT = 2_000
"""Characters of any value but a choice of uses."""
_MOST_STEPS = 8
_MANY = ("where", "before", "after")
_NUMBERS = ("finer", "page", "layer", "like")
_FLAGS = ("regex", "case")


class GroupingKey(NamedTuple):
    """How uses are grouped."""

    finer: int
    layer: int | None
    """None: by what the model expects in the word's place, which tells meanings best."""


@dataclass(frozen=True)
class View:
    """The state of a page. What is not said has its usual value, and is not in the address."""

    q: str = ""  # A word, or forms of it with commas between, or a query in CQL
    regex: bool = False
    case: bool = False
    finer: int = 0  # steps to more groups; below 0, to fewer
    layer: int | None = None
    """Vectors that uses are grouped by: a layer of the model; None for what it expects there."""
    show: str = ""  # `labels`: the uses as the user sorts them, instead of groups
    group: str = ""  # only this group, by its id; or this label
    where: tuple[str, ...] = ()  # only uses whose metadata meet this; groups stay as they are
    uses: tuple[int, ...] = ()  # only these uses, by number
    like: int | None = None  # most like this use first
    sort: str = ""
    attribute: str = ""  # the word attribute that is shown under each word
    by: str = ""  # column that frequencies are counted by
    page: int = 1
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    text: str = ""  # A sentence to be scored
    lang: str = ""

    @classmethod
    def read(cls, given: "FormValues | QueryParams") -> "View":
        """From an address. What makes no sense is an error that says so."""
        values: dict[str, Any] = {}
        for field in fields(cls):
            name = field.name
            if name in _MANY:
                kept = [text for text in given.getlist(name) if text.strip()]
                values[name] = tuple(_bounded(name, text) for text in kept[:20])
            elif name == "uses":
                values[name] = unpack(given.get(name, ""))
            elif text := given.get(name, ""):
                values[name] = _value(name, _bounded(name, text))
        return cls(**values)

    @property
    def query(self) -> Query:
        """What is looked for; a query in CQL is known by how it begins."""
        if is_cql(self.q) and not self.regex:
            return Query.of(cql=self.q)
        with told_as("bad_query"):
            if self.regex:
                return Query.of(regex=self.q, case_sensitive=self.case)
            forms = {form.strip() for form in self.q.replace("，", ",").split(",")}
            return Query.of(forms=sorted(forms - {""}), case_sensitive=self.case)

    @property
    def grouping(self) -> GroupingKey:
        """How its uses are grouped."""
        return GroupingKey(self.finer, self.layer)

    def replace(self, **changes: Any) -> "View":
        """This view with other values. Unless it is said, it begins at the first page."""
        return replace(self, **{"page": 1, **changes})

    def pairs(self) -> list[tuple[str, str]]:
        """Names and values of what is not as usual, as a form or an address has them."""
        return list(self._pairs())

    def address(self, path: str, **changes: Any) -> str:
        """The address of a page with this view, changed."""
        query = urlencode(self.replace(**changes).pairs())
        return f"{path}?{query}" if query else path

    def _pairs(self) -> Iterator[tuple[str, str]]:
        for field in fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            if field.name == "uses":
                yield field.name, pack(value)
            elif isinstance(value, tuple):
                yield from ((field.name, text) for text in value)
            else:
                yield field.name, str(int(value) if isinstance(value, bool) else value)


def pack(numbers: Sequence[int]) -> str:
    """Numbers in order, each as its distance from the one before: short enough for an address."""
    before, parts = 0, []
    for number in sorted(set(numbers)):
        parts.append(np.base_repr(number - before, 36).lower())
        before = number
    return ".".join(parts)


def unpack(text: str) -> tuple[int, ...]:
    """Numbers that `pack` wrote."""
    numbers, number = [], 0
    for part in text.split(".") if text else ():
        if not (0 < len(part) <= 6 and part.isascii() and part.isalnum()):
            raise PageError("bad_selection")
        number += int(part, 36)
        numbers.append(number)
    return tuple(numbers)


def _bounded(name: str, text: str) -> str:
    if len(text) > MAX_TEXT:
        raise PageError("too_long", name=name, n=len(text), most=MAX_TEXT)
    return text


def _value(name: str, text: str) -> Any:
    if name in _FLAGS:
        return text == "1"
    if name not in _NUMBERS:
        return text
    try:
        number = int(text) if text.isascii() and len(text) <= 9 else None
    except ValueError:
        number = None
    lowest = -_MOST_STEPS if name == "finer" else 1 if name == "page" else 0
    if number is None or number < lowest or (name == "finer" and number > _MOST_STEPS):
        raise PageError("bad_number", name=name, text=text[:20])
    return number


class FormValues:
    """The values of a form that was sent."""

    def __init__(self, text: str, most: int) -> None:
        try:
            self._values = parse_qs(text, keep_blank_values=True, max_num_fields=most)
        except ValueError as error:
            raise PageError("too_many_fields", most=most) from error

    def get(self, key: str, default: str = "") -> str:
        """One value."""
        return next(iter(self._values.get(key, ())), default)

    def getlist(self, key: str) -> Sequence[str]:
        """All values."""
        return self._values.get(key, ())
