"""One thread, as models this small are slowed down by a second; and the two ways to do a step."""

import pytest
from one_thread import one_thread

from encoders.kernel import compiler, library
from polyseme.encoders import compiled

__all__ = ["compiler", "library", "one_thread"]


@pytest.fixture(params=["by torch", "compiled"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = request.getfixturevalue("library") if request.param == "compiled" else None
    monkeypatch.setattr(compiled, "load", lambda: chosen)
