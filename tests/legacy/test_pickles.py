"""torch's files: weights come out as torch put them in, and no pickle is obeyed."""

import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from legacy.hostile_pickles import (
    GOOD,
    TWO,
    live,
    name,
    payloads,
    state_dict,
    tensor,
    text,
)
from legacy.sandboxed import needs_sandbox
from legacy.torch_containers import new_container, old_container
from polyseme.errors import ModelError
from polyseme.legacy.contents import RefusedError
from polyseme.legacy.pickles import Reader
from polyseme.legacy.reading import read_state_dict

PAYLOADS = payloads(Path("canary"))


def reads(pickled: bytes) -> object:
    return Reader(pickled).read()


@needs_sandbox
@pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "old container"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_tensors_come_out_as_torch_put_them_in(
    tmp_path: Path, is_zip: bool, dtype: torch.dtype
) -> None:
    torch.manual_seed(1)
    weights = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)).state_dict()
    weights = type(weights)((key, value.to(dtype)) for key, value in weights.items())
    weights["turned"] = torch.randn(2, 5).to(dtype).t()
    weights["part"] = torch.randn(6).to(dtype)[2:4]
    weights["number"] = torch.tensor(2.5, dtype=dtype)
    path = tmp_path / "weights.pkl"
    torch.save(weights, path, _use_new_zipfile_serialization=is_zip)
    found = read_state_dict(path)
    assert list(found) == list(weights)
    for key, value in weights.items():
        assert found[key].dtype == np.float32
        assert np.array_equal(found[key], value.float().numpy())


@needs_sandbox
@pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "old container"])
@pytest.mark.parametrize(
    "value",
    [
        torch.zeros(3, dtype=torch.int64),
        torch.zeros(3, dtype=torch.bfloat16),
        torch.tensor([1.0, float("nan")]),
        torch.tensor([1e300], dtype=torch.float64),
        torch.zeros(0),
        torch.zeros(1).expand(1000),
        torch.nn.Parameter(torch.zeros(2)),
        torch.eye(3).to_sparse(),
        "text",
        {"nested": torch.zeros(2)},
    ],
    ids=str,
)
def test_what_is_no_plain_tensor_of_finite_floats_is_refused(
    tmp_path: Path, is_zip: bool, value: object
) -> None:
    path = tmp_path / "weights.pkl"
    torch.save({"w": value}, path, _use_new_zipfile_serialization=is_zip)
    with pytest.raises(ModelError, match="was refused") as caught:
        read_state_dict(path)
    assert "crashed" not in str(caught.value)


@needs_sandbox
def test_a_whole_module_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "weights.pkl"
    torch.save(torch.nn.Linear(2, 2), path)
    with pytest.raises(ModelError, match=r"names torch\.nn\.modules\.linear\.Linear"):
        read_state_dict(path)


def test_there_are_at_least_sixty_payloads() -> None:
    assert len(PAYLOADS) >= 60
    assert len({*PAYLOADS.values()}) > len(PAYLOADS) - 3


@pytest.mark.parametrize("pickled", live(Path("canary")).values(), ids=live(Path("canary")).keys())
def test_a_pickle_that_calls_is_refused_by_the_reader(pickled: bytes) -> None:
    with pytest.raises(RefusedError):
        reads(pickled)


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


def test_plain_values_are_what_python_makes_of_them() -> None:
    values = {"a": [1, 2, -3, 300, 70_000, 1 << 70], "b": (None, True, False), "c": 0.5, "d": {}}
    assert reads(pickle.dumps(values, 2)) == values
    assert reads(pickle.dumps((1, (2,), (3, 4), (5, 6, 7), (8, 9, 10, 11), ()), 2)) == (
        1, (2,), (3, 4), (5, 6, 7), (8, 9, 10, 11), (),
    )  # fmt: skip


