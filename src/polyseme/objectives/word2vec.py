"""word2vec's objectives: a word from its neighbours (CBOW), or its neighbours from a word
(skip-gram).

Mikolov et al. (2013), with the sampled softmax of the other objectives in place of negative
sampling. The encoder has no context, so the word's own vector is all there is to train.
"""

from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.data.batch import Batch
from polyseme.data.vocabulary import Vocabulary
from polyseme.encoders.encoded import Direction
from polyseme.objectives.prediction import (
    Encode,
    Prediction,
    Targets,
    TrainingTargets,
    all_words,
    word_ids,
)
from polyseme.objectives.softmaxes import SampledSoftmaxConfig, SoftmaxConfig, WordSoftmax

PART = "word2vec"
"""The one part of the loss."""


class Word2VecConfig(Settings):
    """A word and the words around it."""

    direction: ClassVar[Direction] = "forward"
    reason: ClassVar[str] = "a word's one vector has no second half"

    kind: Literal["word2vec"] = "word2vec"
    architecture: Literal["cbow", "skipgram"] = "cbow"
    """The word from its neighbours (CBOW), or the neighbours from the word (skip-gram)."""
    window: int = Field(5, ge=1, le=1_000)
    """How many words to either side are neighbours."""
    softmax: SoftmaxConfig = SampledSoftmaxConfig()
    """How words are predicted."""


class Word2Vec(nn.Module):
    """Static vectors from what stands near what."""

    pairs = False

    def __init__(self, config: Word2VecConfig, *, vocab_size: int, dim: int) -> None:
        super().__init__()
        self.config = config
        self.softmax = WordSoftmax(config.softmax, vocab_size=vocab_size, dim=dim)

    def make_targets(
        self,
        batch: Batch,
        vocabulary: Vocabulary,  # noqa: ARG002
        random: np.random.Generator,
    ) -> TrainingTargets:
        """Every word once; or, for every word, one of its neighbours at random."""
        part = all_words(batch)
        if self.config.architecture == "skipgram":
            part = self._neighbours(batch, part, random)
        return TrainingTargets(batch, {PART: part}, self.softmax.sample_negatives(random))

    def _neighbours(self, batch: Batch, words: Targets, random: np.random.Generator) -> Targets:
        """For every word one of its neighbours, where the sentence has a word there."""
        # Nearer neighbours more often, as word2vec's shrinking window has it.
        window = random.integers(1, self.config.window + 1, len(words.rows))
        step = random.integers(1, window + 1) * random.choice([-1, 1], len(words.rows))
        to = words.columns + torch.from_numpy(step)
        is_there = (to > 0) & (to < batch.lengths[words.rows] - 1)
        rows, columns = words.rows[is_there], words.columns[is_there]
        return Targets(rows, columns, word_ids(batch)[rows, to[is_there]])

    def predict(self, encode: Encode, targets: TrainingTargets) -> dict[str, Prediction]:
        """From the neighbours' mean, or from the word's own vector."""
        encoded = encode(targets.batch)
        vectors = encoded.top
        if self.config.architecture == "cbow":
            vectors = vectors * encoded.mask[..., None]
            vectors = _mean_in_window(vectors, encoded.mask, self.config.window)
        return {PART: Prediction.at(self.softmax, vectors, targets.parts[PART])}


def _mean_in_window(vectors: Tensor, mask: Tensor, window: int) -> Tensor:
    """(B, T, D) the mean of each word's neighbours, BOS and EOS among them, without the word."""
    total, number = torch.zeros_like(vectors), torch.zeros_like(vectors[..., :1])
    there = mask[..., None].to(vectors.dtype)
    for step in range(1, min(window, vectors.shape[1] - 1) + 1):
        total[:, step:] += vectors[:, :-step]
        total[:, :-step] += vectors[:, step:]
        number[:, step:] += there[:, :-step]
        number[:, :-step] += there[:, step:]
    return total / number.clamp(min=1)
