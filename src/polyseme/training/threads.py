"""How many processor threads the steps of a run take: all, or what is fastest at the time.

Threads meet at every multiplication, and the last one keeps all others waiting. Where another
program takes a core, two threads can be several times slower than one. So real steps are timed with
all threads, half of them and so on down to one; the fastest number is kept, and all are timed again
when steps have become slower, or now and then while not all are used. No step is wasted; but sums
are split otherwise with another number of threads, so the last bits depend on what else ran.
"""

import statistics
from collections import deque

_TRIAL_STEPS = 2  # with each number; the faster counts, as the first pays for the change
_WINDOW = 8  # steps whose median is the pace at the time
_SLOWER = 1.5  # times the pace that a number was chosen for
_HOPE_STEPS = 200  # until all threads are tried again


class ThreadChoice:
    """The number of threads for the next step: always `most`, unless it is adaptive."""

    def __init__(self, most: int, *, is_adaptive: bool) -> None:
        self.number = most
        self._candidates = _halved(most) if is_adaptive else [most]
        self._pace = dict.fromkeys(self._candidates, float("inf"))
        self._trial: list[int] = []
        self._window: deque[float] = deque(maxlen=_WINDOW)
        self._steps_kept = 0
        if len(self._candidates) > 1:
            self._begin_trial()

    def note(self, seconds: float, words: int) -> None:
        """What the step took, which was done with `number` threads."""
        if len(self._candidates) < 2:
            return
        pace = seconds / max(1, words)
        if self._trial:
            self._pace[self.number] = min(self._pace[self.number], pace)
            self._trial.pop()
            self.number = self._trial[-1] if self._trial else self._fastest()
            return
        self._window.append(pace)
        self._steps_kept += 1
        is_slower = (
            len(self._window) == _WINDOW
            and statistics.median(self._window) > _SLOWER * self._pace[self.number]
        )
        is_hopeful = self._steps_kept >= _HOPE_STEPS and self.number < self._candidates[0]
        if is_slower or is_hopeful:
            self._begin_trial()

    def _begin_trial(self) -> None:
        self._pace = dict.fromkeys(self._candidates, float("inf"))
        self._trial = [each for each in reversed(self._candidates) for _ in range(_TRIAL_STEPS)]
        self.number = self._trial[-1]
        self._window.clear()
        self._steps_kept = 0

    def _fastest(self) -> int:
        return min(self._candidates, key=self._pace.__getitem__)


def _halved(most: int) -> list[int]:
    """All, half of them, and so on down to one."""
    found = [most]
    while found[-1] > 1:
        found.append(found[-1] // 2)
    return found
