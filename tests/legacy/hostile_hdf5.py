"""HDF5 files that use what weights do not need, and a plain one to bend at random."""

import io
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py  # type: ignore[import-untyped, unused-ignore]
import numpy as np

SECRET = b"what only the owner may read, 16"
FOUR = np.arange(4, dtype="<f4")


def _external_storage(file: h5py.File, folder: Path) -> None:
    where = [(str(folder / "secret"), 0, len(SECRET))]
    file.create_dataset("w", (len(SECRET) // 4,), "<f4", external=where)


def _virtual(file: h5py.File, folder: Path) -> None:
    layout = h5py.VirtualLayout((8,), "<f4")
    layout[:] = h5py.VirtualSource(folder / "other", "w", (8,))
    file.create_virtual_dataset("w", layout)


def _of(name: str = "w", **options: object) -> Callable[[h5py.File, Path], None]:
    def make(file: h5py.File, _: Path) -> None:
        file.create_dataset(name, **options)

    return make


def _linked(link: Callable[[Path], object]) -> Callable[[h5py.File, Path], None]:
    def make(file: h5py.File, folder: Path) -> None:
        file["a"] = FOUR
        file["w"] = link(folder)

    return make


ATTACKS: dict[str, Callable[[h5py.File, Path], None]] = {
    "external storage": _external_storage,
    "external link": _linked(lambda folder: h5py.ExternalLink(str(folder / "other"), "/w")),
    "soft link": _linked(lambda _: h5py.SoftLink("/a")),
    "virtual dataset": _virtual,
    "gzip": _of(data=np.zeros(1000, "<f4"), compression="gzip"),
    "chunk bomb": _of(shape=(1 << 40,), dtype="<f4", chunks=(1 << 20,), compression="gzip"),
    "huge shape, never written": _of(shape=(1 << 50,), dtype="<f4"),
    "integers": _of(data=np.arange(4)),
    "no values": _of(data=h5py.Empty("<f4")),
}


def make_attack(folder: Path, name: str) -> Path:
    """The file of this attack, and beside it what it is after."""
    (folder / "secret").write_bytes(SECRET)
    with h5py.File(folder / "other", "w") as other:
        other["w"] = np.frombuffer(SECRET, "<f4")
    path = folder / "attack.hdf5"
    with h5py.File(path, "w") as file:
        ATTACKS[name](file, folder)
    return path


def plain_file(libver: str = "earliest") -> bytes:
    """Weights named as bilm-tf names them, so small that most bytes are structure."""
    stream = io.BytesIO()
    generator = np.random.default_rng(5)
    with h5py.File(stream, "w", libver=libver) as file:
        names = ["char_embed", *(f"CNN/{kind}_cnn_{n}" for kind in "Wb" for n in range(3))]
        cell = "RNN/MultiRNNCell/Cell0/LSTMCell"
        names += [f"RNN_{way}/{cell}/{one}" for way in (0, 1) for one in ("B", "W_0")]
        for name in names:
            file[name] = generator.normal(size=(2, 3)).astype("<f4")
    return stream.getvalue()


def mutants(number: int, seed: int) -> Iterator[bytes]:
    """Bent copies of plain files of both generations of the format: bits, bytes, runs, lengths."""
    random_ = random.Random(seed)
    originals = [plain_file("earliest"), plain_file("latest")]
    for _ in range(number):
        data = bytearray(random_.choice(originals))
        for _ in range(random_.choice([1, 1, 2, 4, 16])):
            _bend(data, random_)
        yield bytes(data)


def _bend(data: bytearray, random_: random.Random) -> None:
    at = random_.randrange(len(data))
    # Zeros tell little: most of an old file is room for more.
    while not data[at] and random_.random() < 0.8:
        at = random_.randrange(len(data))
    match random_.randrange(6):
        case 0:
            data[at] ^= 1 << random_.randrange(8)
        case 1:
            data[at] = random_.choice([0, 1, 0x7F, 0x80, 0xFF])
        case 2:
            odd = random_.choice([0, 1, 0xFFFFFFFF, 1 << 31, len(data), 1 << 40, (1 << 64) - 1])
            data[at : at + 8] = struct.pack("<Q", odd)[: len(data) - at]
        case 3:
            del data[at : at + random_.choice([1, 8, 64])]
        case 4:
            del data[max(at, 1) :]
        case _:
            other = random_.randrange(len(data))
            data[at : at + 16] = data[other : other + 16]
    if not data:
        data += b"\0"
