"""Runs that save checkpoints, of a toy and of a small ELMo, and what they come to."""

from pathlib import Path
from typing import Any

from training.toy import Toy, saved_digests, settings

from polyseme.storage.files import sha256_of
from polyseme.text.corpus import Corpus
from polyseme.training.checkpoint import Checkpoints
from polyseme.training.loop import train

SHORT: dict[str, Any] = {"steps": 6, "save_steps": 2, "keep_checkpoints": 1}


def newest(folder: Path) -> int:
    return max(Checkpoints(folder, keep=1).steps(), default=0)


def exact_losses(folder: Path) -> list[str]:
    lines = (folder / "run.jsonl").read_text().splitlines()
    return [line.split('"loss": ')[1][:22] for line in lines if '"loss"' in line]


def assert_only_whole(folder: Path) -> int:
    """Everything under a final name is sound. Returns the newest step, 0 if there is none."""
    store = Checkpoints(folder, keep=1)
    for step in store.steps():
        store.load(step)
    return newest(folder)


def finish(folder: Path, **values: Any) -> tuple[dict[str, str], list[str]]:
    """Train the toy to the end; its state and losses. Nothing is left lying about."""
    train(Toy(), settings(**values), folder)
    assert {path.name for path in folder.iterdir()} <= {"checkpoints", "run.jsonl"}
    assert len(list((folder / "checkpoints").iterdir())) <= values.get("keep_checkpoints", 2)
    return saved_digests(folder, values["steps"]), exact_losses(folder)


def pretrain(corpus: Corpus, out: Path, steps: int, *, save_steps: int = 5) -> list[str]:
    """The words after `polyseme`: a small ELMo with dropout."""
    model = "model.encoder.contextualizer.proj_size=16"
    return [
        *("pretrain", str(corpus.folder), "--preset", "elmo-teaching", "--out", str(out)),
        *("--set", model, "--set", "model.vocabulary.min_count=1", "--set", "batches.words=300"),
        *("--precision", "float32", "--evaluate-every", "50", "--keep-training-state"),
        *("--steps", str(steps), "--save-steps", str(save_steps), "--keep-checkpoints", "1"),
    ]


def result_in(out: Path) -> tuple[dict[str, str], list[str], str]:
    """Every tensor of the newest checkpoint, the optimizer's too, every loss, the model's file."""
    assert not (out / ".work").exists()
    model = sha256_of(out / "model.safetensors")
    return saved_digests(out, newest(out)), exact_losses(out), model
