"""A small folder that stands for gigabytes is refused soon, in little memory, by an error."""

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from slack import allowed

from reliability.bomb_child import MEMORY
from reliability.folder_bombs import ANY, NAMED, Harm, Honest, make_bomb, make_honest

SECONDS = 5.0
BATCH = 50  # bombs for each process
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory as Linux counts it")
Bomb = tuple[str, str, Harm]  # name, kind of folder, what is done to it


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Honest:
    return make_honest(tmp_path_factory.mktemp("honest"))


def outcomes(honest: Honest, folder: Path, bombs: list[Bomb], seed: int) -> list[dict[str, Any]]:
    """How each bomb ended; a process that dies is one outcome, and the next one goes on."""
    found: list[dict[str, Any]] = []
    for begin in range(0, len(bombs), BATCH):
        some = bombs[begin : begin + BATCH]
        folders = [folder / f"{begin + number}" for number in range(len(some))]
        for number, ((_, kind, harm), to) in enumerate(zip(some, folders, strict=True)):
            make_bomb(honest, to, kind, harm, random.Random(seed + begin + number))
        cases = [[kind, str(to)] for (_, kind, _), to in zip(some, folders, strict=True)]
        while cases:
            ended = run_child(honest, cases)
            found += ended
            cases = cases[len(ended) :]
        for to in folders:
            shutil.rmtree(to, ignore_errors=True)
    return [{"name": name, **told} for (name, _, _), told in zip(bombs, found, strict=True)]


def run_child(honest: Honest, cases: list[list[str]]) -> list[dict[str, Any]]:
    told = {kind: str(path) for kind, path in asdict(honest).items()}
    ran = subprocess.run(
        [sys.executable, "-m", "reliability.bomb_child", json.dumps(told), json.dumps(cases)],
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1",
             "MALLOC_ARENA_MAX": "1"},
        capture_output=True,
        text=True,
        timeout=280,
    )  # fmt: skip
    ended = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    if len(ended) < len(cases):  # it died of the next one
        ended.append({"ended": "died", "told": ran.stderr[-1500:], "seconds": 0.0, "bytes": 0})
    return ended


def faults(found: list[dict[str, Any]], *, may_open: bool) -> list[dict[str, Any]]:
    """Those that did not end as promised."""
    fine = {"refused", "opened"} if may_open else {"refused"}
    return [
        each
        for each in found
        if each["ended"] not in fine or each["seconds"] > allowed(SECONDS) or each["bytes"] > MEMORY
    ]


def any_bombs(number: int, seed: int) -> list[Bomb]:
    chance = random.Random(seed)
    kinds = [chance.choice(sorted(ANY)) for _ in range(number)]
    chosen = [(kind, chance.choice(ANY[kind])) for kind in kinds]
    return [(f"{kind}: {harm.__name__}", kind, harm) for kind, harm in chosen]


def check_any(honest: Honest, folder: Path, number: int, seed: int) -> None:
    found = outcomes(honest, folder, any_bombs(number, seed), seed)
    assert faults(found, may_open=True) == []
    ended = Counter(each["ended"] for each in found)
    print(number, dict(ended), f"slowest {max(each['seconds'] for each in found):.2f} s,",
          f"largest {max(each['bytes'] for each in found) >> 20} MB")  # fmt: skip
    # Some changes do no harm: a description that is longer, a width that is the same.
    assert ended["refused"] > 0.6 * number


def test_each_bomb_of_the_audit_is_refused_and_honest_folders_are_opened(
    honest: Honest, tmp_path: Path
) -> None:
    bombs: list[Bomb] = [(name, kind, harm) for name, (kind, harm) in NAMED.items()]
    sound: list[Bomb] = [("honest", kind, lambda *_: None) for kind in asdict(honest)]
    found = outcomes(honest, tmp_path, [*sound, *bombs], 0)
    assert [each["ended"] for each in found[: len(sound)]] == ["opened"] * 4
    assert faults(found[: len(sound)], may_open=True) == []
    assert faults(found[len(sound) :], may_open=False) == []


def test_no_bomb_made_by_chance_goes_off(honest: Honest, tmp_path: Path) -> None:
    check_any(honest, tmp_path, 40, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_none_of_a_thousand_bombs_goes_off(honest: Honest, tmp_path: Path) -> None:
    check_any(honest, tmp_path, 1_000, seed=100)
