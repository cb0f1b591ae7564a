"""What convolutions over characters find in words, when nothing is learnt: the largest values.

    in   letters (U, C, E)   the vectors of each word's characters
    out  peaks   (U, F)      of every filter of every width, the largest of its values in the word

Filters of all widths are one multiplication: the narrower are filled up with zeros, which costs a
seventh more and saves taking the words apart again for each width.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

_ROWS = 128  # that one multiplication has, about


def spelt_to(characters: Tensor) -> int:
    """The place from which on each of these words (U, C) has nothing but its last character."""
    is_other = (characters != characters[:, -1:]).any(dim=0)
    return int(is_other.nonzero().max()) + 1 if is_other.any() else 0


def find_peaks(
    letters: Tensor, filters: Sequence[nn.Conv1d], *, spelt: int, dtype: torch.dtype
) -> Tensor:
    """From place `spelt` on, every word has nothing but its last character.

    Among as many words of the same width, a word's bits depend on that word alone.
    """
    words, places, _ = letters.shape
    widths = [each.kernel_size[0] for each in filters]
    widest = max(widths)
    weight = torch.cat([_flat(each, widest) for each in filters], dim=1).to(dtype)
    peaks = letters.new_full((words, weight.shape[1]), -torch.inf, dtype=dtype)
    at_once = max(1, _ROWS // max(1, words))
    padded = functional.pad(letters, (0, 0, 0, widest + at_once)).to(dtype)
    end = min(places - min(widths), spelt) + 1  # all windows after `spelt` are alike
    for begin in range(0, end, at_once):
        # Always as many rows, or bits would change with the longest word.
        here = range(begin, begin + at_once)
        windows = torch.cat([padded[:, at : at + widest].reshape(words, -1) for at in here])
        found = (windows @ weight).view(at_once, words, -1)
        for at in range(begin, min(begin + at_once, end)):
            _raise(peaks, found[at - begin], filters, places - at)
    return peaks + torch.cat([_bias(each) for each in filters])


def _raise(peaks: Tensor, found: Tensor, filters: Sequence[nn.Conv1d], left: int) -> None:
    """To what was found, where it is more. A filter wider than what is `left` has found nothing."""
    begin = 0
    if all(each.kernel_size[0] <= left for each in filters):
        torch.maximum(peaks, found, out=peaks)
        return
    for each in filters:
        part = slice(begin, begin + each.out_channels)
        if each.kernel_size[0] <= left:
            peaks[:, part] = torch.maximum(peaks[:, part], found[:, part])
        begin = part.stop


def _flat(filters: nn.Conv1d, widest: int) -> Tensor:
    """(widest * E, F)"""
    weight = filters.weight.permute(2, 1, 0).flatten(0, 1)
    return functional.pad(weight, (0, 0, 0, widest * filters.in_channels - len(weight)))


def _bias(filters: nn.Conv1d) -> Tensor:
    assert filters.bias is not None
    return filters.bias
