"""An S3 of our own on loopback, in a process of its own: moto's server, with a bucket in it."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from required import need_package

ACCESS, SECRET = "AKIAPOLYSEMETEST0000", "a-secret-that-may-stand-nowhere"
# Moto looks whether a condition holds and then puts, in many threads: two writers could both win,
# which cannot happen in S3. So one write at a time.
_SERVER = """
import logging, sys, threading
logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

app, one = DomainDispatcherApplication(create_backend_app), threading.Lock()

def serve(environ, start):
    if environ["REQUEST_METHOD"] != "PUT":
        return app(environ, start)
    with one:
        return app(environ, start)

run_simple("127.0.0.1", int(sys.argv[1]), serve, threaded=True)
"""


@dataclass(frozen=True)
class BucketServer:
    """Where it listens."""

    endpoint: str

    def new_bucket(self) -> str:
        """The address of an empty bucket."""
        name = f"b-{uuid.uuid4().hex[:12]}"
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        with urllib.request.urlopen(request, timeout=20):
            return f"s3://{name}"


@contextlib.contextmanager
def bucket_server() -> Iterator[BucketServer]:
    """The server, as long as it is needed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    try:
        endpoint = f"http://127.0.0.1:{port}"
        for _ in range(600):
            with contextlib.suppress(urllib.error.URLError, OSError):
                urllib.request.urlopen(f"{endpoint}/moto-api/", timeout=5).close()
                break
            assert process.poll() is None, "moto's server has ended"
            time.sleep(0.1)
        yield BucketServer(endpoint)
    finally:
        process.kill()
        process.wait()


def environment(endpoint: str, cache: Path) -> dict[str, str]:
    """What the tools of AWS find in the environment."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": ACCESS,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "POLYSEME_CACHE": str(cache),
    }


@pytest.fixture(scope="session")
def s3() -> Iterator[BucketServer]:
    need_package("obstore")
    need_package("moto")
    with bucket_server() as server:
        yield server


@pytest.fixture
def bucket(s3: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a new bucket, with what is needed to reach it in the environment."""
    for name, value in environment(s3.endpoint, tmp_path / "cache").items():
        monkeypatch.setenv(name, value)
    return s3.new_bucket()
