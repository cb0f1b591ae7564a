"""Untrusted weights: nothing in them is obeyed, believed or let grow (L1, L2)."""

import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from legacy.hostile_hdf5 import mutants
from legacy.hostile_pickles import GOOD, live, payloads
from legacy.sandboxed import needs_sandbox, read_many
from legacy.torch_containers import new_container, old_container

from polyseme.legacy.reading import write_hdf5

MEMORY = 200 << 20


# L1: hostile pickles


@needs_sandbox
def test_no_payload_is_obeyed_in_either_container(tmp_path: Path) -> None:
    canary, folder = tmp_path / "canary", tmp_path / "files"
    folder.mkdir()
    hostile = payloads(canary)
    for number, pickled in enumerate(hostile.values()):
        (folder / f"{number:03} old").write_bytes(old_container(pickled))
        (folder / f"{number:03} new").write_bytes(new_container(pickled))
    (folder / "good old").write_bytes(old_container(GOOD))
    (folder / "good new").write_bytes(new_container(GOOD))
    told = read_many("torch", folder)
    assert len(hostile) >= 60
    read = [name for name, outcome in told.outcomes.items() if not outcome.startswith("refused")]
    assert read == ["good new", "good old"]
    assert not [outcome for outcome in told.outcomes.values() if "crashed" in outcome]
    assert not canary.exists()
    assert told.heard == []
    assert told.bytes < MEMORY


@needs_sandbox
def test_the_listener_and_the_lock_each_hold_back_a_pickle_that_is_obeyed(tmp_path: Path) -> None:
    canary, folder = tmp_path / "canary", tmp_path / "files"
    folder.mkdir()
    for name, pickled in live(canary).items():
        (folder / name).write_bytes(pickled)
    heard = read_many("torch", folder, "watched").outcomes
    assert all("crashed (code 99)" in outcome for outcome in heard.values())
    assert not canary.exists()
    read_many("torch", folder, "sandboxed")
    assert not canary.exists()
    read_many("torch", folder, "free")
    assert canary.exists(), "the payloads are blunt"


# L2: hostile HDF5 (its twelve features and more are in tests/legacy/test_hdf5.py)


def check_mutants(kind: str, files: Iterator[bytes], folder: Path) -> None:
    largest = 0
    for number, data in enumerate(files):
        (folder / f"{number:05}").write_bytes(data)
        largest = max(largest, len(data))
    told = read_many(kind, folder)
    read = [outcome for outcome in told.outcomes.values() if outcome.startswith("read")]
    refused = [outcome for outcome in told.outcomes.values() if outcome.startswith("refused")]
    assert len(read) + len(refused) == len(told.outcomes)
    assert len(refused) > len(read) > 0, "bent too much or too little to show anything"
    assert not [outcome for outcome in refused if "code 99" in outcome]
    assert told.bytes <= 2 * largest + MEMORY
    shutil.rmtree(folder)


def bent_torch_files(number: int, seed: int) -> Iterator[bytes]:
    chance = random.Random(seed)
    originals = [old_container(GOOD), new_container(GOOD)]
    for _ in range(number):
        data = bytearray(chance.choice(originals))
        for _ in range(chance.choice([1, 1, 2, 4])):
            data[chance.randrange(len(data))] = chance.choice([0, 1, 0x7F, 0xFF, 0x80, ord("c")])
        yield bytes(data)


@needs_sandbox
@pytest.mark.parametrize("kind", ["hdf5", "torch"])
def test_files_bent_at_random_are_read_or_refused(kind: str, tmp_path: Path) -> None:
    make_files = mutants if kind == "hdf5" else bent_torch_files
    check_mutants(kind, make_files(150, seed=1), tmp_path)


@needs_sandbox
@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("kind", ["hdf5", "torch"])
def test_ten_thousand_files_bent_at_random(kind: str, part: int, tmp_path: Path) -> None:
    make_files = mutants if kind == "hdf5" else bent_torch_files
    check_mutants(kind, make_files(1_000, seed=100 + part), tmp_path)


@needs_sandbox
def test_a_large_file_takes_at_most_twice_its_size(tmp_path: Path) -> None:
    weights = {f"w{n}": np.ones((1024, 2048), np.float32) for n in range(16)}
    write_hdf5(tmp_path / "large.hdf5", weights)
    told = read_many("hdf5", tmp_path)
    size = (tmp_path / "large.hdf5").stat().st_size
    assert told.outcomes["large.hdf5"].startswith("read 16")
    assert told.bytes <= 2 * size + MEMORY


def test_nothing_of_torch_is_imported_to_read_an_untrusted_file() -> None:
    code = "import sys, polyseme.legacy.child; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
