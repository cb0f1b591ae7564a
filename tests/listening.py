"""A listener that remembers what it was told."""

from polyseme.progress import NullProgress


class Heard(NullProgress):
    """Silent, but for `said`: every message in order."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def log(self, message: str) -> None:
        self.said.append(message)
