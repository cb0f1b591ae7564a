"""One thread for models this small, and model folders made once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tasks.making import save_model


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of each kind of model."""
    folder = tmp_path_factory.mktemp("models")
    names = ("elmo", "gpt", "bert", "word2vec")
    return {name: save_model(name, folder / name) for name in names}
