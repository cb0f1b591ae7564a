"""A listener that remembers what it was told."""

from polyseme.progress import Silence


class Heard(Silence):
    """Silent, but for `said`: every message in order."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)
