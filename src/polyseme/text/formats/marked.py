"""What formats with words already marked share: from words to a sentence with offsets."""

from collections.abc import Callable, Sequence
from itertools import accumulate

from polyseme.text.records import Record


def sentence(
    words: Sequence[str],
    glued: Sequence[bool],
    *,
    document: str,
    place: int,
    meta: tuple[str | None, ...],
    opened: int,
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
    return Record(document, text, place, meta, opened=opened, words=tuple(words), starts=starts)


def remake(record: Record, change: Callable[[str], str]) -> Record:
    """The same sentence with every word changed. One that comes out empty is left out."""
    assert record.words is not None
    assert record.starts is not None
    ends = [start + len(word) for start, word in zip(record.starts, record.words, strict=True)]
    glued = [start == end for start, end in zip(record.starts, [0, *ends], strict=False)]
    changed = [change(word).strip() for word in record.words]
    kept = [i for i, word in enumerate(changed) if word]
    return sentence(
        [changed[i] for i in kept],
        [glued[i] for i in kept],
        document=record.document,
        place=record.place,
        meta=record.meta,
        opened=record.opened,
    )
