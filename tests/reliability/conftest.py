"""What several files of these tests need."""

from reliability.small_disk import small_disk

__all__ = ["small_disk"]
