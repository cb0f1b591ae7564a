"""A tiny language model with dropout, trained by one of several processes; notes what it reads.

    python -m reliability.pretraining_run FOLDER CORPUS '{"steps": 300, "signal_at": 75, ...}'

Each batch leaves a line in `FOLDER/ids-RANK`: where it stands in the corpus, a hash of its ids.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from pretraining.making import tiny_train_module, tiny_values
from training.toy import settings

from polyseme.errors import PolysemeError
from polyseme.objectives.prediction import TrainingTargets
from polyseme.text.corpus import Corpus
from polyseme.training.loop import train
from polyseme.training.optimizer import Position

RANK = os.environ.get("RANK", "0")


def noted(
    stream: Iterator[tuple[TrainingTargets, Position]], folder: Path, signal_at: int | None
) -> Iterator[tuple[TrainingTargets, Position]]:
    """The same batches; after the last that is wanted, a signal to the first process."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"ids-{RANK}"
    before = len(path.read_text().splitlines()) if path.exists() else 0
    with path.open("a") as notes:
        for done, (targets, after) in enumerate(stream, start=before + 1):
            ids = targets.batch.ids[targets.batch.words]
            notes.write(f"{json.dumps(after)} {sha256(ids.numpy().tobytes()).hexdigest()}\n")
            notes.flush()
            if RANK == "0" and done == signal_at:
                os.kill(os.getpid(), signal.SIGTERM)
            yield targets, after


def main(folder: str, corpus: str, values: str) -> int:
    torch.set_num_threads(1)
    given: dict[str, Any] = json.loads(values)
    signal_at = given.pop("signal_at")
    torch.manual_seed(1)
    encoder = {**tiny_values()["encoder"], "dropout": 0.1}
    train_module = tiny_train_module(Corpus.open(Path(corpus)), encoder=encoder)
    plain = train_module.batches
    train_module.batches = lambda position: noted(plain(position), Path(folder), signal_at)  # type: ignore[method-assign]
    try:
        train(train_module, settings(**{"evaluate_every": 10**6, **given}), Path(folder))
    except PolysemeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
