"""One thread for models this small; and the kernel for each instruction set there is."""

import pytest
from encoders.kernel import Kernels, compiler, kernels
from one_thread import one_thread

from polyseme.encoders.kernels.build import instruction_sets
from polyseme.encoders.kernels.loader import Kernel

__all__ = ["compiler", "kernels", "one_thread"]


@pytest.fixture(params=instruction_sets())
def library(request: pytest.FixtureRequest, kernels: Kernels) -> Kernel:
    """Each that this processor can run."""
    return kernels(request.param)
