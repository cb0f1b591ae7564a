"""What a test needs of the machine: without it a test skips on someone's desk, and fails in CI.

A proof that is skipped proves nothing, and nobody reads the list of skipped tests. CI says by the
variable `CI` that everything should be there (`.ci/run` installs it), so there a gap is a failure.
"""

import importlib
import os
import sys
from typing import Any

import pytest


def need(is_there: bool, what: str, *, only_on: str = "") -> None:
    """Go on if it is there. `only_on` names the one system (`sys.platform`) that can have it."""
    if only_on and sys.platform != only_on:
        pytest.skip(f"{what}: only on {only_on}")
    if is_there:
        return
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"CI has to have this, or the test proves nothing: {what}", pytrace=False)
    pytest.skip(f"not here: {what}")


def leave_out_if(is_asked: bool, option: str) -> None:
    """Leave a test out because whoever started the tests asked for that, with this option."""
    if is_asked:
        pytest.skip(f"as asked by {option}")


def need_package(name: str) -> Any:
    """The module, or `need` of it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        need(False, f"the package {name} ({error})")


def needs(is_there: bool, what: str, *, only_on: str = "") -> pytest.MarkDecorator:
    """The same as a mark for a test or, as `pytestmark`, for a file; see `conftest.py`."""
    return pytest.mark.needs(is_there, what, only_on=only_on)
