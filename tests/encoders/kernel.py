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
def kernels(compiler: None, tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    """For each instruction set of the processor. Built again: an earlier one is not trusted."""

    @functools.cache
    def built(instruction_set: InstructionSet) -> Kernel:
        path = build.build(tmp_path_factory.mktemp("library"), instruction_set)
        return Kernel(path, sha256_of(path), instruction_set)

    return built


@pytest.fixture(scope="session")
def library(kernels: Kernels) -> Kernel:
    """For the best instruction set of the processor."""
    return kernels(instruction_sets()[0])
