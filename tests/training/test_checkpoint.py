"""Checkpoints: whole or refused; damage of any kind is seen, and the one before is used."""

import json
import random
import shutil
from pathlib import Path

import pytest
import torch
from listening import Heard
from reliability.victims import harm, make_victims, snapshot
from torch import nn

from polyseme.errors import TrainingError
from polyseme.training import checkpoint
from polyseme.training.checkpoint import (
    Checkpoint,
    Checkpoints,
    DamagedCheckpointError,
    load_newest,
    restore_weights,
)
from polyseme.training.loop import train
from training.damage import DAMAGES, FILES, flip
from training.toy import Toy, digests, settings


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with checkpoints of the steps 5 and 10."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("run") / "toy"
    train(Toy(), settings(10, save_steps=5), folder)
    return folder


def newest_step(folder: Path) -> tuple[int, list[int]]:
    """The step loaded, and the steps refused."""
    refused: list[int] = []
    found = load_newest(folder, lambda step, _: refused.append(step))
    assert found is not None
    return found.state["step"], refused


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_checkpoint_is_refused_and_the_one_before_used(
    run: Path, tmp_path: Path, name: str, damage: "object"
) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    assert callable(damage)
    damage(folder / "checkpoints" / "step-000000010" / name)
    assert newest_step(folder) == (5, [10])


