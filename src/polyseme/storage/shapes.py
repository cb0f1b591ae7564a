"""What JSON from a file must look like before anything in it is believed."""

from typing import Any

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict


class FileInfo(TypedDict):
    """What a manifest has of a file."""

    bytes: int
    sha256: str


def check_shape(value: Any, shape: Any) -> None:
    """A ValueError that names the first thing which is missing or of another type."""
    try:
        TypeAdapter(shape).validate_python(value, strict=True)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise ValueError(f"{place or 'the whole'}: {problem['msg']}") from error
