"""A Ray cluster of three nodes, parts of which can be killed."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reliability.killing import Driver, ray_worker_dies

TESTS = Path(__file__).parents[1]
RAY = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": "0123456789abcdef" * 4,
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # all nodes and the driver keep to loopback
    "RAY_USAGE_STATS_ENABLED": "0",
}


class RayCluster:
    """Three nodes in a process of their own, and what is to be killed of them."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._state: dict[str, Any] = self._read()

    @property
    def address(self) -> str:
        return str(self._state["address"])

    def worker_dies(self, driver: Driver) -> bool:
        return ray_worker_dies(self._state["raylets"], driver)

    def node_dies(self, _driver: Driver | None = None) -> bool:
        """One node goes, another comes."""
        self._tell("remove")
        self._tell("add")
        return True

    def add_node(self) -> None:
        """One node more."""
        self._tell("add")

    def _tell(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        self._state = self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith("{"):
                state: dict[str, Any] = json.loads(line)
                return state
        raise AssertionError("the cluster has ended")


@contextmanager
def three_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[RayCluster]:
    """The cluster, for as long as it is needed."""
    for name, value in RAY.items():
        monkeypatch.setenv(name, value)
    with subprocess.Popen(
        [sys.executable, "-m", "reliability.cluster_of_three"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=TESTS,
    ) as process:
        yield RayCluster(process)
        process.communicate("", timeout=60)
