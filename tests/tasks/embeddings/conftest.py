"""One thread for models this small, and model folders made once."""

from pathlib import Path

import pytest
from encoders.kernel import compiler, kernels, library
from one_thread import one_thread

from tasks.embeddings.making import MODELS, save_model

__all__ = ["compiler", "kernels", "library", "one_thread"]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of each kind of model."""
    folder = tmp_path_factory.mktemp("models")
    return {name: save_model(name, folder / name.replace(" ", "-")) for name in MODELS}
