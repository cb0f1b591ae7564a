"""Models this small are slowed down, not sped up, by a second thread; and an embedder for all."""

import pytest
from encoders.kernel import compiler, library
from one_thread import one_thread
from pretraining.making import rule_text

from polyseme.vectors.embedder import Embedder
from vectors.making import reading

__all__ = ["compiler", "library", "one_thread"]


@pytest.fixture(scope="session")
def english() -> Embedder:
    """Reads raw English text."""
    return reading(rule_text(), language="en")
