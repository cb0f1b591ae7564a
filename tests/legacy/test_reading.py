"""What the parent does with its child: it believes nothing, waits for nothing, leaves nothing."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from legacy.hostile_pickles import GOOD
from legacy.sandboxed import needs_sandbox
from legacy.torch_containers import old_container
from polyseme.errors import ModelError
from polyseme.legacy import reading


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights.pkl"
    path.write_bytes(old_container(GOOD))
    return path


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Puts other code before, or in the place of, the child's own."""

    def put(code: str, *, instead: bool = False) -> None:
        monkeypatch.setattr(reading, "_START", code if instead else f"{code}; {reading._START}")

    before = set(psutil.Process().children())
    yield put
    assert set(psutil.Process().children()) <= before, "a child was left behind"


@pytest.mark.parametrize(
    "harm",
    [
        "sandbox._CREATE_RULESET = 9999",  # no such call: a kernel without Landlock
        "sandbox._RESTRICT_SELF = 9999",
        "from polyseme.legacy import syscalls; syscalls.CALLS.clear()",
        "from polyseme.legacy import syscalls; syscalls._FILTER = 77",
    ],
)
def test_where_a_lock_is_missing_nothing_is_read(harm: str, weights: Path, child: Any) -> None:
    child(f"import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
          f"from polyseme.legacy import sandbox; {harm}")  # fmt: skip
    with pytest.raises(ModelError, match=r"was not read\. .*Linux 5\.13.*Convert the model on"):
        reading.read_state_dict(weights)


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_are_told_the_way_out(
    platform: str, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(ModelError, match=f"This system is {platform}.*Convert the model on"):
        reading.read_state_dict(weights)


@needs_sandbox
def test_an_honest_child_is_believed(weights: Path, child: Any) -> None:
    assert reading.read_state_dict(weights)["w"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os.abort()", "crashed"),
        ("raise SystemExit(3)", "crashed"),
        ("pass", "without an answer"),
        ("print('{')", "without an answer"),
        ("print('[' * 100000)", "without an answer"),
        ("print('[]')", "an invalid answer"),
        ("print('{}')", "an invalid answer"),
        ("print('{\"refused\": 3}')", "it was refused"),
        ("while True: print('x' * 65536)", "more arrays"),
        ("import time; time.sleep(300)", "took more than"),
        ("import os, time; os.close(1); time.sleep(300)", "did not come to an end"),
        ("import ctypes; ctypes.string_at(0)", "crashed"),
    ],
)
def test_a_child_that_dies_hangs_or_babbles_is_a_refused_file(
    code: str, words: str, weights: Path, child: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PATIENCE", 10.0 if "sleep" not in code else 1.0)
    child(code, instead=True)
    with pytest.raises(ModelError, match=f"{weights.name} was refused: .*{words}.*take the file"):
        reading.read_state_dict(weights)


def test_words_of_the_file_reach_the_terminal_without_its_codes(weights: Path, child: Any) -> None:
    told = json.dumps({"refused": "a\x1b[2J\nb" + "c" * 5000})
    child(f"print({told!r})", instead=True)
    with pytest.raises(ModelError) as caught:
        reading.read_state_dict(weights)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1500


def spec(**changes: Any) -> dict[str, Any]:
    return {"name": "w", "shape": [4], "strides": [1], "dtype": "<f4", "offset": 0, **changes}


LIES: dict[str, Any] = {
    "no list": {},
    "no table": [3],
    "part missing": [{"name": "w"}],
    "part too many": [spec(more=1)],
    "outside": [spec(offset=10**6)],
    "ending outside": [spec(shape=[10**5])],
    "larger than any memory": [spec(shape=[1 << 40, 1 << 20], strides=[0, 0])],
    "overflowing": [spec(shape=[1 << 61, 8], strides=[8, 1])],
    "beyond 64 bits": [spec(shape=[1 << 80])],
    "negative": [spec(offset=-4)],
    "negative stride": [spec(strides=[-1], offset=64)],
    "negative shape": [spec(shape=[-1])],
    "empty": [spec(shape=[0])],
    "fraction": [spec(offset=1.5)],
    "truth": [spec(offset=True)],
    "text": [spec(offset="0")],
    "shape of text": [spec(shape="4")],
    "other numbers": [spec(dtype="O")],
    "numbers of a list": [spec(dtype=[["a", "O"]])],
    "axes": [spec(shape=[1] * 9, strides=[1] * 9)],
    "strides missing": [spec(strides=[])],
    "overlap": [spec(), spec(name="v", offset=8)],
    "repeated": [spec(shape=[4, 1000], strides=[1, 0])],
    "repeating": [spec(shape=[3, 3], strides=[1, 1])],
    "one name": [spec(), spec(offset=16)],
    "unprintable name": [spec(name="a\n")],
    "no name": [spec(name="")],
    "name of a number": [spec(name=3)],
    "long name": [spec(name="n" * 5000)],
    "very many": [spec(name=f"n{n}") for n in range(10_001)],
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_table_that_cannot_be_true_is_refused(
    lie: Any, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = json.dumps({"arrays": lie}).encode()
    monkeypatch.setattr(reading, "_run_child", lambda *_: answer)
    with pytest.raises(ModelError, match="was refused"):
        reading.read_state_dict(weights)


def test_what_is_no_file_is_said_so_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "nowhere", tmp_path, tmp_path / "pipe"):
        with pytest.raises(ModelError, match="There is no file"):
            reading.read_state_dict(path)
