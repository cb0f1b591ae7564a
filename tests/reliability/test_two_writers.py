"""Two `predict --file` with one `--out` at once: one is refused, or both leave whole labels."""

import threading
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
import torch
from tasks.cases import TaskCase, make_task

from polyseme.commands import predict, train
from polyseme.config import build
from polyseme.errors import ExecutorError
from reliability.forked import context

LINES = 200
Answer = tuple[int, int, str, bytes]


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> TaskCase:
    made = make_task(tmp_path_factory.mktemp("two"))
    values = {"task": made.task, "out": made.folder / "names", "training": {"epochs": 1}}
    train.run(build(train.TrainConfig, values))
    for writer in range(2):
        lines = [f"word{(writer + n) % 50} word{n % 7} writer{writer}" for n in range(LINES)]
        (made.folder / f"{writer}.txt").write_text("\n".join(lines), encoding="utf-8")
    return made


def settings(folder: Path, writer: int, out: Path) -> predict.PredictConfig:
    values = {"task": folder / "names", "input_file": folder / f"{writer}.txt", "out": out}
    return build(predict.PredictConfig, values)


def label_again_and_again(
    folder: Path, writer: int, rounds: int, start: Barrier, answers: "Queue[Answer]"
) -> None:  # in a process of its own
    torch.set_num_threads(1)
    for number in range(rounds):
        out = folder / "shared" / f"{number}.jsonl"
        start.wait()
        try:
            predict.run(settings(folder, writer, out))
            answers.put((number, writer, "done", out.read_bytes()))
        except ExecutorError as error:
            answers.put((number, writer, str(error), b""))
        except Exception as error:  # noqa: BLE001  # told below
            answers.put((number, writer, f"fault: {error!r}", b""))


class Onlooker(threading.Thread):
    """Reads the files all the while, and keeps what is not the whole of either's labels."""

    def __init__(self, folder: Path, whole: list[bytes]) -> None:
        super().__init__(daemon=True)
        self.folder, self.whole, self.torn, self.looks = folder, whole, 0, 0
        self.is_over = threading.Event()

    def run(self) -> None:
        while not self.is_over.wait(0.002):
            for path in self.folder.glob("*.jsonl"):
                self.looks += 1
                self.torn += path.read_bytes() not in self.whole


@pytest.mark.parametrize("rounds", [5, pytest.param(40, marks=pytest.mark.slow)])
def test_whoever_says_done_has_left_whole_labels_and_the_other_is_told(
    case: TaskCase, rounds: int
) -> None:
    whole = []
    for writer in range(2):
        predict.run(settings(case.folder, writer, case.folder / f"whole-{writer}"))
        whole.append((case.folder / f"whole-{writer}").read_bytes())
    assert whole[0] != whole[1]
    start, answers = context().Barrier(2), context().Queue()
    (case.folder / "shared").mkdir(exist_ok=True)
    onlooker = Onlooker(case.folder / "shared", whole)
    onlooker.start()
    more = (rounds, start, answers)
    writers = [
        context().Process(target=label_again_and_again, args=(case.folder, n, *more))
        for n in (0, 1)
    ]
    for process in writers:
        process.start()
    told = [answers.get(timeout=120) for _ in range(2 * rounds)]
    for process in writers:
        process.join()
    onlooker.is_over.set()
    onlooker.join()
    assert onlooker.torn == 0
    assert onlooker.looks > 0
    refused = [said for _, _, said, _ in told if said != "done"]
    assert all("Another process is writing" in said for said in refused), refused
    assert refused, "they never met"
    for number in range(rounds):
        done = {writer: found for n, writer, said, found in told if n == number and said == "done"}
        assert done, f"round {number}: nobody finished"
        for writer, found in done.items():
            # If both were let in, one after the other, the second may have been quick.
            assert found == whole[writer] or (len(done) == 2 and found in whole)
    assert {path.suffix for path in (case.folder / "shared").iterdir()} == {".jsonl"}
