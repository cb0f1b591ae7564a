"""Models this small are slowed down, not sped up, by a second thread."""

from encoders.kernel import compiler, kernels
from one_thread import one_thread

__all__ = ["compiler", "kernels", "one_thread"]
