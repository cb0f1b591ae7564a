"""A real server under what happens to servers: signals, dead engines, clients that leave, mixes."""

import asyncio
import base64
import contextlib
import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from command_line import polyseme
from required import needs
from serving.making import TEXT, children_of, embed, save_tiny, serving
from slack import allowed

from polyseme.embedding.embedder import Embedder
from polyseme.model import Model
from polyseme.storage.files import write_text
from reliability import traced
from reliability.test_offline import outgoing

WORDS = ["she", "sat", "on", "the", "bank", "of", "the", "river", ".", "it", "rained", "money"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("served") / "tiny")


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    with serving(str(model)) as (address, process):
        yield address, process


def sentences(seed: int, number: int) -> list[str]:
    """Texts of different lengths."""
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randint(1, 30))) for _ in range(number)]


def counts(quick: int, full: int) -> pytest.MarkDecorator:
    """How many of it; the full count is for `make reliability`."""
    marks = [pytest.mark.slow, pytest.mark.timeout(1_800)]
    return pytest.mark.parametrize("number", [quick, pytest.param(full, marks=marks)])


@counts(200, 1_000)
@pytest.mark.parametrize("invariant", [False, True])
def test_a_text_has_the_librarys_vector_whoever_else_asks(
    model: Path, invariant: bool, number: int
) -> None:
    """Bitwise the same if batches are invariant; else to 1e-5 of their size."""
    embedder = Embedder.load(model, device="cpu", threads=1)
    needle = TEXT.partition(".")[0] + "."
    (expected,) = embedder.embed([needle], layers="top", batch_invariant=invariant)
    options = ["--batch-invariant"] * invariant
    with serving(str(model), "--threads", "1", "--max-wait", "30", *options) as (address, _):

        def ask(mix: int) -> Any:
            texts = sentences(mix, mix % 5)
            at = mix % (len(texts) + 1)
            body = {"input": [*texts[:at], needle, *texts[at:]], "dtype": "float32"}
            answer = client.post(f"{address}/v1/words", json=body)
            assert answer.status_code == 200, answer.text
            (found,) = [each for each in answer.json()["sentences"] if each["index"] == at]
            numbers = np.frombuffer(base64.b64decode(found["vectors"]), "<f4")
            return numbers.reshape(found["shape"])

        with httpx.Client(timeout=60) as client, ThreadPoolExecutor(16) as threads:
            for found in threads.map(ask, range(number)):
                if invariant:
                    assert np.array_equal(found, expected.vectors)
                else:
                    size = float(np.sqrt(np.mean(expected.vectors**2)))
                    assert np.abs(found - expected.vectors).max() <= 1e-5 * size


def test_once_told_to_end_it_answers_all_it_accepted_and_takes_nothing_new(model: Path) -> None:
    with serving(str(model), "--max-wait", "30") as (address, process):
        children = children_of(process.pid)
        big = {"input": [" ".join(WORDS * 40)] * 32}

        def ask(_: int) -> int:
            return httpx.post(f"{address}/v1/embeddings", json=big, timeout=60).status_code

        with (
            # Connections that are there already: new ones find nobody.
            httpx.Client(base_url=address, timeout=60) as one,
            httpx.Client(base_url=address) as two,
            ThreadPoolExecutor(20) as threads,
        ):
            assert one.get("/readyz").status_code == two.get("/readyz").status_code == 200
            asked = [threads.submit(ask, n) for n in range(20)]
            while _in_flight(address) < 20 and not all(each.done() for each in asked):
                time.sleep(0.01)
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does at Ctrl-C
            began = time.monotonic()
            time.sleep(0.1)
            assert one.get("/readyz").status_code == 503
            refused = two.post("/v1/embeddings", json={"input": TEXT})
            assert refused.status_code == 503
            assert refused.headers["retry-after"]
            assert [each.result() for each in asked] == [200] * 20
        assert process.wait(30) == 0
        assert time.monotonic() - began < 30
        assert not [each for each in children if _is_alive(each)]


def _is_ready(address: str) -> bool:
    return httpx.get(f"{address}/readyz", timeout=60).status_code == 200


def _in_flight(address: str) -> int:
    """Requests that have come: those waiting, and those in hand are not told apart from outside."""
    text = httpx.get(f"{address}/metrics").text
    line = next(
        each for each in text.splitlines() if each.startswith("polyseme_accepted_requests ")
    )
    return int(float(line.split()[1]))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return b"Z" not in Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2][:3]


@counts(2, 20)
def test_a_killed_engine_costs_only_what_it_had_in_hand(
    server: tuple[str, "subprocess.Popen[str]"], number: int
) -> None:
    address, process = server
    stop = threading.Event()
    statuses: list[int] = []

    def ask() -> None:
        with httpx.Client(timeout=60) as client:
            while not stop.is_set():
                answer = client.post(f"{address}/v1/embeddings", json={"input": TEXT})
                statuses.append(answer.status_code)

    clients = [threading.Thread(target=ask) for _ in range(4)]
    for each in clients:
        each.start()
    try:
        for _ in range(number):
            time.sleep(0.5)
            (engine,) = children_of(process.pid)
            os.kill(engine, signal.SIGKILL)
            began = time.monotonic()
            while engine in children_of(process.pid) or not _is_ready(address):
                assert time.monotonic() - began < allowed(10)
                time.sleep(0.05)
        time.sleep(0.5)
    finally:
        stop.set()
        for each in clients:
            each.join()
    assert statuses.count(200) > 20
    assert set(statuses) <= {200, 503}
    assert statuses.count(503) <= number * len(clients)
    assert embed(address).status_code == 200


