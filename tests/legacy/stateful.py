"""Vectors as the old programs gave them: each row of a batch goes on where the row before ended.

bilm-tf, AllenNLP and ELMoForManyLangs kept that state in the model, so that their vectors depend on
all that was read before. Only published numbers need it: the embedder starts from zero.
"""

from collections.abc import Sequence

import torch

from polyseme.embedding.word_embedder import Vectors
from polyseme.encoders.cell import State
from polyseme.encoders.lstm import Lstm
from polyseme.model import Model

States = Sequence[list[State] | None]
"""Of each row, what every layer of the LSTM passes on."""


def embed_stateful(
    model: Model, sentences: Sequence[Sequence[str]], states: States | None = None
) -> tuple[list[Vectors], States]:
    """Every layer of each sentence (L, T, D), and the states for a next batch of as many."""
    lstm = model.network.encoder.contextualizer
    assert isinstance(lstm, Lstm)
    batch = model.vocabulary.batch(sentences)
    found, after = [], []
    with torch.inference_mode():
        distinct = model.network.encoder.inputs(batch.ids, batch.char_ids)
        for row, before in enumerate(states or [None] * len(sentences)):
            # One at a time: no step then reads padding, which would enter a state.
            length = batch.lengths[row : row + 1]
            words = distinct[batch.words[row, : int(length)]][None]  # (1, T, D)
            above, state = lstm.run(words, length, before)
            # Layer 0 is as wide as the others: both halves begin with the same word.
            layer_0 = words.repeat(1, 1, above[0].shape[-1] // words.shape[-1])
            found.append(torch.cat([layer_0, *above])[:, 1:-1].numpy())
            after.append(state)
    return found, after
