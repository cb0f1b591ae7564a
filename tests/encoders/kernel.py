"""The kernel as its source is now, for the tests that need it: fixtures to import."""

import shutil

import pytest
from required import leave_out_if, need

from polyseme.encoders import compiled
from polyseme.files import sha256_of


@pytest.fixture(scope="session")
def compiler(request: pytest.FixtureRequest) -> None:
    """For tests that compile."""
    leave_out_if(request.config.getoption("without_kernel"), "--without-kernel")
    need(any(map(shutil.which, compiled.COMPILERS)), "a C compiler")


@pytest.fixture(scope="session")
def library(compiler: None, tmp_path_factory: pytest.TempPathFactory) -> compiled.Kernel:
    """Built anew; a library that was built earlier is not trusted."""
    path = compiled.build(tmp_path_factory.mktemp("library"))
    return compiled.Kernel(path, sha256_of(path))
