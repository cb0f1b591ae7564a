"""A condition chooses the rows that it says, or is refused with the place where it fails."""

import contextlib
import pickle
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from meanings.making import make_corpus
from polyseme.config import build
from polyseme.meanings.concordance.conditions import (
    SENTENCES,
    All,
    Choice,
    ColumnValues,
    Comparison,
    ConditionError,
    Not,
    Some,
    columns_of,
    complete,
    joined,
    parse_condition,
    parse_where,
    quoted,
    rows_meeting,
)
from polyseme.meanings.concordance.search import CorpusColumns
from polyseme.meanings.concordance.sentence_table import TextColumn
from polyseme.meanings.concordance.uses import find_uses
from polyseme.meanings.settings import FindConfig
from polyseme.text import shards

TABLE: dict[str, list[str | None]] = {
    "document": ["a.txt", "b (1).txt", "c.txt", "d.txt", "e.txt"],
    "year": ["1847", "900", "1860", "-90", None],
    "author": ["Dickens, Charles", "Austen, Jane", "", "鲁迅", None],
    "title": ["Pride and Prejudice", "Emma (1815)", 'The "Great"', "not me", "x or year<3"],
    "date": ["1850-03-01", "1850", "1861", "ca. 1850", "950"],
    "my column": ["=1+1", "a<b", "~", "x\ny", "And Then"],
}
COLUMNS = {name: ColumnValues(values) for name, values in TABLE.items()}


def parsed(text: str) -> Any:
    return parse_condition(text, COLUMNS)


def rows(text: str, table: dict[str, list[str | None]] = TABLE) -> list[int]:
    """The numbers of the rows that meet a condition."""
    columns = {name: ColumnValues(values) for name, values in table.items()}
    typed = {name: TextColumn.of(values) for name, values in table.items()}
    found: list[int] = rows_meeting(parse_condition(text, columns), typed).nonzero()[0].tolist()
    return found


def number(column: str, operator: str, value: str) -> Comparison:
    return Comparison(column, operator, value, Decimal(value))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("year<1860", number("year", "<", "1860")),
        (" year <= 1860 ", number("year", "<=", "1860")),
        ("year==1860", number("year", "=", "1860")),
        ("author=Austen, Jane", Comparison("author", "=", "Austen, Jane")),
        ('author = "Austen, Jane" ', Comparison("author", "=", "Austen, Jane")),
        ('"my column"=a<b', Comparison("my column", "=", "a<b")),
        ("my column= =1+1", Comparison("my column", "=", "=1+1")),
        ("my column=x\ny", Comparison("my column", "=", "x\ny")),
        ("my column=And Then", Comparison("my column", "=", "And Then")),
        ("my column= And Then", Comparison("my column", "=", "And Then")),
        ('title="The ""Great"""', Comparison("title", "=", 'The "Great"')),
        ('title=The "Great"', Comparison("title", "=", 'The "Great"')),
        ("title=Emma (1815)", Comparison("title", "=", "Emma (1815)")),
        ("(title=Emma (1815))", Comparison("title", "=", "Emma (1815)")),
        ("document=b (1).txt", Comparison("document", "=", "b (1).txt")),
        ("title=not me", Comparison("title", "=", "not me")),
        ("title=Pride and Prejudice", Comparison("title", "=", "Pride and Prejudice")),
        ("author=", Comparison("author", "=", "")),
        ('author=""', Comparison("author", "=", "")),
        ("author~dickens", Comparison("author", "~", "dickens")),
        ("not not not year<3", Not(number("year", "<", "3"))),
        ("not not year<3", number("year", "<", "3")),
        ("NOT(year<3)", Not(number("year", "<", "3"))),
        (
            "title=Pride and Prejudice AND year<1860",
            All((Comparison("title", "=", "Pride and Prejudice"), number("year", "<", "1860"))),
        ),
        ("author= and year<3", All((Comparison("author", "=", ""), number("year", "<", "3")))),
        (
            "year<1 or year<2 and not year<3 or (year<4 or year<5)",
            Some(
                (
                    number("year", "<", "1"),
                    All((number("year", "<", "2"), Not(number("year", "<", "3")))),
                    Some((number("year", "<", "4"), number("year", "<", "5"))),
                )
            ),
        ),
    ],
)
def test_a_condition_is_read_as_it_is_meant(text: str, expected: Any) -> None:
    assert parsed(text) == expected
    assert parsed(str(expected)) == expected


