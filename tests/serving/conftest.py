"""A tiny model in a folder, once for all tests of serving."""

from pathlib import Path

import pytest

from serving.making import save_tiny


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("serving") / "tiny")
