"""Every number that can be set, set to every odd value: taken sanely, or refused in words."""

import importlib
import math
import pkgutil
from collections.abc import Iterator
from typing import Any, NamedTuple, get_args

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

import polyseme
from polyseme.config import LARGEST_NUMBER, Settings, build, overlay
from polyseme.errors import ConfigError

ODD = [
    "inf",
    "-inf",
    "nan",
    "-0",
    "-0.0",
    "-1",
    "0",
    "1e308",
    "-1e308",
    "5e-324",
    "9007199254740993",
    "9223372036854775808",
    "-9223372036854775809",
    "1" + "0" * 400,
    "1" + "0" * 5000,
    "0x7fffffffffffffff",
    "1.5",
    "true",
    '"3"',
    "[1, 2]",
    "{ a = 1 }",
    "1979-05-27",
    "three",
    "",
    "[" * 3000,
]


class Number(NamedTuple):
    kind: type[Settings]
    name: str
    field: FieldInfo


def numbers() -> Iterator[Number]:
    for module in pkgutil.walk_packages(polyseme.__path__, "polyseme."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for kind in sorted(_below(Settings), key=lambda kind: (kind.__module__, kind.__qualname__)):
        for name, field in kind.model_fields.items():
            if _types_in(field.annotation) & {int, float}:
                yield Number(kind, name, field)


def _below(kind: type[Settings]) -> set[type[Settings]]:
    own = {each for each in kind.__subclasses__() if each.__module__.startswith("polyseme.")}
    return own.union(*map(_below, own))


def _types_in(annotation: Any) -> set[Any]:
    return {annotation}.union(*map(_types_in, get_args(annotation)))


NUMBERS = list(numbers())


def test_the_numbers_of_all_rooms_are_found() -> None:
    packages = {number.kind.__module__.split(".")[1] for number in NUMBERS}
    assert {"commands", "data", "encoders", "objectives", "tasks", "training"} <= packages
    assert len(NUMBERS) > 100


def is_sane(value: Any) -> bool:
    """Finite, and within what can be worked with, however deep it lies."""
    if isinstance(value, dict | BaseModel):
        return all(map(is_sane, dict(value).values()))
    if isinstance(value, list | tuple):
        return all(map(is_sane, value))
    if isinstance(value, int | float):
        return math.isfinite(value) and abs(value) <= LARGEST_NUMBER
    return True


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: f"{n.kind.__name__}.{n.name}")
def test_an_odd_value_is_taken_sanely_or_refused_in_words(number: Number) -> None:
    refused = 0
    for text in ODD:
        try:
            values = overlay({}, f"{number.name}={text}")
            made = build(number.kind, values)
        except ConfigError as error:
            refused += number.name in str(error)
        else:
            assert is_sane(made), text
    assert refused >= 10  # no number may be infinite, none, or 400 digits long


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a = " + "9" * 5000, "digits"),
        ("a = " + "[" * 3000, "TOML"),
        ("a = \x1b", "TOML"),
        ("a = inf\na = 1", "TOML"),
    ],
    ids=["5,000 digits", "nested", "control", "twice"],
)
def test_a_settings_file_that_cannot_be_read_is_told(tmp_path: Any, text: str, told: str) -> None:
    from polyseme.config import read_toml

    path = tmp_path / "my.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=told):
        read_toml(path)


@pytest.mark.parametrize(
    "assignments",
    [
        ["corpus=3", "corpus.max_words=9"],
        ["out.a.b=3", "out=1", "out.c=2"],
        [".".join("a" * 3000) + "=1"],
        ["corpus.max_words=" + "[" * 3000],
        ["=1"],
        ["."],
        ["...=1"],
    ],
    ids=lambda each: each[0][:20],
)
def test_settings_on_the_command_line_that_make_no_sense_are_told(assignments: list[str]) -> None:
    from polyseme.commands.prepare import PrepareConfig

    def make() -> None:
        values: dict[str, Any] = {"inputs": ["x"], "out": "y", "corpus": {"language": "en"}}
        for assignment in assignments:
            values = overlay(values, assignment)
        build(PrepareConfig, values)

    with pytest.raises(ConfigError):
        make()
