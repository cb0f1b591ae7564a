"""Convolutions over characters, max-pooled over each word, when no gradient is needed.

    in   char_vectors  (U, C, E)   the vectors of each word's characters
    out  maxima        (U, F)      of every filter of every width, the largest of its values

Filters of all widths are one multiplication: the narrower are filled up with zeros, which costs a
seventh more and saves cutting the words into windows again for each width.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

_ROWS = 128  # that one multiplication has, about


def padding_start(char_ids: Tensor) -> int:
    """The position from which on each of these words (U, C) has nothing but its last character."""
    is_other = (char_ids != char_ids[:, -1:]).any(dim=0)
    return int(is_other.nonzero().max()) + 1 if is_other.any() else 0


def max_pool(
    char_vectors: Tensor, filters: Sequence[nn.Conv1d], *, padded_from: int, dtype: torch.dtype
) -> Tensor:
    """From position `padded_from` on, every word has nothing but its last character.

    Among as many words with as many columns, a word's bits depend on that word alone.
    """
    words, positions, _ = char_vectors.shape
    widths = [each.kernel_size[0] for each in filters]
    widest = max(widths)
    weight = torch.cat([_flat(each, widest) for each in filters], dim=1).to(dtype)
    maxima = char_vectors.new_full((words, weight.shape[1]), -torch.inf, dtype=dtype)
    at_once = max(1, _ROWS // max(1, words))
    padded = functional.pad(char_vectors, (0, 0, 0, widest + at_once)).to(dtype)
    end = min(positions - min(widths), padded_from) + 1  # all windows from there on are alike
    for begin in range(0, end, at_once):
        # Always as many rows, or bits would change with the longest word.
        here = range(begin, begin + at_once)
        windows = torch.cat([padded[:, at : at + widest].reshape(words, -1) for at in here])
        found = (windows @ weight).view(at_once, words, -1)
        for at in range(begin, min(begin + at_once, end)):
            _raise(maxima, found[at - begin], filters, positions - at)
    return maxima + torch.cat([_bias(each) for each in filters])


def _raise(maxima: Tensor, found: Tensor, filters: Sequence[nn.Conv1d], left: int) -> None:
    """To what was found, where it is more. A filter wider than what is `left` has found nothing."""
    begin = 0
    if all(each.kernel_size[0] <= left for each in filters):
        torch.maximum(maxima, found, out=maxima)
        return
    for each in filters:
        part = slice(begin, begin + each.out_channels)
        if each.kernel_size[0] <= left:
            maxima[:, part] = torch.maximum(maxima[:, part], found[:, part])
        begin = part.stop


def _flat(filters: nn.Conv1d, widest: int) -> Tensor:
    """(widest * E, F)"""
    weight = filters.weight.permute(2, 1, 0).flatten(0, 1)
    return functional.pad(weight, (0, 0, 0, widest * filters.in_channels - len(weight)))


def _bias(filters: nn.Conv1d) -> Tensor:
    assert filters.bias is not None
    return filters.bias
