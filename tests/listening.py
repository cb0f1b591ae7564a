"""A listener that remembers what it was told."""

from polyseme.progress import NullProgress


class Heard(NullProgress):
    """Silent, but for `said`: every message in order; and how far the present stage is."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.total = self.done = 0

    def log(self, message: str) -> None:
        self.said.append(message)

    def start(self, what: str, total: int) -> None:
        del what
        self.total, self.done = total, 0

    def update(self, done: int, note: str = "") -> None:
        del note
        self.done = done
