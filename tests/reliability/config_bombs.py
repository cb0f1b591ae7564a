"""Settings in which some numbers were replaced by any others, and some lists made long."""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st
from laws.cases import make

POSSIBLE = [1, 2, 4, 8, 16, 64, 200, 256, 1_000, 4_096, 65_536]
SIZES = st.sampled_from([*POSSIBLE, 0, -1, 10**6, 1 << 31, 1 << 63, 10**30])
BOMBS = [make("lstm", "separate", "bidirectional", "word+characters", "full"),
         make("learned", "joint", "masked", "unicode", "full"),
         make("lstm", "joint", "masked", "word+characters", "sampled")]  # fmt: skip


def numbers_in(values: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where settings have a whole number, or a list that can be made long."""
    items = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in items:
        if isinstance(value, dict | list):
            yield from numbers_in(value, (*path, key))
        if isinstance(value, list) or (isinstance(value, int) and not isinstance(value, bool)):
            yield (*path, key)


def put(values: Any, path: tuple[Any, ...], size: int) -> None:
    for key in path[:-1]:
        values = values[key]
    if isinstance(values[path[-1]], list):
        size = min(max(size, 0), 20_000)
        values[path[-1]] = (values[path[-1]] * (size + 1))[: max(size, 1)]
    else:
        values[path[-1]] = size


@st.composite
def bombs(draw: st.DrawFn) -> tuple[int, dict[str, Any]]:
    which = draw(st.integers(0, len(BOMBS) - 1))
    values = json.loads(BOMBS[which].config.model_dump_json(exclude_none=True))
    places = sorted(numbers_in(values), key=lambda path: (-len(path), str(path)))
    for path in draw(st.lists(st.sampled_from(places), min_size=1, max_size=4, unique=True)):
        try:
            put(values, path, draw(SIZES))
        except (TypeError, KeyError, IndexError):
            continue  # what held it is gone
    return which, values
