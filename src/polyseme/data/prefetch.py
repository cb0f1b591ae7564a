"""A thread that prepares what comes next while the present is worked on."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from queue import Empty, Queue
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class _Ended:
    error: BaseException | None


def prefetch(stream: Iterator[T], depth: int = 4) -> Iterator[T]:
    """The same items, up to `depth` of them made beforehand. An error comes where it arose.

    Close the iterator, or let go of it, and the thread ends and closes the stream.
    """
    ready: Queue[T | _Ended] = Queue(depth)
    is_over = threading.Event()
    worker = threading.Thread(
        target=_fill, args=(stream, ready, is_over), name="prefetch", daemon=True
    )
    worker.start()
    try:
        while not isinstance(item := ready.get(), _Ended):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        is_over.set()
        # The worker may be waiting for room. Once there is, it puts one item at most and ends.
        _empty(ready)
        worker.join()


def _fill(stream: Iterator[T], ready: "Queue[T | _Ended]", is_over: threading.Event) -> None:
    error: BaseException | None = None
    try:
        for item in stream:
            ready.put(item)
            if is_over.is_set():
                break
    except BaseException as caught:  # noqa: BLE001  # raised again where the items are taken
        error = caught
    finally:
        close = getattr(stream, "close", None)
        if close is not None:
            close()
    if not is_over.is_set():
        ready.put(_Ended(error))


def _empty(ready: "Queue[T]") -> None:
    try:
        while True:
            ready.get_nowait()
    except Empty:
        pass
