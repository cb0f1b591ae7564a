"""`pytest --cpu`: processor seconds of each folder and of the most expensive tests, with what they
started. Unlike the clock's, they hardly change while other work has the machine.

A fixture counts for the test that asked for it first.
"""

import os
import sys
from collections import Counter
from collections.abc import Generator

import pytest

_SHOWN = 40


def _seconds() -> float:
    """Of this process and of those that it started and that ended."""
    forked = getattr(sys.modules.get("command_line"), "SECONDS_OF_FORKED", ())
    return sum(os.times()[:4]) + sum(forked)


class CpuSeconds:
    """A plugin. Where several processes share the tests, each measures its own."""

    def __init__(self) -> None:
        self._before = _seconds()
        self._of_tests: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = _seconds()
        report.cpu_seconds, self._before = now - self._before, now  # type: ignore[attr-defined]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._of_tests[report.nodeid] += report.cpu_seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        folders: Counter[str] = Counter()
        for nodeid, seconds in self._of_tests.items():
            folders["/".join(nodeid.partition("::")[0].split("/")[:2])] += seconds
        terminalreporter.section(f"{sum(folders.values()):.0f} processor seconds")
        for name, seconds in (*folders.most_common(), *self._of_tests.most_common(_SHOWN)):
            terminalreporter.write_line(f"{seconds:8.1f}  {name}")
