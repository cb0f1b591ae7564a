"""One thread, as models this small are slowed down by a second; and every way to do a step."""

import pytest
from one_thread import one_thread

from encoders.kernel import Kernels, compiler, kernels
from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.build import instruction_sets
from polyseme.encoders.kernels.loader import Kernel

__all__ = ["compiler", "kernels", "one_thread"]


@pytest.fixture(params=instruction_sets())
def library(request: pytest.FixtureRequest, kernels: Kernels) -> Kernel:
    """Each that this processor can run, so that those of lesser processors are tried, too."""
    return kernels(request.param)


@pytest.fixture(params=["by torch", *instruction_sets()])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    is_torch = request.param == "by torch"
    chosen = None if is_torch else request.getfixturevalue("kernels")(request.param)
    monkeypatch.setattr(loader, "load", lambda: chosen)
