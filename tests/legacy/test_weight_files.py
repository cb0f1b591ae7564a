"""Weights come out of HDF5 and torch files as they were put in, and nothing in a file is obeyed."""

import subprocess
import sys
import time
from pathlib import Path

import h5py  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import pytest
import torch

from legacy.hostile_hdf5 import ATTACKS, SECRET, make_attack, mutants
from legacy.hostile_pickles import GOOD, live, payloads
from legacy.torch_containers import new_container, old_container
from polyseme.errors import ModelError
from polyseme.legacy import weight_files
from polyseme.legacy.weight_files import read_hdf5, read_state_dict, write_hdf5
from polyseme.processes import python_process

NAMES = ["CNN/W_cnn_0", "CNN/b_cnn_0", "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/B", "char_embed"]


def some_arrays() -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    random = np.random.default_rng(3)
    shapes = [(1, 2, 3, 4), (4,), (8,), (261, 4)]
    return {
        name: random.normal(size=shape).astype(np.float32)
        for name, shape in zip(NAMES, shapes, strict=True)
    }


# HDF5


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_arrays_come_out_as_h5py_put_them_in(tmp_path: Path, libver: str) -> None:
    path = tmp_path / "weights.hdf5"
    arrays = some_arrays()
    with h5py.File(path, "w", libver=libver) as file:
        for number, (name, array) in enumerate(arrays.items()):
            file.create_dataset(name, data=array.astype(["<f4", "<f8", ">f4"][number % 3]))
        file["scalar"] = np.float32(2.5)
        file.attrs["title"] = "not looked at"
    found = read_hdf5(path, scratch=tmp_path)
    assert found.keys() == {*NAMES, "scalar"}
    assert found["scalar"].shape == ()
    assert found["scalar"] == np.float32(2.5)
    for name, array in arrays.items():
        assert found[name].dtype == np.float32
        assert np.array_equal(found[name], array)
    assert [child.name for child in tmp_path.iterdir()] == ["weights.hdf5"]


def test_h5py_reads_what_is_written(tmp_path: Path) -> None:
    arrays = some_arrays()
    write_hdf5(tmp_path / "folder" / "weights.hdf5", arrays)
    with h5py.File(tmp_path / "folder" / "weights.hdf5", "r") as file:
        for name, array in arrays.items():
            assert file[name].dtype == np.dtype("<f4")
            assert file[name].chunks is None
            assert np.array_equal(file[name][()], array)


def test_the_same_arrays_give_the_same_bytes_at_any_time_in_any_order(tmp_path: Path) -> None:
    arrays = some_arrays()
    write_hdf5(tmp_path / "one", arrays)
    time.sleep(1.1)  # times in HDF5 count seconds
    write_hdf5(tmp_path / "two", dict(reversed(arrays.items())))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "weights.hdf5"
    write_hdf5(path, some_arrays())
    before = path.read_bytes()
    with pytest.raises((ValueError, TypeError)):
        write_hdf5(path, {"a": np.zeros(3, np.float32), "b": np.array(["text"])})
    assert path.read_bytes() == before
    assert not list(tmp_path.rglob("weights.hdf5.*"))


@pytest.mark.parametrize("name", ATTACKS)
def test_what_is_no_plain_array_in_the_file_itself_is_not_read(tmp_path: Path, name: str) -> None:
    path = make_attack(tmp_path, name)
    try:
        found = dict(weight_files._hdf5_arrays(path))
    except (weight_files._RefusedError, OSError, TypeError):
        return
    assert found.keys() <= {"a"}, "a link was followed"


def test_h5py_alone_would_have_told_the_secret(tmp_path: Path) -> None:
    """Were this to fail, the attack would be blunt and its refusal would show nothing."""
    for name in ("external storage", "external link", "virtual dataset"):
        with h5py.File(make_attack(tmp_path, name), "r") as file:
            assert file["w"][()].tobytes() == SECRET


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = make_attack(tmp_path, "chunk bomb")
    with pytest.raises(ModelError, match="more than the file"):
        read_hdf5(path, scratch=tmp_path)


def test_a_damaged_file_is_read_or_refused_and_never_ends_us(tmp_path: Path) -> None:
    path = tmp_path / "weights.hdf5"
    refused = 0
    for data in mutants(12, seed=1):
        path.write_bytes(data)
        try:
            read_hdf5(path, scratch=tmp_path)
        except ModelError:
            refused += 1
    assert 0 < refused < 12


# torch


@pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "container before 2020"])
def test_tensors_come_out_as_torch_put_them_in(tmp_path: Path, is_zip: bool) -> None:
    torch.manual_seed(1)
    weights = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)).state_dict()
    weights["turned"] = torch.randn(2, 5).double().t()
    weights["part"] = torch.randn(6).half()[2:4]
    weights["number"] = torch.tensor(2.5)
    weights["parameter"] = torch.nn.Parameter(torch.ones(2))
    path = tmp_path / "weights.pkl"
    torch.save(weights, path, _use_new_zipfile_serialization=is_zip)
    # Both in the same way; that arrays come back from a process of their own is seen once.
    found = (
        read_state_dict(path, scratch=tmp_path)
        if is_zip
        else dict(weight_files._torch_arrays(path))
    )
    assert found.keys() == weights.keys()
    for key, value in weights.items():
        assert found[key].dtype == np.float32
        assert np.array_equal(found[key], value.detach().float().numpy())


