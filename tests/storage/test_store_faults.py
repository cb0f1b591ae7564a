"""A store that fails in every way: nothing is lost, nothing is there twice, and each fault is told.

Between a run and moto's server stands a proxy that answers 500, answers late, breaks off in the
middle of a put, does a put and loses the answer, or says that the credentials have expired. The
cases are generated: one writer, two of one plan at once, or one of an older plan beside it.
"""

import hashlib
import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from bucket import bucket, s3  # noqa: F401
from executors.jobs import FileShard, capitals_job, make_inputs

from polyseme.errors import ExecutorError, StorageError
from polyseme.executors import ExecutorConfig, run_job
from polyseme.storage.files import describe_files, write_text
from polyseme.storage.folders import CONFIG, MANIFEST, ArtifactType, write_manifest
from polyseme.storage.remote_folders import local_folder, open_output
from polyseme.storage.store import open_store

FAULTS = ("500", "slow", "broken", "lost", "expired")
_EXPIRED = b"<Error><Code>ExpiredToken</Code><Message>The token has expired.</Message></Error>"
_TRIES = 60
ARTIFACT = ArtifactType(
    "vectors", 1, frozenset({CONFIG}), ("counts",), "", folders=frozenset({"upper", "odd"})
)


class FaultyProxy(ThreadingHTTPServer):
    """Passes requests on to the server, or does what a bad day does to them."""

    daemon_threads = True

    def __init__(self, behind: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = urlsplit(behind)
        self.random, self.share = random.Random(0), 0.0
        self.kinds: Sequence[str] = FAULTS
        self.done: Counter[str] = Counter()
        self.lock = threading.Lock()

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is no news."""

    def fault(self, method: str) -> str:
        with self.lock:
            kind = self.random.choice(self.kinds) if self.random.random() < self.share else ""
            if kind in ("broken", "lost") and method != "PUT":
                kind = "500"
            self.done[kind] += 1
            return kind


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultyProxy

    def handle_any(self) -> None:
        kind, size = self.server.fault(self.command), int(self.headers.get("Content-Length", 0))
        if kind == "broken":
            self.rfile.read(size // 2)
            self.connection.close()
            return
        body = self.rfile.read(size)
        if kind == "slow":
            time.sleep(0.3)
        if kind in ("500", "expired"):
            self.answer(500 if kind == "500" else 403, {}, _EXPIRED if kind == "expired" else b"")
            return
        behind = http.client.HTTPConnection(self.server.behind.netloc, timeout=60)
        behind.request(self.command, self.path, body, dict(self.headers))
        answer = behind.getresponse()
        content = answer.read()
        behind.close()
        if kind == "lost":
            self.connection.close()
            return
        kept = ("content-type", "etag", "last-modified", "content-range", "content-length")
        told = {name: value for name, value in answer.getheaders() if name.lower() in kept}
        self.answer(answer.status, told, content)

    def answer(self, status: int, told: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in told.items():
            if name.lower() != "content-length" or self.command == "HEAD":
                self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content if self.command != "HEAD" else b"")

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = handle_any  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def proxy(bucket: str, s3: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyProxy]:  # noqa: F811
    server = FaultyProxy(s3.endpoint)  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    yield server
    server.shutdown()
    server.server_close()


def make(url: str, inputs: list[FileShard], plan: str) -> dict[str, int]:
    """What a command does; the counts of its shards."""
    with open_output(Path(url)) as output:
        write_text(output.folder / CONFIG, f'plan = "{plan}"\n')
        output.keep(CONFIG)
        result = run_job(
            capitals_job(plan), inputs, output.target, executor=ExecutorConfig(workers=1)
        )
        result.files.own |= describe_files(output.folder, [CONFIG])
        write_manifest(output.folder, ARTIFACT, result.files, counts=result.counts)
        output.publish()
        return result.counts


def make_until_done(url: str, inputs: list[FileShard], plan: str) -> tuple[list[str], bool]:
    """As a user does who runs the same command again: what was told, and whether it ended well."""
    told: list[str] = []
    for _ in range(_TRIES):
        try:
            counts = make(url, inputs, plan)
        except (StorageError, ExecutorError) as error:
            told.append(str(error))
            if "Another run has finished" in told[-1]:
                return told, False
        else:
            assert counts["letters"] == sum(shard.size for shard in inputs)
            return told, True
    raise AssertionError(told[-3:])


def check(url: str, plans: dict[str, list[FileShard]]) -> None:
    """The folder is that of one plan, whole; each shard of it was committed once."""
    store = open_store(url)
    folder = local_folder(url)  # every file held against its hash
    manifest = json.loads((folder / MANIFEST).read_text())
    [plan] = [name for name in plans if f'"{name}"' in (folder / CONFIG).read_text()]
    inputs = plans[plan]
    names = {f"upper/{shard.name}.txt" for shard in inputs} | {CONFIG}
    assert set(manifest["files"]) == names
    for shard in inputs:
        upper = (folder / "upper" / f"{shard.name}.txt").read_bytes()
        assert upper == shard.path.read_bytes().upper()
    assert manifest["counts"]["letters"] == sum(shard.size for shard in inputs)
    entries = [entry.name for entry in store.list()]
    for shard in inputs:
        key = hashlib.sha256(f"{plan}\n{shard.digest()}".encode()).hexdigest()
        records = [name for name in entries if name.startswith(f"receipts/{shard.name}-")]
        assert sum(key[:16] in name for name in records) == 1
        assert len(records) <= len(plans)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(begin, begin + 8), marks=[pytest.mark.slow] if begin else [])
        for begin in range(0, 200, 8)
    ],
    ids=str,
)
def test_whatever_a_store_does_nothing_is_lost_and_nothing_is_there_twice(
    seeds: range,
    bucket: str,  # noqa: F811
    proxy: FaultyProxy,
    tmp_path: Path,
) -> None:
    told: Counter[str] = Counter()
    for seed in seeds:
        choose = random.Random(seed)
        proxy.random = random.Random(seed)
        proxy.kinds = FAULTS if seed % 6 == 5 else (FAULTS[seed % 6],)
        url, share = f"{bucket}/{seed}", choose.uniform(0.05, 0.25)
        new = make_inputs(tmp_path / f"{seed}-new", choose.randint(2, 5))
        plans, writers = {"new": new}, ["new"]
        if seed % 3 == 1:
            writers = ["new", "new"]
        elif seed % 3 == 2:
            plans["old"] = new[: choose.randint(1, len(new))]
            writers = ["old", "new"]
        proxy.share = share
        with ThreadPoolExecutor(2) as threads:
            ends = list(threads.map(lambda w, p=plans, u=url: make_until_done(u, p[w], w), writers))
        proxy.share = 0.0
        assert any(well for _, well in ends), "all were told that another has finished"
        for errors, _ in ends:
            for error in errors:
                told[error.partition(": ")[2][:40]] += 1
                assert "gain" in error, f"it does not say what to do: {error}"
                assert "secret" not in error
        check(url, plans)
    print(dict(proxy.done), dict(told))
    assert sum(proxy.done[kind] for kind in FAULTS) > len(seeds)
