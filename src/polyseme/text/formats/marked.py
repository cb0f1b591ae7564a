"""What formats with words already marked share: from words to a sentence with offsets."""

from collections.abc import Sequence
from itertools import accumulate

from polyseme.text.records import Record


def sentence(
    words: Sequence[str],
    glued: Sequence[bool],
    *,
    document: str,
    place: int,
    meta: tuple[str | None, ...],
    units: int,
) -> Record:
    """A record of one sentence. `glued[i]` says that no space stands before word i."""
    # The first word stands at 0; each next one after its forerunner and, unless glued, a space.
    steps = [0] + [
        len(word) + (not is_glued) for word, is_glued in zip(words, glued[1:], strict=False)
    ]
    starts = tuple(accumulate(steps[: len(words)]))
    text = "".join(
        ("" if is_glued or i == 0 else " ") + word
        for i, (word, is_glued) in enumerate(zip(words, glued, strict=True))
    )
    return Record(document, text, place, meta, units, tuple(words), starts)
