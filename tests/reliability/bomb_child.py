"""Opens folders that others have made, in little memory, and tells how each ended.

The limit is RLIMIT_AS, above what the process has mapped once everything is imported and an honest
folder of each kind was opened: torch maps gigabytes of code and pools, which no limit of a round
number could tell from a bomb's. Unlike RLIMIT_DATA it also counts files that are mapped. A bomb
that goes off is a MemoryError or a death, not a slow machine.
"""

import json
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from polyseme.data.stream import read_window, row_groups
from polyseme.data.vocabulary import Vocabulary, VocabularyConfig
from polyseme.embedding.corpus_parts import parts_of
from polyseme.embedding.folder import VectorFolder
from polyseme.errors import PolysemeError
from polyseme.model import Model
from polyseme.tasks.task import Task
from polyseme.text.corpus import Corpus
from polyseme.text.word_counts import coverage, most_frequent

MEMORY = 3 << 29  # 1.5 GB
PATIENCE = 20  # seconds, for what waits instead of working


def open_corpus(folder: Path) -> None:
    """All that reads a corpus."""
    corpus = Corpus.open(folder)
    assert corpus.config is not None
    coverage(corpus.vocabulary, 100)
    most_frequent(corpus.vocabulary, 10)
    vocabulary = Vocabulary.of(corpus, VocabularyConfig(min_count=1))
    for part in parts_of(corpus)[:3]:
        for _ in part.sentences():
            pass
    for group in row_groups(corpus.shards)[:3]:
        read_window([group], vocabulary, is_held_out=False, with_documents=True)


def open_vectors(folder: Path) -> None:
    """All that reads vectors."""
    vectors = VectorFolder.open(folder)
    assert vectors.config is not None
    vectors.read(["word1"])
    vectors.read(limit=5)


OPEN: dict[str, Any] = {
    "model": Model.load,
    "task": Task.load,
    "corpus": open_corpus,
    "vectors": open_vectors,
}


def status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").split("\n")
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def limit_memory() -> None:
    bound = status("VmSize") + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))


def _give_up(*_: object) -> None:
    raise TimeoutError(f"not done in {PATIENCE} s")


def main(honest: str, cases: str) -> None:
    """`honest`: folders by kind; `cases`: kind and folder of each bomb. A line of JSON for each."""
    torch.set_num_threads(1)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    for kind, folder in json.loads(honest).items():
        OPEN[kind](Path(folder))
    limit_memory()
    signal.signal(signal.SIGALRM, _give_up)
    for kind, folder in json.loads(cases):
        print(json.dumps(watch(kind, Path(folder))), flush=True)


def watch(kind: str, folder: Path) -> dict[str, Any]:
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins again
    started = time.process_time()
    told = ""
    signal.alarm(PATIENCE)
    try:
        OPEN[kind](folder)
        ended = "opened"
    except PolysemeError as error:
        ended, told = "refused", str(error)[:300]
    except BaseException:  # noqa: BLE001 - what a user would see as a traceback
        ended, told = "traceback", traceback.format_exc()[-1500:]
    signal.alarm(0)
    seconds = time.process_time() - started
    return {"ended": ended, "told": told, "seconds": seconds, "bytes": status("VmHWM") - before}


if __name__ == "__main__":
    main(*sys.argv[1:])
