"""Places of a batch that something can be asked about."""

from torch import Tensor

from polyseme.batches.batch import Batch
from polyseme.batches.marks import END, START
from polyseme.objectives.question import Asked


def answers_of(batch: Batch) -> Tensor:
    """(B, T) the vocabulary id of each word."""
    return batch.ids[batch.words]


def following(batch: Batch) -> Asked:
    """At every word but the last of its row: the word after it."""
    rows, columns = batch.mask[:, 1:].nonzero(as_tuple=True)
    return Asked(rows, columns, answers_of(batch)[rows, columns + 1])


def preceding(batch: Batch) -> Asked:
    """At every word but the first of its row: the word before it."""
    rows, columns = batch.mask[:, 1:].nonzero(as_tuple=True)
    return Asked(rows, columns + 1, answers_of(batch)[rows, columns])


def real_words(batch: Batch) -> tuple[Tensor, Tensor]:
    """Rows and columns of all words that are no marks, in reading order."""
    ids = answers_of(batch)
    is_word = batch.mask & (ids != START) & (ids != END)
    rows, columns = is_word.nonzero(as_tuple=True)
    return rows, columns


def chosen(rows: Tensor, columns: Tensor, which: Tensor, ids: Tensor) -> Asked:
    """Some of these places, each asking for its own word."""
    rows, columns = rows[which], columns[which]
    return Asked(rows, columns, ids[rows, columns])
