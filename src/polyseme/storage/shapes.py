"""What JSON from a file must look like before anything in it is believed."""

from functools import lru_cache
from typing import Any, NotRequired

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict


class FileInfo(TypedDict):
    """What a manifest has of a file."""

    bytes: int
    sha256: str
    rows: NotRequired[list[int]]
    """Of each row group, if it is Parquet: its footer need not be read again."""


def check_shape(value: Any, shape: Any) -> None:
    """A ValueError that names the first thing which is missing or of another type."""
    try:
        _adapter(shape).validate_python(value, strict=True)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise ValueError(f"{place or 'the whole'}: {problem['msg']}") from error


@lru_cache(maxsize=64)
def _adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)
