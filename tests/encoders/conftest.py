"""One thread, as models this small are slowed down by a second; and the two ways to do a step."""

import ctypes

import pytest
from one_thread import one_thread

from encoders.kernel import build_or_skip
from polyseme.encoders import compiled

__all__ = ["one_thread"]


@pytest.fixture(scope="package")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build_or_skip(tmp_path_factory.mktemp("library"))


@pytest.fixture(params=["by torch", "compiled"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = request.getfixturevalue("library") if request.param == "compiled" else None
    monkeypatch.setattr(compiled, "load", lambda: chosen)
