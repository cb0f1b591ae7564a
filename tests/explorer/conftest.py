"""Models this small are slowed down, not sped up, by a second thread."""

from one_thread import one_thread

__all__ = ["one_thread"]
