import re
from pathlib import Path
from typing import Any, Literal

import pytest

from polyseme.config import Settings, build, build_flat, overlay, read_toml, to_toml
from polyseme.errors import ConfigError


class Inner(Settings):
    layers: int = 2
    """How many."""


class Outer(Settings):
    encoder: Inner = Inner()
    """The part inside."""
    name: str
    """What it is called."""
    comment: str | None = None
    """Anything."""


def test_an_unknown_setting_is_refused_with_the_nearest_known_name() -> None:
    with pytest.raises(
        ConfigError, match=r"encoder\.layer is not a setting\. Did you mean 'layers'"
    ):
        build(Outer, {"name": "a", "encoder": {"layer": 3}})


def test_an_unknown_setting_without_a_near_name_lists_those_there_are() -> None:
    with pytest.raises(ConfigError, match="Known here: comment, encoder, name"):
        build(Outer, {"name": "a", "zzzzzz": 3})


def test_a_missing_setting_is_named() -> None:
    with pytest.raises(ConfigError, match="name is required"):
        build(Outer, {})


def test_a_value_that_does_not_fit_is_shown() -> None:
    with pytest.raises(ConfigError, match=r"encoder\.layers = 'many' does not fit"):
        build(Outer, {"name": "a", "encoder": {"layers": "many"}})


def test_settings_written_as_toml_and_read_back_are_the_same(tmp_path: Path) -> None:
    settings = build(Outer, {"name": "包袱", "encoder": {"layers": 4}})
    path = tmp_path / "config.toml"
    path.write_text(to_toml(model=settings), encoding="utf-8")
    assert build(Outer, read_toml(path)["model"]) == settings


def test_an_assignment_reaches_a_nested_setting_and_leaves_its_source_alone() -> None:
    values = {"name": "a", "encoder": {"layers": 2}}
    assert overlay(values, "encoder.layers=4") == {"name": "a", "encoder": {"layers": 4}}
    assert values["encoder"] == {"layers": 2}


def test_an_assignment_may_be_an_unquoted_word() -> None:
    assert overlay({}, "name=bank") == {"name": "bank"}


def test_an_assignment_without_a_value_is_refused() -> None:
    with pytest.raises(ConfigError, match="has no '='"):
        overlay({}, "name")


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Inner().layers = 3  # type: ignore[misc]


def test_a_file_that_is_not_toml_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("= 3")
    with pytest.raises(ConfigError, match=r"broken\.toml is not valid TOML"):
        read_toml(path)


def test_keyword_values_reach_nested_settings_by_their_own_names() -> None:
    expected = Outer(name="a", encoder=Inner(layers=3))
    assert build_flat(Outer, {"name": "a", "layers": 3, "comment": None}) == expected
    assert build_flat(Outer, {"name": "a", "encoder": {"layers": 3}}) == expected


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"name": "a", "layer": 3}, "layer is not a setting. Did you mean 'layers'?"),
        ({"name": "a", "encoder": {"layer": 3}}, "encoder.layer is not a setting."),
        ({"name": "a", "layers": "many"}, "layers = 'many' does not fit"),
        ({"layers": 3}, "name is required"),
        ({"name": "a", "encoder": 3}, "encoder = 3 does not fit"),
    ],
)
def test_a_wrong_keyword_value_is_named_as_it_was_given(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        build_flat(Outer, given)


def test_one_wrong_value_of_several_is_told_by_the_name_of_the_option() -> None:
    class Chosen(Settings):
        with_: tuple[Literal["none", "static"], ...]

    with pytest.raises(ConfigError, match=r"^--with = 'x' does not fit"):
        build(Chosen, {"with_": ["none", "x"]}, {("with_",): "--with"})
    with pytest.raises(ConfigError, match=r"^with_\.1 = 'x' does not fit"):
        build(Chosen, {"with_": ["none", "x"]})


class _Places(Settings):
    out: Path


@pytest.mark.parametrize(
    "given", ["s3://bucket/x", "gs://bucket/x", "file:///tmp/x", "HTTPS://host/x", "abfs:/x"]
)
def test_an_address_is_no_path(given: str) -> None:
    with pytest.raises(ConfigError, match="is on a remote store"):
        build(_Places, {"out": given})


@pytest.mark.parametrize(
    "given", ["s3/x", "/a/b:c/d", "hf:models/x", "hf:/models/x", "C:/x", "a:b/c"]
)
def test_a_path_may_hold_a_colon(given: str) -> None:
    assert build(_Places, {"out": given}).out == Path(given)