@pytest.mark.parametrize(
    ("text", "at", "told"),
    [
        ("", 0, "Expected a column, a comparison and a value, as in year<1860."),
        ("not", 3, "Expected a column"),
        ("<1860", 0, "Expected a column"),
        ("year<3 and (", 12, "Expected a column"),
        ("yeer<3", 0, "There is no column yeer. Did you mean year? Columns: document, year"),
        ("year", 4, "Expected one of < <= > >= = != ~ after year."),
        ("year and author~x", 5, "Expected one of < <= > >= = != ~ after year."),
        ("author<>x", 6, "<> is no comparison. Expected one of < <= > >= = != ~"),
        ("year!3", 4, "! is no comparison"),
        ("year<", 5, "Expected a value after <."),
        ("author~ or year<3", 8, "Expected a value after ~."),
        ("year<abc", 5, "year is a column of numbers, such as -90; abc is not a number."),
        ("year=1e3", 5, "1e3 is not a number"),
        ("year=１８６０", 5, "is not a number"),  # digits of other scripts are text
        ("year<1860 und author~A", 5, "1860 und author~A is not a number"),
        ("year<1860 and", 13, "Expected a comparison after and. If it belongs to the value, put"),
        ("author=Zola or title", 14, "Expected a comparison after or."),
        ("title=Pride and Prejudise", 15, 'Did you mean title="Pride and Prejudice"?'),
        ("date<1860", 5, "not numbers, such as 1850-03-01, so < compares text, and as text 950"),
        (
            "year<1860 and author=Dickens",
            21,
            'has author=Dickens. Did you mean author="Dickens, Charles" or author~Dickens?',
        ),
        ("author=Charles Dickens", 7, 'Did you mean author="Dickens, Charles"?'),
        ("author=dickens, charles", 7, 'Did you mean author="Dickens, Charles"'),
        ("author!=Dickens", 8, "No sentence has author=Dickens."),
        ("author~Dickns", 7, "No sentence has author~Dickns."),
        ("author=Zola", 7, 'Values: "Austen, Jane", "Dickens, Charles", 鲁迅.'),
        ("year=1850", 5, "Did you mean year=1847 or year=1860?"),
        ("year<3)", 6, "Expected and, or, or the end."),
        ('author="Austen, Jane" x', 22, "Expected and, or, or the end."),
        ('author="Austen', 7, "This quotation mark has no second one."),
        ("not (year<3 or (year>5)", 4, "This parenthesis is not closed."),
    ],
)
def test_what_cannot_be_understood_is_refused_at_its_place(text: str, at: int, told: str) -> None:
    with pytest.raises(ConditionError) as caught:
        parsed(text)
    message, shown, caret = caught.value.args
    assert told in message
    assert caught.value.at == at
    assert cell_len(shown[: 2 + at]) == caret.index("^")
    assert "".join(caught.value.marked) == text


def test_the_caret_stands_below_its_character_in_any_script() -> None:
    text = "author=鲁迅 and \x1b[2J" + "走" * 500 + "=3"
    with pytest.raises(ConditionError, match="no column") as caught:
        parsed(text)
    _, shown, caret = caught.value.args
    assert shown.startswith("  author=鲁迅 and \\x1b[2J走走")
    assert caret == " " * len("  author=鲁迅xx and ") + "^"
    assert max(map(cell_len, (shown, caret))) < 80


def test_every_kind_of_mistake_can_be_made() -> None:
    """What this file does not provoke may be a sentence that nobody can ever get."""
    told = set()
    many = ["year<1 and " * 2000 + "year<1", "(" * 60 + "year<1", "x" * 100_001]
    listed = test_what_cannot_be_understood_is_refused_at_its_place.pytestmark[0].args[1]  # type: ignore[attr-defined]
    for text in [*many, *(case[0] for case in listed)]:
        with pytest.raises(ConditionError) as caught:
            parsed(text)
        told |= {key for key, _ in caught.value.sentences}
    # Of named parts of a corpus: tests/meanings/wordlists/test_collocates.py.
    assert told | {"or", "no_order"} == SENTENCES.keys()


def test_an_error_travels_between_processes() -> None:
    with pytest.raises(ConditionError) as caught:
        parsed("year<abc")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.args, again.at, again.marked) == (
        caught.value.args,
        5,
        ("year<", "a", "bc"),
    )


def test_numbers_are_exact() -> None:
    table: dict[str, list[str | None]] = {"document": ["9007199254740992", "9007199254740993"]}
    assert rows("document=9007199254740993", table) == [1]  # equal as floats


