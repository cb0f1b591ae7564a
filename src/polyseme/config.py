"""Settings: TOML files and keyword values in, frozen pydantic models out.

A setting nobody knows is refused with the nearest known name, so a typing error can never
silently train the wrong model.
"""

import difflib
import re
import types
import typing
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo

from polyseme.errors import ConfigError
from polyseme.limits import TOML_BYTES, TOML_PARTS, LimitError, check_size, parse_toml, read_text

LARGEST_NUMBER = 2**53
"""Of any setting, either way: whole numbers are exact up to it in JSON, and far from overflow."""

REMOTE_SCHEMES = ("s3", "gs", "az", "file")
"""How the address of a store begins."""
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):[/\\]+")  # two letters: not a drive of Windows


class Settings(BaseModel):
    """What all settings share: frozen, nothing unknown, a docstring under each field."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )

    @field_validator("*")
    @classmethod
    def _can_be_worked_with(cls, value: Any, info: ValidationInfo) -> Any:
        field = cls.model_fields[info.field_name or ""]
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, int | float) and abs(each) > LARGEST_NUMBER:
                raise ValueError(f"a number beyond {LARGEST_NUMBER:,} cannot be used")
            if isinstance(each, Path):
                check_path(each, may_be_remote=MayBeRemote in field.metadata)
        return value


@dataclass(frozen=True)
class Option:
    """How the command line shows a setting: `corpus: Annotated[Path, Option("--in", "CORPUS")]`."""

    name: str = ""
    """The option, if it is not called as the setting is."""
    metavar: str = ""
    """What stands for its value in the help."""
    is_repeated: bool = False
    """Whether a list is given by repeating the option: its values may have commas."""


class MayBeRemote:
    """Marks a setting that may be the address of a store: `corpus: Folder`."""


Folder = Annotated[Path, MayBeRemote]
"""A folder here, or the address of one in a store."""
OptionalFolder = Annotated[Path | None, MayBeRemote]
"""The same, or nothing."""


def check_path(path: Path | str, *, may_be_remote: bool = False) -> None:
    """Refuse a name that could not be written into a file of ours, and the address of a store
    where it cannot be used."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ValueError(f"{str(path)!a} is not UTF-8. Rename it, or choose another") from None
    check_address(path, may_be_remote=may_be_remote)


def check_address(path: Path | str, *, may_be_remote: bool = False) -> None:
    """Refuse the address of a store where it cannot be used, or one of an unknown kind: as a path
    it is a folder `s3:` here, and nobody looks there.

    `hf:` is how the name of an encoder of Hugging Face begins, with whatever path after it.
    """
    found = _ADDRESS.match(str(path))  # a Path keeps one slash of two
    if found is None or found[1] == "hf" or (may_be_remote and found[1] in REMOTE_SCHEMES):
        return
    address = f"{found[1]}://{str(path)[found.end() :]}"
    if found[1] in REMOTE_SCHEMES:
        raise ValueError(
            f"{address} is on a remote store, which cannot be used here. Copy it to a folder of "
            "this machine and name that, or name the path where the store is mounted"
        )
    known = ", ".join(f"{scheme}://" for scheme in REMOTE_SCHEMES)
    raise ValueError(
        f"{address} is on a remote store of a kind that is not known; known are {known}. Name a "
        "local folder or file, or the path where the store is mounted"
    )


AnySettings = TypeVar("AnySettings", bound=Settings)


