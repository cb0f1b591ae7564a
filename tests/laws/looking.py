"""What a model was able to see, found out by changing words and looking at what changes.

Only indices are changed, never the distinct words of the batch: all tensors keep their shapes, so
what does not depend on a changed word keeps its very bits.
"""

from dataclasses import replace

import torch
from hypothesis import strategies as st
from torch import Tensor

from laws.cases import WORDS, Case
from polyseme.data.batch import Batch
from polyseme.encoders.encoder import Encoder

_ALL = [*WORDS, "unseen", "strange"]


@st.composite
def edits(draw: st.DrawFn) -> tuple[list[list[str]], int, int, int, int]:
    """Sentences, a row of them, the first and last word to be changed, and how."""
    words = st.lists(st.sampled_from(_ALL), min_size=1, max_size=9)
    sentences = draw(st.lists(words, min_size=1, max_size=4))
    row = draw(st.integers(0, len(sentences) - 1))
    first = draw(st.integers(0, len(sentences[row]) + 1))
    last = draw(st.integers(first, len(sentences[row]) + 1))
    return sentences, row, first, last, draw(st.integers(1, 1000))


def edited(case: Case, edit: tuple[list[list[str]], int, int, int, int]) -> tuple[Batch, Batch]:
    """The sentences as a batch, and the same with some words of one row replaced."""
    sentences, row, first, last, shift = edit
    # One row holds all words, so that every batch has the same distinct ones.
    batch = case.batch([*sentences, _ALL])
    words = batch.words.clone()
    others = len(batch.ids) - 1
    # Any other distinct word but the padding, special tokens too.
    step = 1 + shift % (others - 1)
    words[row, first : last + 1] = (words[row, first : last + 1] - 1 + step) % others + 1
    return batch, replace(batch, words=words)


@torch.no_grad()
def what_peeked(encoder: Encoder, batch: Batch, changed: Batch) -> list[str]:
    """Where a vector changed that must not: empty if all is well."""
    before, after = encoder(batch), encoder(changed)
    is_changed = batch.words != changed.words  # (B, T)
    came_before = is_changed.cumsum(1) > 0
    comes_after = is_changed.flip(1).cumsum(1).flip(1) > 0
    may = {"forward": came_before, "backward": comes_after, "both": came_before.any(1)[:, None]}
    found = []
    for layer, pair in enumerate(zip(before.hidden_states, after.hidden_states, strict=True)):
        halves = ("forward", "backward") if before.is_separate else (encoder.config.direction,)
        for number, half in enumerate(halves):
            allowed = is_changed if layer == 0 else may.get(half, may["both"])
            old, new = (vectors.chunk(len(halves), dim=-1)[number] for vectors in pair)
            moved = _moved(old, new) & batch.mask
            if bool((moved & ~allowed).any()):
                found.append(f"layer {layer}, {half}")
    return found


def _moved(old: Tensor, new: Tensor) -> Tensor:
    """(B, T) where not every bit is the same."""
    return (old != new).any(dim=-1)
