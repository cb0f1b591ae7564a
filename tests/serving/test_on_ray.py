"""The server as an application of Ray Serve, on a private cluster of this machine."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from required import need

from serving.making import save_tiny

pytestmark = pytest.mark.cluster
SCRIPT = """
import os, sys
from pathlib import Path
# By default a proxy that did not start in five seconds is ended, and has little of a busy machine.
os.environ["RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S"] = "50"
import httpx, numpy as np
from polyseme.commands.serve import ServeConfig, on_ray
from polyseme.embedding.embedder import Embedder
from polyseme.errors import ConfigError
from polyseme.executors import cluster
from polyseme.processes import open_port

folder = Path(sys.argv[1])
key = {"authorization": "Bearer a-key-of-some-length"}
with open_port(0, "127.0.0.1") as free:
    port = free.getsockname()[1]
with cluster._connected(None, workers=2) as ray:
    from ray import serve
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    try:
        on_ray(ServeConfig(model="tiny"))
    except ConfigError as error:
        assert "api_key_file" in str(error)
    else:
        raise AssertionError("served without a key")
    config = ServeConfig(model=str(folder / "tiny"), api_key_file=folder / "keys", threads=1)
    serve.run(on_ray(config))
    ask = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)
    body = {"input": "She sat on the bank."}
    assert ask.post("/v1/embeddings", json=body).status_code == 401
    expected = Embedder.load(folder / "tiny", device="cpu").encode(body["input"])
    answer = ask.post("/v1/embeddings", json=body, headers=key)
    assert answer.status_code == 200, answer.text  # it was not ready before
    assert np.allclose(answer.json()["data"][0]["embedding"], expected, atol=1e-5)
    assert ask.get("/readyz").status_code == 200
    serve.shutdown()
print("served")
"""


def test_a_replica_on_ray_answers_as_the_library_does(tmp_path: Path) -> None:
    # Not imported here: its warnings of others' deprecations would be errors.
    need(importlib.util.find_spec("grpc_reflection") is not None, "ray[serve]")
    save_tiny(tmp_path / "tiny")
    (tmp_path / "keys").write_text("a-key-of-some-length\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.stdout.endswith("served\n"), done.stdout + done.stderr
