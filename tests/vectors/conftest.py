"""Models this small are slowed down, not sped up, by a second thread; and an embedder for all."""

from collections.abc import Iterator

import pytest
import torch
from pretraining.making import rule_text

from polyseme.vectors.embedder import Embedder
from vectors.making import reading


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def english() -> Embedder:
    """Reads raw English text."""
    return reading(rule_text(), language="en")