def test_several_conditions_are_all_met_and_none_is_met_by_all() -> None:
    both = parse_where(["year<1860 or year>1900", "author~e"], COLUMNS)
    assert both == parsed("(year<1860 or year>1900) and author~e")
    assert parse_where("year<1860", COLUMNS) == parse_where(["year<1860"], COLUMNS)
    assert parse_where(both, COLUMNS) is both
    everything = parse_where((), COLUMNS)
    assert rows_meeting(everything, {"document": TextColumn.of(["a", None])}).tolist() == [1, 1]
    assert columns_of(both) == {"year", "author"}
    assert columns_of(everything) == set()
    assert joined(["a=1"]) == "a=1"
    assert parsed(joined(["year<1 or year>2", "year<5"])) == parsed("(year<1 or year>2) and year<5")


def test_settings_take_one_condition_or_a_list() -> None:
    given = {"corpus": "corpus", "where": "author=Dickens, Charles"}
    assert build(FindConfig, given).where == ("author=Dickens, Charles",)
    assert build(FindConfig, given | {"where": ["a=1", "b=2"]}).where == ("a=1", "b=2")


@pytest.mark.parametrize(
    "text",
    [
        "year<1 and " * 200_000 + "year<1",
        "(" * 1_000_000,
        "year<1 or " * 9_000 + "year<1",
        "(" * 90_000 + "year<1" + ")" * 9_000,
        "not " * 24_000,
        "year=a and " * 9_000,
        "title=" + "and " * 24_000,
        "title=x and" + " " * 90_000 + "and y",
        "title=x and " + "not " * 20_000,
        'title=x and "' + '" and "' * 12_000,
        '"' * 99_999,
        "title=" + "(" * 50_000 + ")" * 49_000,
        "x" * 99_999,
    ],
    ids=lambda text: text[:24],
)
def test_a_hostile_condition_is_refused_quickly(text: str) -> None:
    began = time.process_time()
    with pytest.raises(ConditionError) as caught:
        parsed(text)
    assert time.process_time() - began < 2
    assert len(str(caught.value)) < 2_000


