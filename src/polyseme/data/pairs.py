"""Which sentence comes second in a pair, for the objective that predicts whether it follows."""

import numpy as np

from polyseme.data.char_vocabulary import Integers
from polyseme.data.window import CorpusWindow


def choose_partners(
    window: CorpusWindow, first: Integers, random: np.random.Generator
) -> tuple[Integers, Integers]:
    """A second sentence for each first one, and 1 where it truly follows.

    Half of those with a successor in the window keep it; all others get a random sentence of
    another document (of any document, if the window holds just one).
    """
    successors = _successors(window)[first]
    keeps = (successors >= 0) & (random.random(len(first)) < 0.5)
    second = np.where(keeps, successors, _from_other_documents(window, first, random))
    return second, (second == successors).astype(np.int64)


def _successors(window: CorpusWindow) -> Integers:
    """For each sentence the one after it in its document, -1 if it is not in the window."""
    successors = np.full(len(window.rows), -1, np.int64)
    is_next = np.diff(window.rows) == 1
    is_next &= np.diff(window.documents) == 0
    successors[:-1][is_next] = np.flatnonzero(is_next) + 1
    return successors


def _from_other_documents(
    window: CorpusWindow, first: Integers, random: np.random.Generator
) -> Integers:
    """For each sentence one drawn evenly from all sentences of other documents."""
    by_document = np.argsort(window.documents, kind="stable")
    grouped = window.documents[by_document]
    mine = window.documents[first]
    begins = np.searchsorted(grouped, mine, side="left")
    sizes = np.searchsorted(grouped, mine, side="right") - begins
    sizes[sizes == len(grouped)] = 0  # no other document: draw from this one
    drawn = random.integers(0, len(grouped) - sizes)
    # Documents stand together here, so one's own is passed over by stepping across it.
    drawn += np.where(drawn >= begins, sizes, 0)
    drawn_from: Integers = by_document[drawn]
    return drawn_from
