"""The kernel as its source is now, for the tests that need it: fixtures to import."""

import functools
import shutil
from collections.abc import Callable

import pytest
from required import leave_out_if, need

from polyseme.encoders.kernels import build
from polyseme.encoders.kernels.build import InstructionSet, instruction_sets
from polyseme.encoders.kernels.loader import Kernel
from polyseme.storage.files import sha256_of

Kernels = Callable[[InstructionSet], Kernel]


@pytest.fixture(scope="session")
def compiler(request: pytest.FixtureRequest) -> None:
    """For tests that compile."""
    leave_out_if(request.config.getoption("without_kernel"), "--without-kernel")
    need(any(map(shutil.which, build.COMPILERS)), "a C compiler")


@pytest.fixture(scope="session")
def kernels(
    compiler: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Kernels:
    """For each instruction set of the processor. Built again: one of an earlier run is not trusted.

    Once for all processes that share the tests: each would wait some seconds for each of them.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if hasattr(request.config, "workerinput") else base) / "libraries"
    folder.mkdir(mode=0o755, exist_ok=True)

    @functools.cache
    def built(instruction_set: InstructionSet) -> Kernel:
        path = build.library_path(instruction_set, folder)
        if not path.is_file():
            path = build.build(folder, instruction_set)
        return Kernel(path, sha256_of(path), instruction_set)

    return built


@pytest.fixture(scope="session")
def library(kernels: Kernels) -> Kernel:
    """For the best instruction set of the processor."""
    return kernels(instruction_sets()[0])
