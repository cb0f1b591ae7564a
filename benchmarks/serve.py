r"""A server beside the bare embedder, and beside other servers, on loopback.

    python -m benchmarks.serve MODEL CORPUS
    python -m benchmarks.serve MODEL CORPUS --others litserve,batching,one-by-one
    python -m benchmarks.serve MODEL CORPUS --soak 30 --kills 20

Closed loop: clients that ask again as soon as they are answered, with 1 sentence each and with 8;
words per processor second of the engine, and of the whole server, beside the embedder that is
handed batches of the size that was reached. Open loop: requests of one sentence that come at random
at 50 % and 80 % of what the closed loop has shown, however long answers take; median and 99th
percentile of the time to an answer, beside that of one client alone. Four times as much as there is
room for: what is refused, and how soon. A soak at 80 %: memory of the server and of its engine,
kills of the engine, and whether every answer is the vector of its text.

Other servers, with the same embedder: `one-by-one` embeds each request by itself; `batching` waits
2 ms for others to read together with, as most servers do; `litserve` (pip install litserve) does so
in processes of its own.

Sentences are those of the corpus with 5 to 40 words, in its order. One thread for every model.
"""

import argparse
import asyncio
import base64
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

import numpy as np
import psutil

import polyseme
from benchmarks.side_by_side import print_facts, sentences_of
from polyseme.text.corpus import Corpus

