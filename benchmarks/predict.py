"""What `predict` costs beside the bare network of a task, family by family.

    python -m benchmarks.predict models/en-mini

Both read the same sentences, whose layers are in a cache. "bare" has its batches gathered, and goes
from the layers to findings: the mix, the network, its decoding. "predict" also looks the sentences
up, gathers batches of like length, and makes of what was found predictions and lines of JSON. The
two take turns; time is processor time of one thread. Networks are of the default size and not
trained; sentences are made of the model's words, as frequent as they are.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks.side_by_side import compare, print_facts, print_table, take_turns
from polyseme.config import build
from polyseme.model import Model
from polyseme.tasks.families.choice import Choices
from polyseme.tasks.families.classification import Classified
from polyseme.tasks.families.coreference import Document
from polyseme.tasks.families.family import Example
from polyseme.tasks.families.pairs import Paired
from polyseme.tasks.families.question_answering import Answer, Question
from polyseme.tasks.families.seq2seq import Translated
from polyseme.tasks.families.tagging import Tagged
from polyseme.tasks.settings import TaskConfig
from polyseme.tasks.task import Task
from polyseme.tasks.texts import WordTuple
from polyseme.training.memory import keep_freed_memory

_BAR = 1.5
_BATCH = 64  # as `Task.decode` has it
_FEWER = {"question_answering": 8, "coreference": 40, "seq2seq": 20, "choice": 5, "pairs": 2}
"""Examples take so many times the work of a sentence that is tagged, roughly."""


class Sentences:
    """Sentences of a model's words."""

    def __init__(self, model: Path) -> None:
        self._random = np.random.default_rng(1)
        self._words = Model.load(model).vocabulary.words[:20_000]

    def make(self, mean: int = 20) -> WordTuple:
        """About so many words."""
        ranks = self._random.zipf(1.2, 2 + self._random.poisson(mean - 2))
        return tuple(str(self._words[int(rank) % len(self._words)]) for rank in ranks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("model", type=Path)
    parser.add_argument("--sentences", type=int, default=2_000, help="of other examples fewer")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="families, with commas between them")
    args = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()  # as commands do
    print_facts()
    chosen = args.only.split(",") if args.only else list(_MAKERS)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in chosen:
            rows.append(_measure(kind, args, Path(folder) / "cache"))
    print_table(("family", "examples", "bare, s", "predict, s", "ratio", ""), rows)


def _measure(kind: str, args: argparse.Namespace, cache: Path) -> tuple[str, ...]:
    sentences = Sentences(args.model)
    number = max(2, args.sentences // _FEWER.get(kind, 1))
    examples = [_MAKERS[kind](sentences) for _ in range(number)]
    torch.manual_seed(1)
    task = Task.new(_config(kind, args.model, cache), examples, [])
    task.module.eval()
    data = task.data(examples, use_cache=True)
    batches = [data.batch(chosen) for chosen in data.in_order(_BATCH)]
    contestants: dict[str, Callable[[], float]] = {
        "predict": partial(_timed, lambda: _predict(task, examples)),
        "bare": partial(_timed, lambda: [task.module.decode(batch) for batch in batches]),
    }
    for contestant in contestants.values():  # first touch: kernels, pages of the cache
        contestant()
    found = take_turns(contestants, args.repeats)
    middle = {name: f"{statistics.median(seconds):.2f}" for name, seconds in found.items()}
    ratio, told = compare(found["predict"], found["bare"])
    bar = f"bar {_BAR}: {'reached' if ratio <= _BAR else 'MISSED'}"
    return kind, f"{number:,}", middle["bare"], middle["predict"], told, bar


def _predict(task: Task, examples: list[Example]) -> list[str]:
    found = task.decode(task.data(examples, use_cache=True))
    return [json.dumps(each.as_json(), ensure_ascii=False) for each in found]


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _config(kind: str, model: Path, cache: Path) -> TaskConfig:
    values = {
        "data": {"train": "none", "reader": {"kind": "columns"}},
        "embeddings": {"model": {"kind": "frozen", "model": model, "cache": {"folder": cache}}},
        "network": {"kind": kind},
        "training": {"device": "cpu"},
    }
    return build(TaskConfig, values)


def _question(sentences: Sentences) -> Question:
    asked, words = sentences.make(10), sentences.make(150)
    stops = np.cumsum([len(word) + 1 for word in words]) - 1
    starts = [0, *(stops[:-1] + 1).tolist()]
    texts = " ".join(asked), " ".join(words)
    answer = Answer(words[3], starts[3])
    return Question(*texts, (answer,), "", asked, words, tuple(starts), tuple(stops.tolist()))


def _document(sentences: Sentences) -> Document:
    found = tuple(sentences.make() for _ in range(40))
    mentions: Iterator[tuple[int, int]] = ((place, place + 1) for place in range(0, 400, 10))
    return Document(found, (tuple(mentions),))


_MAKERS: dict[str, Callable[[Sentences], Example]] = {
    "tagging": lambda given: Tagged(words := given.make(), ("B-A", "O", *["O"] * (len(words) - 2))),
    "classification": lambda given: Classified(words := given.make(), "ab"[len(words) % 2]),
    "pairs": lambda given: Paired(words := given.make(), given.make(), "ab"[len(words) % 2]),
    "choice": lambda given: Choices(given.make(), tuple(given.make() for _ in range(4)), (0,)),
    "question_answering": _question,
    "coreference": _document,
    "seq2seq": lambda given: Translated(words := given.make(), words),
}


if __name__ == "__main__":
    main()
