"""A private Ray cluster answers this machine only, and there only who has its token."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from executors.addresses import addresses_of_this_machine, is_loopback
from required import needs

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
TESTS = Path(__file__).parents[1]
TOKEN = "0123456789abcdef" * 4
CLOSED = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
CALLER = """
import sys, os
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
os.environ["RAY_NUM_REDIS_GET_RETRIES"] = "2"
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
import ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
print("let in:", ray.get(ray.remote(lambda: 1).remote()))
"""


@contextlib.contextmanager
def private_cluster(manner: str, home: Path) -> Iterator[dict[str, Any]]:
    """Its address and what it listens on. In this home lies no token of an earlier cluster."""
    with subprocess.Popen(
        [sys.executable, "-m", "reliability.private_cluster", manner],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=TESTS,
        env={**os.environ, **CLOSED, "HOME": str(home)},
    ) as process:
        assert process.stdout
        yield json.loads(process.stdout.readline())
        process.communicate("", timeout=60)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with private_cluster("closed", tmp_path_factory.mktemp("home")) as state:
        yield state


def call(
    cluster: dict[str, Any], home: Path, **settings: str
) -> "subprocess.CompletedProcess[str]":
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return subprocess.run(
        [sys.executable, "-c", CALLER, cluster["address"]],
        env={**inherited, "HOME": str(home), **settings},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def open_to_others(cluster: dict[str, Any]) -> list[Any]:
    return [entry for entry in cluster["listening"] if not is_loopback(entry[1])]


needs_network = needs(bool(addresses_of_this_machine()), "an address besides loopback")


def test_nothing_listens_beyond_this_machine(cluster: dict[str, Any]) -> None:
    assert open_to_others(cluster) == []
    assert len(cluster["listening"]) >= 5, "the list cannot be whole"


@needs_network
def test_the_check_sees_a_cluster_that_was_left_open(tmp_path: Path) -> None:
    with private_cluster("open", tmp_path) as cluster:
        assert open_to_others(cluster) != []


@needs_network
def test_no_other_address_of_this_machine_answers(cluster: dict[str, Any]) -> None:
    for address in addresses_of_this_machine():
        for _, _, port in cluster["listening"]:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((address, port), timeout=5)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_its_sockets_and_logs_are_out_of_reach_of_other_users(cluster: dict[str, Any]) -> None:
    assert Path(cluster["folder"]).parent.stat().st_mode & 0o077 == 0


def test_it_leaves_nothing_behind(tmp_path: Path) -> None:
    with private_cluster("closed", tmp_path) as cluster:
        assert Path(cluster["folder"]).exists()
    assert not Path(cluster["folder"]).parent.exists()


def test_who_has_the_token_is_let_in(cluster: dict[str, Any], tmp_path: Path) -> None:
    done = call(cluster, tmp_path, **CLOSED)
    assert done.stdout == "let in: 1\n", done.stderr


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "f" * 64}, id="wrong token"),
        pytest.param({"RAY_AUTH_MODE": "token"}, id="no token"),
        pytest.param({"RAY_AUTH_MODE": "disabled"}, id="no wish to give one"),
        pytest.param({}, id="no idea of one"),
    ],
)
def test_who_has_not_the_token_is_refused(
    cluster: dict[str, Any], tmp_path: Path, settings: dict[str, str]
) -> None:
    done = call(cluster, tmp_path, **settings)
    assert done.returncode != 0
    assert "let in" not in done.stdout
    assert "AuthenticationError" in done.stderr
