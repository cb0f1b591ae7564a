"""word2vec's objectives: a word from its neighbours (CBOW), or its neighbours from a word.

Mikolov et al. (2013), with the sampled softmax of the other objectives in place of negative
sampling. The encoder has no context, so the word's own vector is all there is to train.
"""

from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from polyseme.batches.batch import Batch
from polyseme.batches.lexicon import Lexicon
from polyseme.config import Settings
from polyseme.encoders.directions import Direction
from polyseme.encoders.encoded import Encoded
from polyseme.objectives.guess import Guess
from polyseme.objectives.places import answers_of, chosen, real_words
from polyseme.objectives.question import Asked, Question
from polyseme.objectives.softmaxes import SampledSoftmaxConfig, SoftmaxConfig, build_softmax


class NeighboursConfig(Settings):
    """A word and the words around it."""

    needs: ClassVar[Direction] = "forward"
    because: ClassVar[str] = "a word's one vector has no second half"

    kind: Literal["neighbours"] = "neighbours"
    predicts: Literal["word", "neighbours"] = "word"
    """The word from its neighbours (CBOW), or the neighbours from the word (skip-gram)."""
    reach: int = Field(5, ge=1, le=1_000)
    """How many words to either side are neighbours."""
    softmax: SoftmaxConfig = SampledSoftmaxConfig()
    """How words are predicted."""


class Neighbours(nn.Module):
    """Static vectors from what stands near what."""

    pairs = False

    def __init__(self, config: NeighboursConfig, *, vocabulary: int, width: int) -> None:
        super().__init__()
        self.config = config
        self.softmax = build_softmax(config.softmax, vocabulary=vocabulary, width=width)

    def ask(self, batch: Batch, lexicon: Lexicon, random: np.random.Generator) -> Question:  # noqa: ARG002
        """Every word once; or, for every word, one of its neighbours at random."""
        ids = answers_of(batch)
        rows, columns = real_words(batch)
        asked = chosen(rows, columns, torch.arange(len(rows)), ids)
        if self.config.predicts == "neighbours":
            # Nearer neighbours more often, as word2vec's shrinking window has it.
            reach = random.integers(1, self.config.reach + 1, len(rows))
            step = random.integers(1, reach + 1) * random.choice([-1, 1], len(rows))
            to = columns + torch.from_numpy(step)
            is_there = (to > 0) & (to < batch.lengths[rows] - 1)
            rows, columns, to = rows[is_there], columns[is_there], to[is_there]
            asked = Asked(rows, columns, ids[rows, to])
        return Question(batch, {"neighbours": asked}, self.softmax.draw(random))

    def guess(self, encoded: Encoded, question: Question) -> dict[str, Guess]:
        """From the neighbours' mean, or from the word's own vector."""
        vectors, asked = encoded.top, question.asked["neighbours"]
        if self.config.predicts == "word":
            vectors = _around(vectors * encoded.mask[..., None], encoded.mask, self.config.reach)
        return {"neighbours": Guess(self.softmax, vectors[asked.rows, asked.columns])}


def _around(vectors: Tensor, mask: Tensor, reach: int) -> Tensor:
    """(B, T, D) the mean of each word's neighbours, marks among them, the word itself not."""
    total, number = torch.zeros_like(vectors), torch.zeros_like(vectors[..., :1])
    there = mask[..., None].to(vectors.dtype)
    for step in range(1, min(reach, vectors.shape[1] - 1) + 1):
        total[:, step:] += vectors[:, :-step]
        total[:, :-step] += vectors[:, step:]
        number[:, step:] += there[:, :-step]
        number[:, :-step] += there[:, step:]
    return total / number.clamp(min=1)
