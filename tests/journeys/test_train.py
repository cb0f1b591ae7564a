"""From labelled data to a trained task, measured and used, through the command line."""

import json
import re
from pathlib import Path

import pytest
from command_line import polyseme
from tasks.cases import TaskCase, make_task


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> TaskCase:
    return make_task(tmp_path_factory.mktemp("task"))


@pytest.fixture(scope="module")
def trained(case: TaskCase) -> Path:
    """Trained with two seeds."""
    out = case.folder / "names"
    shown = polyseme("train", case.task, "--out", out, "--seeds", "1,2")
    assert "f1 on the development data" in shown.stdout
    assert "polyseme predict" in shown.stdout
    assert "train: 60 examples" in shown.stdout
    return out


def test_every_seed_is_told_and_all_together(trained: Path) -> None:
    told = json.loads((trained / "metrics.json").read_text(encoding="utf-8"))
    values = [seed["dev"] for seed in told["seeds"]]
    assert [seed["seed"] for seed in told["seeds"]] == [1, 2]
    assert told["mean"] == pytest.approx(sum(values) / 2)
    assert min(values) > 0.8  # the rule is a word's own: a table of vectors learns it
    for name in ("curve.png", "layers.png", "confusion.png", "metrics.json", "manifest.json"):
        assert (trained / "seed-2" / name).is_file()


def test_the_same_command_again_trains_nothing_and_removes_what_a_kill_has_left(
    case: TaskCase, trained: Path
) -> None:
    work = trained / "seed-1" / ".work"
    work.mkdir()
    (work / "half-drawn.png").write_bytes(b"\x89PNG")
    before = (trained / "seed-1" / "model.safetensors").stat().st_mtime_ns
    shown = polyseme("train", case.task, "--out", trained, "--seeds", "1,2")
    assert "is finished" in " ".join(shown.stderr.split())
    assert (trained / "seed-1" / "model.safetensors").stat().st_mtime_ns == before
    assert not work.exists()


def test_the_test_data_is_measured_when_asked(case: TaskCase, trained: Path) -> None:
    shown = polyseme("evaluate", trained)
    assert re.search(
        r"test\.conll: \d+\.\d\d ± \d+\.\d\d over 2 seeds", " ".join(shown.stdout.split())
    )
    assert "NAME" in shown.stdout
    other = polyseme("evaluate", trained, "--data", case.folder / "dev.conll")
    assert "15 examples" in other.stdout


def test_a_task_with_its_model_inside_works_wherever_it_is(case: TaskCase, tmp_path: Path) -> None:
    out = tmp_path / "here"
    polyseme("train", case.task, "--out", out, "--include-model", "--set", "training.epochs=1")
    moved = out.rename(tmp_path / "there")
    model = case.model.rename(case.model.with_name("gone"))
    try:
        polyseme("predict", "--task", moved, "word1 word10")
    finally:
        model.rename(case.model)


def test_a_setting_nobody_knows_is_refused_with_the_nearest(case: TaskCase) -> None:
    command = ("train", case.task, "--out", case.folder / "x", "--set", "training.epoch=3")
    shown = polyseme(*command, code=2)
    assert "training.epoch is not a setting. Did you mean 'epochs'?" in shown.stderr