@pytest.mark.parametrize(
    "value",
    [torch.zeros(3, dtype=torch.int64), torch.zeros(1).expand(10**9), torch.eye(3).to_sparse(),
     "text", {"nested": torch.zeros(2)}],
    ids=["integers", "repeated", "sparse", "text", "nested"],
)  # fmt: skip
@pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "container before 2020"])
def test_what_is_no_plain_tensor_of_floats_is_refused(
    tmp_path: Path, is_zip: bool, value: object
) -> None:
    path = tmp_path / "weights.pkl"
    torch.save({"w": value}, path, _use_new_zipfile_serialization=is_zip)
    with pytest.raises(weight_files._RefusedError):
        dict(weight_files._torch_arrays(path))


def read_all(folder: str) -> None:
    """In a process of its own: read every file of the folder, and tell which could be."""
    for path in sorted(Path(folder).iterdir()):
        try:
            dict(weight_files._torch_arrays(path))
        except Exception:  # noqa: BLE001 - as in the child
            continue
        print(path.name)


def test_no_pickle_is_obeyed_in_either_container(tmp_path: Path) -> None:
    canary, folder = tmp_path / "canary", tmp_path / "files"
    folder.mkdir()
    hostile = payloads(canary)
    for number, pickled in enumerate(hostile.values()):
        (folder / f"{number:03} old").write_bytes(old_container(pickled))
        (folder / f"{number:03} new").write_bytes(new_container(pickled))
    torch.save({"w": torch.ones(4)}, folder / "good old", _use_new_zipfile_serialization=False)
    (folder / "good new").write_bytes(new_container(GOOD))
    command = python_process(__name__, "read_all", str(folder))
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    assert len(hostile) >= 60
    assert run.stdout.splitlines() == ["good new", "good old"]
    assert not canary.exists()


def test_the_payloads_are_not_blunt(tmp_path: Path) -> None:
    """Python's own unpickler obeys every one of them."""
    code = """
import os, pickle, sys
from pathlib import Path
folder, canary = Path(sys.argv[1]), Path(sys.argv[2])
for path in sorted(folder.iterdir()):
    canary.unlink(missing_ok=True)
    pickle.loads(path.read_bytes())
    assert canary.exists(), path
"""
    folder, canary = tmp_path / "pickles", tmp_path / "canary"
    folder.mkdir()
    for number, pickled in enumerate(live(canary).values()):
        (folder / f"{number}").write_bytes(pickled)
    command = [sys.executable, "-W", "ignore", "-c", code, str(folder), str(canary)]
    subprocess.run(command, check=True)


def test_a_torch_with_a_known_hole_reads_no_pickle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _: "2.9.1+cpu")
    with pytest.raises(ModelError, match=r"needs torch 2\.10 or later, and this is 2\.9\.1"):
        read_state_dict(tmp_path / "any", scratch=tmp_path)


def test_a_hostile_pickle_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "weights.pkl"
    path.write_bytes(new_container(live(tmp_path / "canary")["system in protocol 2"]))
    with pytest.raises(ModelError, match=r"weights\.pkl was refused: .*take the file") as caught:
        read_state_dict(path, scratch=tmp_path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1500


# The child


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os.abort()", "crashed"),
        ("raise SystemExit(1)", "crashed"),
        ("import time; time.sleep(300)", "took more than"),
    ],
)
def test_a_child_that_dies_or_hangs_is_a_refused_file(
    code: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "weights.pkl"
    path.write_bytes(b"any")
    monkeypatch.setattr(weight_files, "SECONDS", 1 if "sleep" in code else 60)
    monkeypatch.setattr(weight_files, "python_process", lambda *_: [sys.executable, "-c", code])
    with pytest.raises(ModelError, match=f"{path.name} was refused: .*{words}"):
        read_state_dict(path, scratch=tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="where memory can be limited")
def test_a_parser_that_takes_more_memory_than_weights_need_is_stopped(tmp_path: Path) -> None:
    code = (
        "from polyseme.legacy import weight_files as w\n"
        "w.MEMORY = 64 << 20\n"
        "w._hdf5_arrays = lambda path: [('w', w.np.zeros(1 << 30, 'u1'))]\n"
        f"w.parse('hdf5', {str(tmp_path / 'file')!r}, {str(tmp_path / 'out')!r})"
    )
    (tmp_path / "file").write_bytes(b"any")
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert run.returncode == weight_files._REFUSED
    assert "more memory" in run.stdout


def test_what_is_no_file_is_said_so(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(ModelError, match="There is no file"):
            read_state_dict(path, scratch=tmp_path)