def build(
    kind: type[AnySettings],
    values: Mapping[str, Any],
    names: Mapping[tuple[str, ...], str] | None = None,
) -> AnySettings:
    """Settings of this kind from plain values, or a ConfigError that names the setting.

    `names`: how the user knows a setting, if not by its dotted name: as an option.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problems = [_explain(kind, problem, names or {}) for problem in error.errors()]
        raise ConfigError(*problems) from error


def flat_names(
    kind: type[BaseModel], path: tuple[str, ...] = ()
) -> dict[str, tuple[tuple[str, ...], FieldInfo]]:
    """Each setting by the last part of its name, nested ones too: where it is, what it is.

    A part that is a choice, or a dict, is not looked into: it has no names of its own.
    """
    found: dict[str, tuple[tuple[str, ...], FieldInfo]] = {}
    for name, field in kind.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            found |= flat_names(annotation, (*path, name))
        else:
            found[name] = ((*path, name), field)
    return found


def build_flat(kind: type[AnySettings], given: Mapping[str, Any]) -> AnySettings:
    """Settings from keyword values, named as their options are; a dict stands for a part.

    None means: not given.
    """
    names = flat_names(kind)
    # Parts stand there empty, so that what is missing in one is named, not the part.
    values: dict[str, Any] = {path[0]: {} for path, _ in names.values() if len(path) > 1}
    for name, value in given.items():
        if name not in names and name not in kind.model_fields:
            raise ConfigError(f"{name} is not a setting. {_nearest(name, {*names, *values})}")
        path = names[name][0] if name in names else (name,)
        if isinstance(value, Mapping):
            values = merged(values, {name: value})
        elif value is not None:
            values = put(values, path, value)
    return build(kind, values, {path: name for name, (path, _) in names.items()})


def read_toml(path: Path) -> dict[str, Any]:
    """The values of a TOML file, not yet checked."""
    try:
        return parse_toml(read_text(path, TOML_BYTES))
    except FileNotFoundError as error:
        raise ConfigError(f"There is no settings file at {path}.") from error
    # A ValueError: its syntax, its bytes, its size, a number of 5,000 digits.
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error


def to_toml(**parts: Settings) -> str:
    """Resolved settings as TOML, a table for each part, as `--config` reads them.

    Settings that are None are left out: TOML has no null.
    """
    import tomli_w

    tables = {name: part.model_dump(mode="json", exclude_none=True) for name, part in parts.items()}
    text = tomli_w.dumps(tables)
    try:
        check_size("the file of settings", len(text.encode()), TOML_BYTES)
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"A setting holds {error.object[error.start]!a}, which is not a character."
        ) from error
    except LimitError as error:
        raise ConfigError(f"These settings cannot be kept: {error}. Name fewer words.") from error
    return text


def overlay(values: dict[str, Any], assignment: str) -> dict[str, Any]:
    """`values` with one `--set part.setting=value` laid over it. The value is read as TOML."""
    path, separator, text = assignment.partition("=")
    if not separator:
        raise ConfigError(f"--set {assignment!r} has no '='. Write it as part.setting=value.")
    try:
        value = parse_toml(f"value = {text}")["value"]
    except LimitError as error:
        raise ConfigError(f"--set {path.strip()[:80]} cannot be read: {error}.") from error
    except ValueError:
        value = text  # an unquoted word, as people type it in a shell
    return put(values, path.strip().split("."), value)


def put(values: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """`values` with one nested value set."""
    if len(path) > TOML_PARTS:
        raise ConfigError(f"{'.'.join(path[:4])}... is not a setting: none has so long a name.")
    head, *rest = path
    before = values.get(head, {})
    if rest and not isinstance(before, Mapping):
        raise ConfigError(f"{head} = {before!r} is one value; it has no setting {'.'.join(rest)}.")
    return {**values, head: put(before, rest, value) if rest else value}


def merged(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with `changes` laid over them, part by part.

    Another `kind` replaces a part: what belonged to the old one has no meaning in the new.
    """
    result = dict(values)
    for name, change in changes.items():
        before = result.get(name)
        if isinstance(change, Mapping) and isinstance(before, Mapping):
            is_other = "kind" in change and change["kind"] != before.get("kind")
            result[name] = dict(change) if is_other else merged(before, change)
        else:
            result[name] = change
    return result


def _explain(kind: type[Settings], problem: Any, names: Mapping[tuple[str, ...], str]) -> str:
    """One pydantic problem in our own words."""
    path = [str(step) for step in problem["loc"]]
    if path and isinstance(problem["loc"][-1], int) and tuple(path[:-1]) in names:
        path.pop()  # one of several values: an option is known by its name, and they by their text
    name = names.get(tuple(path), ".".join(path))
    if problem["type"] == "extra_forbidden":
        return f"{name} is not a setting. {_nearest(path[-1], _fields_at(kind, path[:-1]))}"
    if problem["type"] == "value_error":  # a check of our own: its text says it all
        text = str(problem["ctx"]["error"])
        return f"{name}: {text}." if name else f"{text}."
    if problem["type"] == "missing":
        return f"{name} is required and was not given."
    text = f"{name} = {problem['input']!r} does not fit: {problem['msg']}."
    return f"{text} It is a fraction: write 0.3 for 30 %." if _is_fraction(kind, path) else text


def _nearest(name: str, known: Collection[str]) -> str:
    """What may have been meant."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(sorted(known))}."


def _is_fraction(kind: type[BaseModel], path: list[str]) -> bool:
    """Whether a setting is a fraction of something, as its description says."""
    field = _fields_at(kind, path[:-1]).get(path[-1]) if path else None
    return field is not None and (field.description or "").startswith("Fraction of ")


def _fields_at(kind: type[BaseModel], path: list[str]) -> dict[str, FieldInfo]:
    """The settings known at a dotted place inside `kind`; the nearest place above, if none is."""
    for step in path:
        annotation = kind.model_fields[step].annotation if step in kind.model_fields else None
        nested = [part for part in _members(annotation) if issubclass(part, BaseModel)]
        if not nested:
            break
        kind = nested[0]
    return kind.model_fields


def _members(annotation: Any) -> list[type]:
    """The classes an annotation allows, looking through unions."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return [part for part in typing.get_args(annotation) if isinstance(part, type)]
    return [annotation] if isinstance(annotation, type) else []


def differences(before: Settings, now: Settings) -> str:
    """Which settings are not as they were, for an error that names both values."""
    old, new = before.model_dump(), now.model_dump()
    changed = [name for name in old if old[name] != new[name]]
    return "; ".join(f"{name} = {old[name]!r}, now {new[name]!r}" for name in changed)