def test_pickles_that_follow_one_another_are_read_one_by_one() -> None:
    reader = Reader(pickle.dumps(1, 2) + pickle.dumps("two", 2) + b"rest")
    assert reader.read() == 1
    assert reader.read() == "two"
    assert reader.position == len(pickle.dumps(1, 2) + pickle.dumps("two", 2))


def test_a_name_is_a_description_and_not_the_thing() -> None:
    found = reads(TWO + name("collections", "OrderedDict") + b".")
    assert not callable(found)


@pytest.mark.parametrize(
    ("module", "attribute"),
    [("os", "system"), ("builtins", "eval"), ("torch", "load"), ("torch._utils", "__builtins__")],
)
def test_a_name_that_weights_do_not_need_is_refused_before_anything_calls_it(
    module: str, attribute: str
) -> None:
    with pytest.raises(RefusedError, match=f"names {module}.{attribute}, not needed"):
        reads(TWO + name(module, attribute) + b".")


CONTAINERS = {
    "nothing": b"",
    "cut zip": new_container(GOOD)[:-10],
    "zip without its index": new_container(GOOD)[:100],
    "cut old container": old_container(GOOD)[:-1],
    "old container, other magic": pickle.dumps(7, 2) + old_container(GOOD)[14:],
    "old container, key missing": old_container(GOOD, keys=b"]"),
    "old container, key twice": old_container(GOOD, keys=b"](" + text("0") * 2 + b"e"),
    "old container, key too many": old_container(GOOD, keys=b"](" + text("0") + text("1") + b"e"),
    "old container, keys no list": old_container(GOOD, keys=b"}"),
    "old container, other length": old_container(GOOD)[:-24] + struct.pack("<q4f", 5, 0, 0, 0, 0),
    "old container, not finite": old_container(GOOD)[:-4] + struct.pack("<f", float("inf")),
    "tar of torch 0.1": b"sys_info" + bytes(504),
}


def changed_zip(**changes: object) -> bytes:
    """A good file with one thing about its zip changed."""
    import io

    stream = io.BytesIO()
    kind = int(str(changes.get("compression", zipfile.ZIP_STORED)))
    with zipfile.ZipFile(stream, "w", kind) as archive:
        archive.writestr("m/data.pkl", GOOD)
        archive.writestr("m/byteorder", str(changes.get("order", "little")))
        archive.writestr(str(changes.get("storage", "m/data/0")), bytes(16))
        if changes.get("again"):
            archive.writestr(str(changes["again"]), GOOD)
    return stream.getvalue()


CONTAINERS |= {
    "zip, compressed": changed_zip(compression=zipfile.ZIP_DEFLATED),
    "zip, big-endian": changed_zip(order="big"),
    "zip, storage missing": changed_zip(storage="m/data/1"),
    "zip, two pickles": changed_zip(again="n/data.pkl"),
    "zip, pickle elsewhere": new_container(GOOD).replace(b"data.pkl", b"code.pkl"),
    "zip, header elsewhere": b"PK\x03\x04" + bytes(64) + new_container(GOOD)[4:],
}


@needs_sandbox
@pytest.mark.parametrize("content", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_a_container_that_is_not_as_torch_writes_it_is_refused(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "weights.pkl"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="was refused"):
        read_state_dict(path)


@needs_sandbox
def test_the_container_these_are_bent_from_is_read(tmp_path: Path) -> None:
    path = tmp_path / "weights.pkl"
    for content in (old_container(GOOD), new_container(GOOD)):
        path.write_bytes(content)
        assert read_state_dict(path)["w"].tolist() == [0, 1, 2, 3]
    path.write_bytes(changed_zip())
    assert read_state_dict(path)["w"].tolist() == [0, 0, 0, 0]


def test_versions_hung_on_a_state_dict_are_dropped() -> None:
    metadata = b"}" + text("_metadata") + name("collections", "OrderedDict") + b")Rsb."
    found = reads(state_dict(text("w"), tensor())[:-1] + metadata)
    assert isinstance(found, dict)
    assert list(found) == ["w"]
