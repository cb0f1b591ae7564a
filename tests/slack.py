"""How much longer than promised a test lets a thing take.

A promise in seconds is one for a machine that does nothing else. Tests run on machines that do, by
neighbours nobody sees; what they look for is work that blows up, which takes ten times as long and
more. So a test allows four times the promise, and the benchmarks hold the promise itself.
"""

FACTOR = 4.0


def allowed(seconds: float) -> float:
    """The bound a test holds a promise of so many seconds to."""
    return FACTOR * seconds
