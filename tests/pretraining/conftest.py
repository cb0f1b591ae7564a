"""One corpus for all tests of the room: preparing it costs more than they do."""

from pathlib import Path

import pytest
import torch
from encoders.kernel import compiler, kernels, library

from polyseme.text.corpus import Corpus
from pretraining.making import rule_corpus

__all__ = ["compiler", "kernels", "library"]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return rule_corpus(Path(tmp_path_factory.mktemp("rule")))


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)
