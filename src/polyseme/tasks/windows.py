"""Windows of a long text: parts of it that overlap and are read at once."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

Window: TypeAlias = tuple[int, int]
"""Words from the first up to but not including the second."""


def choose_windows(
    words: Sequence[str], question: Sequence[str], *, size: int, overlap: int, most: int
) -> list[Window]:
    """All windows of the words, in order; of more than `most`, those that share most with the
    question, a word counting the more the fewer windows it is in (tf-idf without tf)."""
    begins = range(0, max(1, len(words) - overlap), size - overlap)
    found = [(begin, min(begin + size, len(words))) for begin in begins]
    if len(found) <= most:
        return found
    asked = {word.lower() for word in question}
    shared = [asked & {word.lower() for word in words[begin:end]} for begin, end in found]
    num_with = Counter(word for each in shared for word in each)
    # Sorted, so that the sum has the same last bits whatever the order of a set.
    weights = [
        sum(math.log(1 + len(found) / num_with[word]) for word in sorted(each)) for each in shared
    ]
    best = sorted(range(len(found)), key=lambda number: (-weights[number], number))[:most]
    return [found[number] for number in sorted(best)]
