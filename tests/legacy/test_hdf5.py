"""HDF5 weights: plain ones come out as they went in, all else is refused."""

import importlib.util
import json
import time
from pathlib import Path

import h5py  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import pytest

from legacy.hostile_hdf5 import ATTACKS, SECRET, make_attack, plain_file
from legacy.sandboxed import needs_sandbox, read_many
from polyseme.errors import MissingExtraError, ModelError
from polyseme.legacy.contents import RefusedError, check_specs, fetch, specs_from_json
from polyseme.legacy.hdf5 import find_arrays
from polyseme.legacy.reading import read_hdf5, write_hdf5

NAMES = ["CNN/W_cnn_0", "CNN/b_cnn_0", "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/B", "char_embed"]


def some_arrays() -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    random = np.random.default_rng(3)
    shapes = [(1, 2, 3, 4), (4,), (8,), (261, 4)]
    return {
        name: random.normal(size=shape).astype(np.float32)
        for name, shape in zip(NAMES, shapes, strict=True)
    }


@needs_sandbox
@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
def test_arrays_come_out_as_h5py_put_them_in(tmp_path: Path, libver: str, dtype: str) -> None:
    path = tmp_path / "weights.hdf5"
    arrays = some_arrays()
    with h5py.File(path, "w", libver=libver) as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array.astype(dtype))
        file["scalar"] = np.asarray(2.5, dtype)
        file.attrs["title"] = "not looked at"
    found = read_hdf5(path)
    assert found.keys() == {*NAMES, "scalar"}
    assert found["scalar"].shape == ()
    assert found["scalar"] == np.float32(2.5)
    for name, array in arrays.items():
        assert found[name].dtype == np.float32
        assert found[name].flags.c_contiguous
        assert np.array_equal(found[name], array)


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


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What became of each attack, all read in one go."""
    made, folder = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("attacks")
    for name in ATTACKS:
        make_attack(made, name).rename(folder / name)
    return read_many("hdf5", folder).outcomes


@needs_sandbox
@pytest.mark.parametrize("name", ATTACKS)
def test_what_weights_do_not_need_is_refused(outcomes: dict[str, str], name: str) -> None:
    assert outcomes[name].startswith("refused: ")
    assert "crashed" not in outcomes[name]
    assert outcomes[name].isprintable()


@needs_sandbox
def test_a_block_of_foreign_bytes_at_the_start_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.hdf5"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["w"] = np.zeros(3, "<f4")
    with pytest.raises(ModelError, match="foreign bytes"):
        read_hdf5(path)


@needs_sandbox
@pytest.mark.parametrize("content", [b"", b"\x89HDF\r\n\x1a\n", b"PK\x03\x04", b"\x80\x02N."])
def test_what_is_no_hdf5_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "weights.hdf5"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="was refused: HDF5 cannot read it"):
        read_hdf5(path)


def test_h5py_alone_would_have_told_the_secret(tmp_path: Path) -> None:
    """Were this to fail, the attack would be blunt and its refusal would show nothing."""
    for name in ("external storage", "external link", "virtual dataset"):
        with h5py.File(make_attack(tmp_path, name), "r") as file:
            assert file["w"][()].tobytes() == SECRET


def test_the_audit_refuses_without_the_sandbox_too(tmp_path: Path) -> None:
    """Two guards: were the sandbox to fail, the audit stands, and names what it met."""
    for name in ATTACKS:
        path = make_attack(tmp_path, name)
        with pytest.raises(RefusedError):
            read_here(path)


SAID = {
    "external storage": "keeps its numbers in another file",
    "external link": "soft, external or unknown link",
    "soft link": "soft, external or unknown link",
    "soft link to nothing": "soft, external or unknown link",
    "virtual dataset": "in chunks, filtered, inline or virtual",
    "gzip": "in chunks, filtered, inline or virtual",
    "chunks": "in chunks, filtered, inline or virtual",
    "inline": "in chunks, filtered, inline or virtual",
    "big-endian": "other numbers than little-endian floats",
    "named type": "neither a group nor an array",
    "circle": "met before under another name",
    "circle to the top": "met before under another name",
    "one array, two names": "met before under another name",
    "forty levels": "more than 16 levels",
    "long name": "impossible or very long name",
    "never written": "was never written",
    "no values": "holds no values",
}


@pytest.mark.parametrize("name", SAID)
def test_the_audit_says_what_it_refuses(tmp_path: Path, name: str) -> None:
    """Each step of the audit by itself: a later one might refuse the same file by chance."""
    path = make_attack(tmp_path, name)
    with path.open("rb") as stream, pytest.raises(RefusedError, match=SAID[name]):
        find_arrays(stream, path.stat().st_size)


def read_here(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as stream:
        told = [spec.to_json() for spec in find_arrays(stream, size)]
        specs = specs_from_json(json.loads(json.dumps(told)))
        check_specs(specs, size)
        fetch(stream.fileno(), specs)


def test_a_plain_file_passes_the_audit(tmp_path: Path) -> None:
    path = tmp_path / "plain"
    path.write_bytes(plain_file())
    with path.open("rb") as stream:
        assert len(find_arrays(stream, path.stat().st_size)) == 11


def test_without_h5py_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"\[hdf5\]"):
        read_hdf5(tmp_path / "any")
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r"\[hdf5\]"):
        write_hdf5(tmp_path / "any", {})
