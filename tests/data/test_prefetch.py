"""A thread that works ahead: same items, same errors, and it ends."""

import threading
from collections.abc import Iterator
from itertools import count, islice

import pytest

from polyseme.data.prefetch import prefetch


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "batches-ahead"]


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    assert not threads()
    yield
    assert not threads()


def test_items_come_complete_and_in_order() -> None:
    assert list(prefetch(iter(range(100)), depth=3)) == list(range(100))
    assert list(prefetch(iter([]))) == []


def test_an_error_comes_after_the_items_before_it() -> None:
    def failing() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("the third")

    items = prefetch(failing())
    assert [next(items), next(items)] == [1, 2]
    with pytest.raises(ValueError, match="the third"):
        next(items)


@pytest.mark.parametrize("depth", [1, 4])
def test_closing_ends_the_thread_and_closes_the_stream(depth: int) -> None:
    closed = threading.Event()

    def endless() -> Iterator[int]:
        try:
            yield from count()
        finally:
            closed.set()

    for taken in range(6):
        closed.clear()
        items = prefetch(endless(), depth)
        assert list(islice(items, taken)) == list(range(taken))
        items.close()  # type: ignore[attr-defined]
        assert closed.is_set() == (taken > 0)  # never begun, nothing to close


def test_no_more_than_depth_items_are_made_beforehand() -> None:
    made = []
    waits = threading.Event()

    def watched() -> Iterator[int]:
        for number in range(10):
            made.append(number)
            if number == 4:
                waits.set()
            yield number

    items = prefetch(watched(), depth=3)
    assert next(items) == 0
    assert waits.wait(10)  # one taken, three ready, one in hand
    threading.Event().wait(0.05)
    assert made == [0, 1, 2, 3, 4]
    items.close()  # type: ignore[attr-defined]


def test_work_goes_on_while_the_consumer_is_busy() -> None:
    second = threading.Event()

    def stream() -> Iterator[int]:
        yield 1
        second.set()
        yield 2

    items = prefetch(stream())
    assert next(items) == 1
    assert second.wait(10)  # without asking for it
    assert list(items) == [2]
