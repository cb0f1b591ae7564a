"""One thread for models this small, and model folders made once."""

from pathlib import Path

import pytest
from embedding.hf_making import make_folder
from one_thread import one_thread

from tasks.making import save_model

__all__ = ["one_thread"]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of each kind of model."""
    folder = tmp_path_factory.mktemp("models")
    names = ("elmo", "gpt", "bert", "word2vec")
    made = {name: save_model(name, folder / name) for name in names}
    return {**made, "hf": Path(f"hf:{make_folder('bert', folder / 'hf')}")}