@pytest.mark.parametrize("name", FILES)
def test_a_single_bit_is_missed_in_no_file(run: Path, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    path = folder / "checkpoints" / "step-000000010" / name
    sound, choose = path.read_bytes(), random.Random(1)
    for _ in range(25):
        path.write_bytes(flip(sound, choose))
        assert newest_step(folder) == (5, [10])
    path.write_bytes(sound)
    assert newest_step(folder) == (10, [])


def test_the_flips_would_mostly_be_missed_without_hashes(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    sound = (run / "checkpoints/step-000000010/weights.safetensors").read_bytes()
    choose, missed = random.Random(1), 0
    for _ in range(25):
        path.write_bytes(flip(sound, choose))
        try:
            nn.Module.load_state_dict(Toy().module, _load(path))
        except Exception:  # noqa: BLE001  # any complaint counts as noticed
            continue
        missed += 1
    assert missed > 5


def _load(path: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(path)


def test_a_checkpoint_under_another_ones_name_is_refused(run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    shutil.copytree(folder / "checkpoints/step-000000005", folder / "checkpoints/step-000000011")
    assert newest_step(folder) == (10, [11])


def test_a_run_goes_on_from_the_one_before_loudly(run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    weights = folder / "checkpoints/step-000000010/weights.safetensors"
    weights.write_bytes(flip(weights.read_bytes(), random.Random(2)))
    heard = Heard()
    toy, whole = Toy(), Toy()
    outcome = train(toy, settings(10, save_steps=5), folder, progress=heard)
    train(whole, settings(10, save_steps=5), run)
    assert outcome.refused == 1
    assert toy.seen == [5, 6, 7, 8, 9]
    assert digests(toy.module) == digests(whole.module)
    assert "damaged checkpoint was moved to" in heard.said[0]
    events = [json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()]
    assert [one["event"] for one in events if "event" in one] == ["refused", "resumed"]
    assert [path.name for path in (folder / "refused").iterdir()] == ["000-step-000000010"]
    assert newest_step(folder) == (10, [])


def test_when_no_checkpoint_is_sound_the_user_decides(run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    for path in folder.glob("checkpoints/*/state.json"):
        path.unlink()
    with pytest.raises(TrainingError, match="None of the 2 checkpoints"):
        train(Toy(), settings(10), folder)
    assert len(list(folder.glob("checkpoints/*"))) == 2


def test_leftovers_of_a_save_cut_short_are_removed(run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    (folder / ".work/checkpoint-15").mkdir(parents=True)
    (folder / ".work/checkpoint-15/weights.safetensors").write_bytes(b"half of it")
    train(Toy(), settings(10), folder)
    assert not (folder / ".work").exists()


# --- checkpoints on another disk -----------------------------------------------------------


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Where `checkpoints` leads to: a folder of others, with things called as ours are."""
    disk = make_victims(tmp_path / "disk")
    shutil.rmtree(disk / "step-000000001")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoints").symlink_to(disk)
    return disk


def test_checkpoints_may_lie_on_another_disk(tmp_path: Path, elsewhere: Path) -> None:
    before = snapshot(elsewhere)
    train(Toy(), settings(6, save_steps=2, keep_checkpoints=2), tmp_path / "run")
    assert Checkpoints(tmp_path / "run", keep=1).steps() == [4, 6]
    toy = Toy()
    train(toy, settings(6, save_steps=2, keep_checkpoints=1), tmp_path / "run")
    assert toy.seen == []
    assert Checkpoints(tmp_path / "run", keep=1).steps() == [6]
    shared = {".", ".work"}  # folders that files come to and go from; those of others stay
    assert harm(before, snapshot(elsewhere), shared) == []
    Checkpoints(tmp_path / "run", keep=1).remove_all()
    after = snapshot(elsewhere)
    assert harm(before, after, shared) == []
    assert after.keys() == before.keys()


@pytest.mark.parametrize("name", [*FILES, "thesis.tex", "folder"])
def test_a_folder_there_that_is_no_checkpoint_is_not_removed(
    tmp_path: Path, elsewhere: Path, name: str
) -> None:
    train(Toy(), settings(4, save_steps=2, keep_checkpoints=2), tmp_path / "run")
    path = elsewhere / "step-000000002" / name
    path.mkdir() if name == "folder" else path.write_bytes(b"mine")
    before = snapshot(elsewhere / "step-000000002")
    Checkpoints(tmp_path / "run", keep=1).tidy()
    Checkpoints(tmp_path / "run", keep=1).remove_all()
    assert harm(before, snapshot(elsewhere / "step-000000002")) == []


def test_what_is_damaged_there_is_not_moved_away(tmp_path: Path, elsewhere: Path) -> None:
    train(Toy(), settings(4, save_steps=2, keep_checkpoints=2), tmp_path / "run")
    (elsewhere / "step-000000004" / "state.json").write_bytes(b"damaged")
    before = snapshot(elsewhere)
    with pytest.raises(TrainingError, match=r"link to .* where nothing is moved"):
        train(Toy(), settings(4, save_steps=2, keep_checkpoints=2), tmp_path / "run")
    assert harm(before, snapshot(elsewhere)) == []


def test_a_link_for_one_checkpoint_is_quarantined_not_what_it_leads_to(
    run: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "run"))
    victims = make_victims(tmp_path / "victims")
    before = snapshot(victims)
    (folder / "checkpoints" / "step-000000011").symlink_to(victims)
    train(Toy(), settings(10, save_steps=5), folder)
    assert harm(before, snapshot(victims)) == []
    assert Checkpoints(folder, keep=1).steps() == [5, 10]


@pytest.mark.parametrize("name", ["step-5", "step-0000000005", "step-\u0665" * 9, "step-x"])
def test_names_that_are_none_of_ours_are_no_checkpoints(
    run: Path, tmp_path: Path, name: str
) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "run"))
    (folder / "checkpoints" / name).mkdir()
    assert newest_step(folder) == (10, [])


# --- tidying -------------------------------------------------------------------------------


def test_saving_takes_the_weights_as_they_are_at_that_moment(tmp_path: Path) -> None:
    toy = Toy()
    store = Checkpoints(tmp_path, keep=1)
    before = digests(toy.module)
    for step in range(1, 21):
        store.save(Checkpoint(toy.module.state_dict(), {}, {"step": step}))
        with torch.no_grad():
            for parameter in toy.module.parameters():
                parameter.add_(1.0)
        again = Toy()
        restore_weights(again.module, store.load(step).weights)
        assert digests(again.module) == before
        before = digests(toy.module)


def test_tied_weights_survive(tmp_path: Path) -> None:
    module = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
    module["b"].weight = module["a"].weight
    store = Checkpoints(tmp_path, keep=1)
    store.save(Checkpoint(module.state_dict(), {}, {"step": 1}))
    assert digests(module) == {
        name: digests(nn.ParameterDict({"p": nn.Parameter(tensor)}))["p"]
        for name, tensor in store.load(1).weights.items()
    }


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (nn.Linear(3, 2), r"weight is \(4, 3\).*but \(2, 3\)"),
        (nn.Linear(3, 4, bias=False), "has bias, the module not"),
        (nn.Sequential(nn.Linear(3, 4)), "has no 0.bias, 0.weight"),
        (nn.Linear(3, 4, dtype=torch.float64), "torch.float32 in the checkpoint.*torch.float64"),
    ],
)
def test_weights_that_do_not_fit_are_named(other: nn.Module, named: str) -> None:
    weights = nn.Linear(3, 4).state_dict()
    with pytest.raises(TrainingError, match=named):
        restore_weights(other, weights)


def test_a_checkpoint_that_may_not_be_read_is_not_called_damaged(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, limit: int) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(checkpoint, "read_bytes", refuse)
    with pytest.raises(PermissionError):
        Checkpoints(run, keep=1).load(10)
    assert not issubclass(PermissionError, DamagedCheckpointError)
