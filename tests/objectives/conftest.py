"""One thread for models this small."""

from one_thread import one_thread

__all__ = ["one_thread"]