@counts(100, 1_000)
def test_clients_that_leave_free_their_places(
    server: tuple[str, "subprocess.Popen[str]"], number: int
) -> None:
    address, _ = server
    host, port = address.removeprefix("http://").split(":")
    body = b'{"input": "' + b"she sat on the bank . " * 300 + b'"}'
    head = (
        f"POST /v1/embeddings HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json"
        f"\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    for client in range(number):
        with socket.create_connection((host, int(port)), timeout=10) as asking:
            asking.sendall(head + (body if client % 2 else body[:100]))
    began = time.monotonic()
    while _in_flight(address):
        assert time.monotonic() - began < allowed(2)
        time.sleep(0.05)
    assert embed(address).status_code == 200


def test_a_slow_body_and_a_slow_head_are_given_up(
    server: tuple[str, "subprocess.Popen[str]"],
) -> None:
    address, _ = server
    host, port = address.removeprefix("http://").split(":")
    head = (
        f"POST /v1/embeddings HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json"
        "\r\nContent-Length: 1000\r\n\r\n"
    ).encode()
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection((host, int(port)))) for _ in range(2)]
        slow[0].sendall(head + b"{")
        slow[1].sendall(head[:20])
        for each in slow:
            each.settimeout(20)
        assert slow[0].recv(100).startswith(b"HTTP/1.1 408")
        assert slow[1].recv(100) == b""
    assert 5 < time.monotonic() - began < 15


def test_a_model_with_other_weights_is_never_ready(tmp_path: Path) -> None:
    """Its manifest agrees with its files; its vectors are not those of the model of its name."""
    source = Path(__file__).parents[2] / "models" / "en-mini"
    model = Model.load(source)
    weight = next(iter(model.network.parameters()))
    weight.data += 0.5
    model.save(tmp_path / "en-mini", card="")
    found = polyseme("serve", tmp_path / "en-mini", "--port", "0", code=65)
    assert "differ from the right ones" in " ".join(found.stderr.split())


@counts(4, 60)
def test_overload_is_refused_quickly_and_the_rest_is_answered(model: Path, number: int) -> None:
    """Four times as many clients as there is room for, for so many seconds; on a slow machine for
    as long as it takes to answer some."""
    text = " ".join(WORDS * 30)

    async def flood(address: str) -> list[tuple[int, float]]:
        found: list[tuple[int, float]] = []

        def num_answered() -> int:
            return sum(status == 200 for status, _ in found)

        async def ask(client: httpx.AsyncClient) -> None:
            until = time.monotonic() + number
            last = until + 60
            while time.monotonic() < (until if num_answered() >= 20 else last):
                began = time.monotonic()
                answer = await client.post("/v1/embeddings", json={"input": [text] * 8})
                found.append((answer.status_code, time.monotonic() - began))
                if answer.status_code == 429:
                    assert int(answer.headers["retry-after"]) >= 1
                    await asyncio.sleep(0.05)

        limits = httpx.Limits(max_connections=100)
        async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
            await asyncio.gather(*(ask(client) for _ in range(48)))
        return found

    with serving(str(model), "--max-wait", "0.2") as (address, _):
        found = asyncio.run(flood(address))
    statuses = [status for status, _ in found]
    assert set(statuses) == {200, 429}
    assert statuses.count(200) >= 20


def test_beyond_this_machine_a_key_is_needed(tmp_path: Path, model: Path) -> None:
    def refused(*arguments: str) -> str:
        return polyseme("serve", model, *arguments, code=2).stderr

    assert "--api-key-file" in refused("--host", "0.0.0.0", "--port", "0")
    write_text(tmp_path / "keys.txt", "short\n")
    assert "16 characters" in refused("--port", "0", "--api-key-file", str(tmp_path / "keys.txt"))
    write_text(tmp_path / "keys.txt", "# of the lab\na-key-of-some-length\n")
    keys = ["--api-key-file", str(tmp_path / "keys.txt")]
    with serving(str(model), "--host", "0.0.0.0", *keys) as (address, process):
        local = address.replace("0.0.0.0", "127.0.0.1")
        assert embed(local).status_code == 401
        headers = {"authorization": "Bearer a-key-of-some-length"}
        assert embed(local, headers=headers).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@needs(traced.why_not() is None, traced.why_not() or "strace", only_on="linux")
def test_a_server_opens_no_connection(tmp_path: Path, model: Path) -> None:
    log = tmp_path / "calls"
    # -D: the server, not strace, is the process that is started and ended here.
    with serving(str(model), under=["strace", "-D", *f"-f -e connect -o {log}".split()]) as (at, _):
        assert embed(at).status_code == 200
    calls = log.read_text(errors="replace")
    assert "+++ exited" in calls
    assert outgoing(calls) == []
