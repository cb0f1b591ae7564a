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


def _circle(file: h5py.File, _: Path) -> None:
    group = file.create_group("a")
    group["back"] = group


def _circle_to_the_top(file: h5py.File, _: Path) -> None:
    file.create_group("a")["top"] = file["/"]


def _twice(file: h5py.File, _: Path) -> None:
    file["a"] = FOUR
    file["b"] = file["a"]


def _deep(file: h5py.File, _: Path) -> None:
    file["/".join("a" * 40)] = FOUR


def _compact(file: h5py.File, _: Path) -> None:
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((4,))
    h5py.h5d.create(file.id, b"w", h5py.h5t.IEEE_F32LE, space, plan).write(
        h5py.h5s.ALL, h5py.h5s.ALL, FOUR
    )


def _of(name: str = "w", **options: object) -> Callable[[h5py.File, Path], None]:
    def make(file: h5py.File, _: Path) -> None:
        file.create_dataset(name, **options)

    return make


def _linked(link: Callable[[Path], object]) -> Callable[[h5py.File, Path], None]:
    def make(file: h5py.File, folder: Path) -> None:
        file["a"] = FOUR
        file["w"] = link(folder)

    return make


_PAIRS = np.zeros(4, dtype=[("a", "<f4"), ("b", "<f4")])
ATTACKS: dict[str, Callable[[h5py.File, Path], None]] = {
    "external storage": _external_storage,
    "external link": _linked(lambda folder: h5py.ExternalLink(str(folder / "other"), "/w")),
    "soft link": _linked(lambda _: h5py.SoftLink("/a")),
    "soft link to nothing": _linked(lambda _: h5py.SoftLink("/nowhere")),
    "virtual dataset": _virtual,
    "gzip": _of(data=np.zeros(1000, "<f4"), compression="gzip"),
    "shuffle": _of(data=FOUR, chunks=(2,), shuffle=True),
    "checksum": _of(data=FOUR, chunks=(2,), fletcher32=True),
    "chunks": _of(data=FOUR, chunks=(2,)),
    "chunk bomb": _of(shape=(1 << 40,), dtype="<f4", chunks=(1 << 20,), compression="gzip"),
    "huge shape, never written": _of(shape=(1 << 50,), dtype="<f4"),
    "huge shape of many axes": _of(shape=(1 << 7,) * 8, dtype="<f4"),
    "never written": _of(shape=(4,), dtype="<f4"),
    "text": _of(data=["a", "b"], dtype=h5py.string_dtype()),
    "ragged": _of(shape=(2,), dtype=h5py.vlen_dtype(np.dtype("<f4"))),
    "compound": _of(data=_PAIRS),
    "array of arrays": _of(shape=(2,), dtype=np.dtype("(3,)<f4")),
    "references": _of(shape=(2,), dtype=h5py.ref_dtype),
    "region references": _of(shape=(2,), dtype=h5py.regionref_dtype),
    "enumeration": _of(data=np.zeros(3, "i1"), dtype=h5py.enum_dtype({"a": 0}, "i1")),
    "opaque": _of(data=np.zeros(4, "V8")),
    "big-endian": _of(data=FOUR.astype(">f4")),
    "integers": _of(data=np.arange(4)),
    "halves": _of(data=FOUR.astype("<f2")),
    "complex": _of(data=FOUR.astype("<c8")),
    "booleans": _of(data=FOUR > 1),
    "no values": _of(data=h5py.Empty("<f4")),
    "zero size": _of(data=np.zeros((0, 3), "<f4")),
    "inline": _compact,
    "named type": lambda file, _: file.__setitem__("w", np.dtype("<f4")),
    "circle": _circle,
    "circle to the top": _circle_to_the_top,
    "one array, two names": _twice,
    "forty levels": _deep,
    "long name": _of("n" * 2000, data=FOUR),
    "unprintable name": _of("a\x1b[2J", data=FOUR),
    "nothing finite": _of(data=np.array([1, np.nan], "<f4")),
    "doubles beyond floats": _of(data=np.array([1e300], "<f8")),
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