_SERVER = [sys.executable, "-m", "polyseme", "serve"]
_OTHERS = {
    "one-by-one": """
import sys, polyseme, uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.routing import Route
embedder = polyseme.load(sys.argv[1], threads=1)
import threading
lock = threading.Lock()
def encode(texts):
    with lock:
        return embedder.encode(texts)
async def embeddings(request):
    found = await run_in_threadpool(encode, (await request.json())["input"])
    return JSONResponse({"data": [{"embedding": each.tolist()} for each in found]})
app = Starlette(routes=[Route("/v1/embeddings", embeddings, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[2]), log_level="error")
""",
    "batching": """
import asyncio, sys, polyseme, uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.routing import Route
embedder = polyseme.load(sys.argv[1], threads=1)
waiting = asyncio.Queue()
async def gather():
    while True:
        jobs = [await waiting.get()]
        await asyncio.sleep(0.002)
        while len(jobs) < 64 and not waiting.empty():
            jobs.append(waiting.get_nowait())
        flat = [text for texts, _ in jobs for text in texts]
        found = iter(await run_in_threadpool(embedder.encode, flat))
        for texts, answer in jobs:
            answer.set_result([next(found).tolist() for _ in texts])
async def embeddings(request):
    answer = asyncio.get_running_loop().create_future()
    await waiting.put(((await request.json())["input"], answer))
    return JSONResponse({"data": [{"embedding": each} for each in await answer]})
async def lifespan(app):
    task = asyncio.create_task(gather())
    yield
    task.cancel()
import contextlib
app = Starlette(routes=[Route("/v1/embeddings", embeddings, methods=["POST"])],
                lifespan=contextlib.asynccontextmanager(lifespan))
uvicorn.run(app, port=int(sys.argv[2]), log_level="error")
""",
    "litserve": """
import sys, litserve, polyseme
class Embeddings(litserve.LitAPI):
    def setup(self, device):
        self.embedder = polyseme.load(sys.argv[1], threads=1)
    def decode_request(self, request):
        return request["input"]
    def predict(self, batches):
        flat = [text for texts in batches for text in texts]
        found = iter(self.embedder.encode(flat))
        return [[next(found) for _ in texts] for texts in batches]
    def encode_response(self, output):
        return {"data": [{"embedding": each.tolist()} for each in output]}
if __name__ == "__main__":
    api = Embeddings(max_batch_size=64, batch_timeout=0.002, api_path="/v1/embeddings")
    server = litserve.LitServer(api, accelerator="cpu")
    server.run(port=int(sys.argv[2]), log_level="error", generate_client_file=False)
""",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("model")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement")
    parser.add_argument("--others", default="", help=f"also: {', '.join(_OTHERS)}")
    parser.add_argument("--soak", type=float, default=0, help="minutes at 80 %%, instead")
    parser.add_argument("--kills", type=int, default=0, help="of the engine, while it soaks")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    print_facts()
    texts = _sentences(arguments.corpus)
    if arguments.soak:
        with _serving(arguments.model) as (port, server):
            asyncio.run(_soak(arguments, port, server, texts))
        return
    for repeat in range(arguments.repeats):
        print(f"run {repeat + 1}")
        with _serving(arguments.model) as (port, server):
            asyncio.run(_measure(arguments, port, server, texts))
        for name in filter(None, arguments.others.split(",")):
            with _other(name, arguments.model) as port:
                for each in (1, 8):
                    asyncio.run(_rate(name, port, texts, each, arguments.seconds))


def _sentences(folder: Path) -> list[str]:
    """Texts of 5 to 40 words."""
    found = (words for words in sentences_of(Corpus.open(folder)) if 5 <= len(words) <= 40)
    return [" ".join(words) for words in islice(found, 20_000)]


@contextmanager
def _serving(model: str) -> Iterator[tuple[int, psutil.Process]]:
    command = [*_SERVER, model, "--port", "0", "--threads", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        told = ""
        while not (found := re.search(r"http://127.0.0.1:(\d+)", told)):
            line = process.stderr.readline()
            if not line:
                raise SystemExit(told)
            told += line
        try:
            yield int(found[1]), psutil.Process(process.pid)
        finally:
            process.terminate()
            process.communicate()


@contextmanager
def _other(name: str, model: str) -> Iterator[int]:
    port = random.randint(20_000, 30_000)
    with TemporaryDirectory() as folder:
        # A file, as LitServe's processes import it again.
        script = Path(folder, "server.py")
        script.write_text(_OTHERS[name], encoding="utf-8")
        yield from _running([sys.executable, str(script), model, str(port)], port)


def _running(command: list[str], port: int) -> Iterator[int]:
    with subprocess.Popen(command) as process:
        try:
            for _ in range(600):
                with suppress(OSError):
                    asyncio.run(_Client(port).ask(["One ."]))
                    break
                time.sleep(0.1)
            yield port
        finally:
            for child in psutil.Process(process.pid).children(recursive=True):
                child.terminate()
            process.terminate()


class _Client:
    """One connection that stays; a client library would take more time than the server."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, texts: Sequence[str]) -> tuple[int, bytes]:
        """Status and body."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        body = json.dumps({"input": list(texts), "encoding_format": "base64"}).encode()
        writer.write(
            b"POST /v1/embeddings HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json"
            b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            answer = await reader.readexactly(int(length[1])) if length else b""
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            self._streams = None
            raise OSError from error
        return int(head[9:12]), answer

    def close(self) -> None:
        """End the connection."""
        if self._streams is not None:
            self._streams[1].close()


async def _rate(
    name: str, port: int, texts: Sequence[str], each: int, seconds: float, clients: int = 64
) -> tuple[float, float]:
    """Requests per second of clients that never pause; and sentences of a request."""
    numbers = iter(range(1 << 60))
    count = 0

    async def go() -> None:
        nonlocal count
        client = _Client(port)
        while time.monotonic() < until:
            at = next(numbers) * each % (len(texts) - each)
            status, _ = await client.ask(texts[at : at + each])
            count += status == 200
        client.close()

    clients = clients if each == 1 else clients // 4
    began = time.monotonic()
    until = began + seconds
    await asyncio.gather(*(go() for _ in range(clients)))
    taken = time.monotonic() - began
    words = sum(len(text.split()) for text in texts) / len(texts)
    print(f"  {name}: {clients} clients x {each}: {count / taken:,.0f} requests/s, "
          f"{count * each * words / taken:,.0f} words/s")  # fmt: skip
    return count / taken, words


async def _measure(
    arguments: argparse.Namespace, port: int, server: psutil.Process, texts: Sequence[str]
) -> None:
    seconds = arguments.seconds
    alone = await _alone(port, texts)
    print(f"  one client alone: p50 {1e3 * alone:.1f} ms")
    capacity = 0.0
    for each in (1, 8):
        (engine,) = server.children()
        before = _cpu(engine), _cpu(server), _batches(port)
        rate, words = await _rate("polyseme serve", port, texts, each, seconds)
        engine_cpu, server_cpu = _cpu(engine) - before[0], _cpu(server) - before[1]
        batches, requests = (
            now - then for now, then in zip(_batches(port), before[2], strict=True)
        )
        read = requests * each * words
        size = max(1, round(requests * each / max(1, batches)))
        bare = _bare(arguments.model, texts, size)
        print(f"    {size} sentences a batch; words per CPU second: "
              f"engine {read / engine_cpu:,.0f}, "
              f"with HTTP {read / (engine_cpu + server_cpu):,.0f}, bare {bare:,.0f}; "
              f"engine / bare {read / engine_cpu / bare:.2f}")  # fmt: skip
        capacity = capacity or rate
    for share in (0.5, 0.8):
        times, others = await _open_loop(port, texts, share * capacity, seconds)
        print(f"  open loop at {share:.0%}: p50 {1e3 * _percentile(times, 50):.1f} ms "
              f"({_percentile(times, 50) / alone:.2f} x alone), "
              f"p99 {1e3 * _percentile(times, 99):.1f} ms, "
              f"{others['refused']} refused")  # fmt: skip
    waits: list[float] = []
    times, others = await _open_loop(port, texts, 4 * capacity, seconds, waits)
    print(f"  open loop at 400%: {len(times) / seconds / capacity:.0%} of capacity answered, p99 "
          f"{1e3 * _percentile(times, 99):.0f} ms; {others['refused']} refused, p99 "
          f"{1e3 * _percentile(waits, 99):.0f} ms")  # fmt: skip


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _batches(port: int) -> tuple[float, float]:
    """How many batches there were, and requests in them."""
    with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    return tuple(  # type: ignore[return-value]
        float(re.search(rf"polyseme_batch_requests_{name} (\S+)", text)[1])  # type: ignore[index]
        for name in ("count", "sum")
    )


def _bare(model: str, texts: Sequence[str], size: int) -> float:
    """Words per CPU second of the embedder alone, with so many sentences in each call."""
    code = (
        "import sys, time, json, polyseme\n"
        "texts, size = json.load(sys.stdin), int(sys.argv[2])\n"
        "embedder = polyseme.load(sys.argv[1], threads=1)\n"
        "embedder.encode(texts[:size])\n"
        "began, words = time.process_time(), 0\n"
        "for at in range(0, len(texts) - size + 1, size):\n"
        "    embedder.encode(texts[at : at + size])\n"
        "    words += sum(len(text.split()) for text in texts[at : at + size])\n"
        "    if time.process_time() - began > 8: break\n"
        "print(words / (time.process_time() - began))\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, model, str(size)],
        input=json.dumps(list(texts)),
        capture_output=True,
        text=True,
        check=True,
    )
    return float(found.stdout)


async def _alone(port: int, texts: Sequence[str]) -> float:
    client, times = _Client(port), []
    for text in texts[:200]:
        began = time.monotonic()
        await client.ask([text])
        times.append(time.monotonic() - began)
    client.close()
    return statistics.median(times)


async def _open_loop(
    port: int,
    texts: Sequence[str],
    rate: float,
    seconds: float,
    refusals: list[float] | None = None,
    check: Callable[[int, bytes], None] | None = None,
) -> tuple[list[float], Counter[str]]:
    """Times of requests that come at random, and how many were refused, and failed."""
    free: list[_Client] = []
    times: list[float] = []
    others: Counter[str] = Counter()

    async def go(number: int) -> None:
        began = time.monotonic()
        client = free.pop() if free else _Client(port)
        try:
            status, body = await client.ask([texts[number % len(texts)]])
        except OSError:
            others["failed"] += 1
            return
        free.append(client)
        if status == 200:
            times.append(time.monotonic() - began)
            if check is not None:
                check(number % len(texts), body)
        else:
            others["refused" if status == 429 else "failed"] += 1
            if refusals is not None:
                refusals.append(time.monotonic() - began)

    chance, number = random.Random(1), 0
    began = at = time.monotonic()
    tasks: set[asyncio.Task[None]] = set()
    while at < began + seconds:
        at += chance.expovariate(rate)
        await asyncio.sleep(max(0, at - time.monotonic()))
        task = asyncio.ensure_future(go(number))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        number += 1
    await asyncio.gather(*tasks)
    for client in free:
        client.close()
    return times, others


async def _soak(
    arguments: argparse.Namespace, port: int, server: psutil.Process, texts: Sequence[str]
) -> None:
    """Minutes of work, with the engine killed now and then."""
    embedder = polyseme.load(arguments.model, threads=1)
    texts = texts[:2_000]
    expected = embedder.encode(texts)
    wrong = kills = 0
    memory: dict[str, list[float]] = {"server": [], "engine": []}

    def check(number: int, body: bytes) -> None:
        nonlocal wrong
        found = np.frombuffer(base64.b64decode(json.loads(body)["data"][0]["embedding"]), "<f4")
        wrong += not np.allclose(found, expected[number], atol=1e-4)

    async def kill() -> None:
        nonlocal kills
        for _ in range(arguments.kills):
            await asyncio.sleep(60 * arguments.soak / (arguments.kills + 1))
            (engine,) = server.children()
            engine.send_signal(signal.SIGKILL)
            kills += 1

    async def weigh() -> None:
        """Every second; an engine that is starting is not yet as large as it will be."""
        while True:
            with suppress(psutil.Error, ValueError, OSError):
                with urlopen(f"http://127.0.0.1:{port}/readyz"):
                    (engine,) = server.children()
                memory["engine"].append(engine.memory_info().rss / 1e6)
                memory["server"].append(server.memory_info().rss / 1e6)
            await asyncio.sleep(1)

    capacity, _ = await _rate("polyseme serve", port, texts, 1, 10)
    tasks = [asyncio.ensure_future(each) for each in (kill(), weigh())]
    answered, others = 0, Counter[str]()
    until = time.monotonic() + 60 * arguments.soak
    while (left := until - time.monotonic()) > 0:
        seconds = min(30, left)
        times, some = await _open_loop(port, texts, 0.8 * capacity, seconds, check=check)
        answered += len(times)
        others += some
        told = ", ".join(f"{name} {sizes[-1]:.0f} MB" for name, sizes in memory.items() if sizes)
        print(f"  {answered:,} answered, {others['refused']} refused, {others['failed']} failed, "
              f"{wrong} wrong, {kills} kills, "
              f"p99 {1e3 * _percentile(times, 99):.0f} ms, {told}, "
              f"{server.num_fds()} descriptors", flush=True)  # fmt: skip
    for each in tasks:
        each.cancel()
    for name, sizes in memory.items():
        part = max(1, len(sizes) // 5)
        first, last = statistics.median(sizes[:part]), statistics.median(sizes[-part:])
        print(f"  {name}: median memory {first:.0f} MB in the first fifth of the time, "
              f"{last:.0f} MB in the last ({last / first - 1:+.1%})")  # fmt: skip


def _percentile(times: Sequence[float], percent: float) -> float:
    return float(np.percentile(list(times) or [float("nan")], percent))


if __name__ == "__main__":
    main()
