"""Untrusted models: no weight, bit or setting is believed that does not fit (L3, L6, L7)."""

import json
import random
import resource
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w
import torch
from hypothesis import HealthCheck, given, settings
from laws.cases import CASES, make
from safetensors.torch import load_file, save
from slack import allowed

from polyseme import model as model_module
from polyseme.errors import ModelError, PolysemeError
from polyseme.model import Model
from polyseme.storage import folders, weights
from polyseme.storage.files import describe_file
from reliability.config_bombs import BOMBS, bombs
from reliability.hostile_safetensors import SAFETENSORS, revalued

CASE = make("lstm", "separate", "bidirectional", "word+characters", "full")
MEMORY = 200 << 20


# L3: hostile safetensors


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    CASE.model().save(folder, card="A test.")
    Model.load(folder)  # imports are not what is measured
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


def make_hashes_fit(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for name, told in manifest["files"].items():
        told.update(describe_file(folder / name))
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


@pytest.mark.parametrize("name", SAFETENSORS)
def test_hostile_safetensors_are_refused_though_their_hash_fits(folder: Path, name: str) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(SAFETENSORS[name](path.read_bytes()))
    make_hashes_fit(folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    with pytest.raises(ModelError, match=r"holds no weights|do not fit its settings"):
        Model.load(folder)
    assert time.process_time() - started < 2
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < MEMORY


def test_weights_written_anew_without_harm_are_read(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(revalued(lambda _: None)(path.read_bytes()))
    make_hashes_fit(folder)
    assert Model.load(folder).config == CASE.config


# L6: flipped bits


def flips(folder: Path, number: int, seed: int) -> Iterator[tuple[str, int, int]]:
    chance = random.Random(seed)
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    for _ in range(number):
        name = chance.choice(list(sizes))
        yield name, chance.randrange(sizes[name]), chance.randrange(8)


def told_of(model: Model) -> tuple[Any, ...]:
    """All that a model is, to be compared."""
    weights = [(name, w.numpy().tobytes()) for name, w in model.network.state_dict().items()]
    vocabulary = model.vocabulary
    known = (
        vocabulary.words.to_pylist(),
        vocabulary.counts.tolist(),
        vocabulary.chars.characters,
    )
    return model.config, vocabulary.config, known, weights, model.preparation, model.metadata


def silent_flips(folder: Path, number: int, seed: int) -> list[tuple[str, int, int]]:
    """Flips after which a model is loaded that is not the one that was saved."""
    whole = told_of(Model.load(folder))
    silent = []
    for name, place, bit in flips(folder, number, seed):
        path = folder / name
        data = path.read_bytes()
        bent = bytearray(data)
        bent[place] ^= 1 << bit
        path.write_bytes(bent)
        try:
            if told_of(Model.load(folder)) != whole:
                silent.append((name, place, bit))
        except PolysemeError:
            pass
        path.write_bytes(data)
    return silent


def test_no_flipped_bit_gives_another_model(folder: Path) -> None:
    assert silent_flips(folder, 60, seed=1) == []


@pytest.mark.slow
def test_no_flipped_bit_of_a_thousand_gives_another_model(folder: Path) -> None:
    assert silent_flips(folder, 1_000, seed=2) == []


def test_what_a_manifest_tells_is_sealed(folder: Path) -> None:
    path = folder / "manifest.json"
    text = path.read_text(encoding="utf-8")
    assert '"metadata": {}' in text
    path.write_text(text.replace('"metadata": {}', '"metadata": {"a": 1}'), encoding="utf-8")
    with pytest.raises(ModelError, match=r"manifest\.json"):
        Model.load(folder)


def test_without_the_hashes_flipped_bits_would_pass(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "is_as_written", lambda *_: True)
    monkeypatch.setattr(Path, "iterdir", lambda _: iter([folder / "model.safetensors"]))
    assert silent_flips(folder, 20, seed=3)


# L7: settings that ask for any size


@pytest.fixture(scope="module")
def bomb_folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folders = [tmp_path_factory.mktemp("bomb") for _ in BOMBS]
    for case, folder in zip(BOMBS, folders, strict=True):
        case.model().save(folder, card="A test.")
        Model.load(folder)  # imports and caches are not what is measured
    return folders


@pytest.fixture
def little_memory() -> Iterator[None]:
    """At most 512 MB more than there is."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    bound = pages * resource.getpagesize() + (512 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (bound, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def seconds_to_refuse(folder: Path, values: dict[str, Any], whole: Any) -> float:
    (folder / "config.toml").write_text(tomli_w.dumps({"model": values}), encoding="utf-8")
    make_hashes_fit(folder)
    best = float("inf")
    for _ in range(3):  # others use this machine too
        started = time.process_time()
        try:
            loaded = Model.load(folder)
        except PolysemeError:
            pass
        else:
            shapes = {name: w.shape for name, w in loaded.network.state_dict().items()}
            assert shapes == {name: w.shape for name, w in whole.items()}
        best = min(best, time.process_time() - started)
        if best < 0.5:
            break
    return best


def check_bomb(bomb: tuple[int, dict[str, Any]], folders: list[Path]) -> None:
    which, values = bomb
    whole = load_file(folders[which] / "model.safetensors")
    # A list of thousands is a long text; what is promised is for what little text asks.
    length = len(tomli_w.dumps(values))
    assert seconds_to_refuse(folders[which], values, whole) < allowed(0.5 + length / 500_000)


QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=100, deadline=None, suppress_health_check=QUIET, derandomize=True)
@given(bomb=bombs())
def test_settings_of_any_size_are_refused_at_once(
    bomb: tuple[int, dict[str, Any]], bomb_folders: list[Path], little_memory: None
) -> None:
    check_bomb(bomb, bomb_folders)


@pytest.mark.slow
@settings(max_examples=1_000, deadline=None, suppress_health_check=QUIET)
@given(bomb=bombs())
def test_a_thousand_settings_of_any_size_are_refused_at_once(
    bomb: tuple[int, dict[str, Any]], bomb_folders: list[Path], little_memory: None
) -> None:
    check_bomb(bomb, bomb_folders)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_network_is_built_once_and_gets_the_weights_of_the_file(
    case: Any, tmp_path: Path
) -> None:
    model = case.model()
    path = tmp_path / "model.safetensors"
    weights.write_weights(path, model.network)
    drawn = torch.random.get_rng_state()

    def build() -> Any:
        return model_module.build_network(case.config, model.vocabulary)

    loaded = weights.load_network(path, build)
    assert torch.equal(torch.random.get_rng_state(), drawn)
    before = model.network.state_dict()
    assert all(torch.equal(each, before[name]) for name, each in loaded.state_dict().items())
    assert not any(each.is_meta for each in (*loaded.parameters(), *loaded.buffers()))
    for name, shape in list(weights.read_shapes(path).items())[:3]:
        other = load_file(path)
        other[name] = torch.zeros((*shape[:-1], shape[-1] + 1) if shape else (2,))
        (tmp_path / "other.safetensors").write_bytes(save(other))
        with pytest.raises(ModelError, match="do not fit"):
            weights.load_network(tmp_path / "other.safetensors", build)
