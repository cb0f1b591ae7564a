"""Vectors as the old programs gave them: each row of a batch goes on where the row before ended.

    in   sentences as lists of words, one for each row, and the state the last batch left
    out  (L, T, D) for each sentence, and the state this batch leaves

bilm-tf, AllenNLP and ELMoForManyLangs kept that state in the model, so that their vectors depend on
all that was read before. Here it is a value: pass it on to get their numbers, drop it to be free of
it. Whoever does not have to repeat old results should take the embedder, which starts from zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional

from polyseme.data.batch import Batch
from polyseme.embedding.word_embedder import Vectors
from polyseme.encoders.cell import State
from polyseme.encoders.lstm import Lstm
from polyseme.errors import ModelError
from polyseme.model import Model


@dataclass(frozen=True, eq=False)
class RecurrentState:
    """What each row passes on to the next batch: for each layer, hidden (S, R, P), cell (S, R, H).

    R is the number of rows of the largest batch so far. Never changed once made.
    """

    layers: tuple[State, ...]

    @property
    def num_rows(self) -> int:
        """Rows that have a state; any further row starts from zero."""
        return self.layers[0].hidden.shape[1]


def embed_stateful(
    model: Model, sentences: Sequence[Sequence[str]], state: RecurrentState | None = None
) -> tuple[list[Vectors], RecurrentState]:
    """Every layer of each sentence (L, T, D), and the state for the next batch.

    Row k starts where row k of the batches before ended. Rows that this batch is too small to have
    keep their state. All is computed at once: give as many sentences as the old batches had.
    """
    context = _lstm_of(model)
    rows = max(len(sentences), state.num_rows if state else 0)
    states = [State(each.hidden.clone(), each.cell.clone()) for each in _grow(context, state, rows)]
    found: dict[int, Vectors] = {}
    if sentences:
        batch = model.vocabulary.batch(sentences).to(_device(context))
        with torch.inference_mode():
            found = _run(model, context, batch, states)
    return [found[row] for row in range(len(sentences))], RecurrentState(tuple(states))


def _run(model: Model, context: Lstm, batch: Batch, states: list[State]) -> dict[int, Vectors]:
    """The vectors of each row; moves `states` on, in place."""
    distinct = model.network.encoder.inputs(batch.ids, batch.char_ids)
    found: dict[int, Vectors] = {}
    for length in sorted(set(batch.lengths.tolist())):
        # Only rows of one length together: no step then reads padding, which would enter a state.
        rows = (batch.lengths == length).nonzero().squeeze(1)
        words = functional.embedding(batch.words[rows, :length], distinct)  # (B, T, D)
        before = [State(each.hidden[:, rows], each.cell[:, rows]) for each in states]
        above, after = context.run(words, batch.lengths[rows], before)
        for here, there in zip(states, after, strict=True):
            here.hidden[:, rows], here.cell[:, rows] = there.hidden, there.cell
        # Layer 0 is as wide as the others: both halves begin with the same word.
        layer_0 = words.repeat(1, 1, above[0].shape[-1] // words.shape[-1])
        layers = torch.stack([layer_0, *above], dim=1)[:, :, 1:-1]  # (B, L, T, D), no <S>, </S>
        found |= dict(zip(rows.tolist(), layers.float().cpu().numpy(), strict=True))
    return found


def _lstm_of(model: Model) -> Lstm:
    context, direction = model.network.encoder.contextualizer, model.config.encoder.direction
    kind = model.config.encoder.contextualizer.kind
    if not isinstance(context, Lstm) or direction == "joint":
        raise ModelError(
            "Only LSTMs with direction 'separate' or 'forward' can be stateful; this model's "
            f"contextualizer is '{kind}', its direction '{direction}'. Use the embedder."
        )
    if model.network.training:
        raise ModelError("This model is in training. Call model.network.eval() first.")
    return context


def _device(context: Lstm) -> torch.device:
    return next(context.parameters()).device


def _grow(context: Lstm, state: RecurrentState | None, rows: int) -> list[State]:
    """The state with this many rows, new ones of zeros."""
    config, stacks = context.config, 1 if context.direction == "forward" else 2
    shapes = [(stacks, config.proj_size), (stacks, config.hidden_size or config.proj_size)]
    if state is None:
        none = [torch.zeros(s, 0, width, device=_device(context)) for s, width in shapes]
        state = RecurrentState((State(*none),) * config.num_layers)
    found = [[(each.shape[0], each.shape[2]) for each in layer] for layer in state.layers]
    if found != [shapes] * config.num_layers:
        raise ModelError("This state is another model's. Start with none.")
    more = rows - state.num_rows
    return [
        State(*(functional.pad(each, (0, 0, 0, more)) for each in layer)) for layer in state.layers
    ]