@given(st.text(max_size=30) | st.text("year<>=!~\"() andortle1'", max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    with contextlib.suppress(ConditionError):
        found = parsed(text)
        assert parsed(str(found)) == found
    for choice in complete(text, COLUMNS):
        assert choice.text


def test_columns_of_a_corpus_are_typed_by_all_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "_ROW_GROUP", 2)
    years = ["1850", "900", "1860", None, "unknown", "1901"]
    documents = [("bank", {"year": year, "n": str(n)}) for n, year in enumerate(years)]
    corpus = make_corpus(tmp_path, documents, meta=["year", "n"])
    columns = CorpusColumns(corpus)
    assert list(columns) == ["document", "year", "n"]
    assert len(columns) == 3
    assert columns["year"].texts == {"1850", "900", "1860", "unknown", "1901"}
    assert columns["n"].numbers == frozenset(map(Decimal, range(6)))
    assert "x" not in columns
    with pytest.raises(KeyError):
        columns["x"]
    # All values of the first row group are numbers, and yet the column is one of text.
    with pytest.raises(ConditionError, match="such as unknown, so < compares text"):
        find_uses(corpus, "bank", where="year<1860")
    found = find_uses(corpus, "bank", where="n>=2 and not (n=3 or year~190)")
    assert found.metadata("n") == ["2", "4"]


@pytest.mark.parametrize(
    ("text", "shown", "whole"),
    [
        ("", ["document", "year", "author", "title", "date", "my column", 'say "a"'], "document"),
        ("AU", ["author"], "author"),
        ("my", ["my column"], '"my column"'),
        ("year<3 and not (au", ["author"], "year<3 and not (author"),
        ("author", ["author=", "author!=", "author~"], "author="),
        ("year", ["year<", "year<=", "year>", "year>=", "year=", "year!="], "year<"),
        ("author=", ["Austen, Jane", "Dickens, Charles", "鲁迅"], 'author="Austen, Jane"'),
        ("author=char", ["Dickens, Charles"], 'author="Dickens, Charles"'),
        ('author="dick', ["Dickens, Charles"], 'author="Dickens, Charles"'),
        ("year>=18", ["1847", "1860"], "year>=1847"),
        ("title=Pride and Pre", ["Pride and Prejudice"], 'title="Pride and Prejudice"'),
        ("year<1860 ", ["1860", "and", "or"], "year<1860"),
        ('"say ""a"""=', ["x"], '"say ""a"""=x'),
        ("nonsense", [], ""),
        ("title=zzz", [], ""),
    ],
)
def test_what_may_follow_is_offered(text: str, shown: list[str], whole: str) -> None:
    choices = complete(text, COLUMNS | {'say "a"': ColumnValues(["x"])})
    assert [choice.shown for choice in choices] == shown
    assert choices[:1] == ([Choice(shown[0], whole)] if shown else [])


def test_a_whole_condition_can_be_chosen_and_is_then_understood() -> None:
    text = ""
    for wanted in ("author", "author~", "Austen, Jane", "and", "year", "year>=", "900"):
        if wanted == "and":
            text += " "
        text = next(choice.text for choice in complete(text, COLUMNS) if choice.shown == wanted)
    assert rows(text) == [1]


def test_no_more_is_offered_than_a_screen_can_show() -> None:
    columns = {"document": ColumnValues(f"d{n}" for n in range(1000))}
    assert len(complete("document=", columns)) == 20


# One random tree, twice: as a condition of ours, and as SQL for DuckDB.


@dataclass(frozen=True)
class Both:
    """The same condition in two languages, and whether we should refuse it."""

    ours: str
    sql: str
    is_refused: bool = False


Cells = dict[str, list[str | None]]
TEXTS = ["Dickens, Charles", "dickens", "Émile", "émile zola", "走", "走 路", "a (b)", "not x",
         "Pride and Prejudice", "x or y", 'say "a"', "O'Neil", "<3", "=1", "~", "1860", "1e3",
         "and", "%", "_", "back\\slash", "", None, None]  # fmt: skip
NUMBERS = ["1860", "900", "-90", "0", "1.50", "1.5", "01860", "+7", "12345678901234", "", None]
MIXED = ["1850", "1851", "1850-03-01", "ca. 1850", "900", "", None]
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


def random_cells(choose: random.Random) -> Cells:
    size = choose.randint(1, 12)
    return {
        "document": [f"d{row}" for row in range(size)],
        "text": choose.choices(TEXTS, k=size),
        "the number": choose.choices(NUMBERS, k=size),
        "mixed": choose.choices(MIXED, k=size),
    }


def is_number(text: str) -> bool:
    with contextlib.suppress(ValueError):
        return "e" not in text and float(text) is not None
    return False


def random_leaf(choose: random.Random, cells: Cells) -> Both:
    column = choose.choice(["text", "the number", "mixed"])
    operator = choose.choice(["<", "<=", ">", ">=", "=", "!=", "~"])
    there = sorted({cell for cell in cells[column] if cell})
    is_numeric = bool(there) and all(map(is_number, there))
    pool = {"text": TEXTS, "the number": NUMBERS, "mixed": MIXED}[column]
    # Mostly what is there: what no row has is refused, and tells little.
    value = choose.choice(there) if there and choose.random() < 0.9 else choose.choice(pool) or ""
    if operator == "~" and len(value) > 1 and choose.random() < 0.7:
        begin = choose.randrange(len(value))
        value = value[begin : begin + choose.randint(1, 4)].strip()
    if not value and operator not in ("=", "!="):
        value = choose.choice([cell for cell in pool if cell])
    return Both(
        write(choose, column, operator, value),
        as_sql(column, operator, value, is_numeric=is_numeric),
        is_refused(operator, value, there, is_numeric=is_numeric),
    )


def is_refused(operator: str, value: str, there: list[str], *, is_numeric: bool) -> bool:
    if not value:
        return False
    if operator == "~":
        return not any(value.lower() in cell.lower() for cell in there)
    if is_numeric and not is_number(value):
        return True
    if operator in ("=", "!="):
        same = [Decimal(cell) == Decimal(value) if is_numeric else cell == value for cell in there]
        return not any(same)
    compare = COMPARE[operator]
    return (
        not is_numeric
        and is_number(value)
        and any(
            compare(Decimal(cell), Decimal(value)) != compare(cell, value)
            for cell in there
            if is_number(cell)
        )
    )


def write(choose: random.Random, column: str, operator: str, value: str) -> str:
    has_word = {"and", "or"} & set(value.split())  # then it must be a value that is there
    is_plain = value.replace(" ", "").replace(",", "").isalnum()
    is_plain &= not has_word or operator in ("=", "!=")
    shown = value if is_plain and choose.random() < 0.7 else '"' + value.replace('"', '""') + '"'
    name = choose.choice([column, f'"{column}"'])
    space = choose.choice(["", " ", "  "])
    return f"{name}{space}{operator}{space}{shown}"


def as_sql(column: str, operator: str, value: str, *, is_numeric: bool) -> str:
    """By the rule for missing values: each comparison is true or false, never unknown."""
    cell = f"nullif(\"{column}\", '')"
    if not value:
        return f"({cell} IS {'' if operator == '=' else 'NOT '}NULL)"
    literal = "'" + value.replace("'", "''") + "'"
    if operator == "~":
        return f"coalesce(contains(lower({cell}), lower({literal})), FALSE)"
    if is_numeric:
        cell, literal = (f"CAST({each} AS DECIMAL(30, 6))" for each in (cell, literal))
    sign = "<>" if operator == "!=" else operator
    return f"coalesce({cell} {sign} {literal}, {operator == '!='})"


def random_condition(choose: random.Random, cells: Cells, depth: int = 0) -> Both:
    kind = choose.choice(["leaf", "leaf", "not", "and", "or"]) if depth < 4 else "leaf"
    if kind == "leaf":
        return random_leaf(choose, cells)
    if kind == "not":
        part = random_condition(choose, cells, depth + 1)
        inside = choose.choice(["not ({})", "NOT({})"]).format(part.ours)
        return Both(inside, f"(NOT {part.sql})", part.is_refused)
    parts = [random_condition(choose, cells, depth + 1) for _ in range(choose.randint(2, 3))]
    word = choose.choice([f" {kind} ", f"\n{kind.upper()} "])
    return Both(
        word.join(f"({part.ours})" for part in parts),
        "(" + f" {kind} ".join(part.sql for part in parts) + ")",
        any(part.is_refused for part in parts),
    )


def without_parentheses(choose: random.Random, cells: Cells) -> Both:
    """Leaves between `and` and `or`: which of them binds closer is the languages' own."""
    parts = [random_leaf(choose, cells) for _ in range(choose.randint(2, 5))]
    words = [choose.choice(["and", "or", "and not", "or not"]) for _ in parts[1:]]
    ours, sql = parts[0].ours, parts[0].sql
    for word, part in zip(words, parts[1:], strict=True):
        ours, sql = f"{ours} {word} {part.ours}", f"{sql} {word} {part.sql}"
    return Both(ours, sql, any(part.is_refused for part in parts))


def by_duckdb(connection: duckdb.DuckDBPyConnection, condition: str) -> list[int]:
    found = connection.execute(f"SELECT row FROM cells WHERE {condition} ORDER BY row").fetchall()
    return [row for (row,) in found]


def agree(seed: int, count: int) -> tuple[int, int]:
    """How many of random conditions were answered, as by DuckDB; and of the first 200, how many
    differ from SQL with `or` for `and`. Those that were to be refused were."""
    choose = random.Random(seed)
    answered = told_apart = 0
    connection = duckdb.connect(config={"threads": 1})
    cells: Cells = {}
    for number in range(count):
        if number % 10 == 0:
            cells = random_cells(choose)
            table = {"row": range(len(cells["document"])), **cells}
            connection.register(
                "cells", pa.table({name: pa.array(values) for name, values in table.items()})
            )
        make = choose.choice([random_condition, without_parentheses])
        both = make(choose, cells)
        if both.is_refused:
            with pytest.raises(ConditionError):
                rows(both.ours, cells)
            continue
        answered += 1
        expected = by_duckdb(connection, both.sql)
        assert rows(both.ours, cells) == expected, both
        if number < 200:
            told_apart += by_duckdb(connection, both.sql.replace(" and ", " or ")) != expected
    return answered, told_apart


def test_conditions_choose_what_duckdb_chooses() -> None:
    answered, told_apart = agree(seed=1, count=720)
    assert answered >= 500
    assert told_apart > 30  # the control: a wrong `and` would have been seen so often


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_twenty_thousand_conditions_choose_what_duckdb_chooses() -> None:
    assert agree(seed=2, count=28_000)[0] >= 20_000


def test_a_value_is_quoted_where_it_must_be() -> None:
    assert [quoted(text) for text in ("1860", "a b", "and", 'x"y', "", "走", "-9.5")] == [
        "1860", '"a b"', '"and"', '"x""y"', "", "走", "-9.5",
    ]  # fmt: skip


@pytest.mark.parametrize("page", ["docs/reference/conditions.md", "docs/zh/conditions.md"])
def test_the_conditions_in_the_documents_are_understood(page: str) -> None:
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    cells = {
        "year": ["1850", "1300"],
        "author": ["Dickens, Charles", "Austen", "鲁迅"],
        "genre": ["letter", "diary", "小说", "戏曲"],
        "title": ["Pride and Prejudice", "Emma (1815)", "红楼梦"],
        "date": ["1859-12-31"],
    }
    columns = {name: ColumnValues(values) for name, values in cells.items()}
    names = "|".join(cells)
    inline = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    shown = [each for each in inline if re.match(rf"[(not ]*({names})[<>=!~]", each)]
    assert len(shown) > 15
    refused = []
    for each in shown:
        try:
            parse_condition(each, columns)
        except ConditionError:
            refused.append(each)
    assert refused == ["year<abc"]
