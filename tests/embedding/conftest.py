"""Models this small are slowed down, not sped up, by a second thread; and an embedder for all."""

import pytest
from encoders.kernel import compiler, kernels, library
from one_thread import one_thread
from pretraining.making import rule_text

from embedding.making import reading
from polyseme.embedding.embedder import Embedder

__all__ = ["compiler", "kernels", "library", "one_thread"]


@pytest.fixture(scope="session")
def english() -> Embedder:
    """Reads raw English text."""
    return reading(rule_text(), language="en")
