"""Archives that want to be unpacked elsewhere, as something else, or without end."""

import io
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

NAME = "model.hdf5"
LIMIT = 1 << 20


def _zip(*members: tuple[zipfile.ZipInfo | str, bytes], packed: bool = False) -> bytes:
    stream = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(stream, "w", kind) as archive:
        for name, data in members:
            archive.writestr(name, data, kind)
    return stream.getvalue()


def _twice(name: str, one: bytes, two: bytes) -> bytes:
    """Two members of one name; written under two names of a length, since zipfile warns."""
    other = "x" * len(name)
    return _zip((name, one), (other, two)).replace(other.encode(), name.encode())


def _link(target: str, name: str = NAME) -> bytes:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return _zip((info, target.encode()))


def _device() -> bytes:
    info = zipfile.ZipInfo(NAME)
    info.create_system = 3
    info.external_attr = (stat.S_IFCHR | 0o666) << 16
    return _zip((info, b"x"))


def _lying_size(told: int) -> bytes:
    """A bomb whose index tells a small size."""
    data = bytes(64 << 20)
    honest = _zip((NAME, data), packed=True)
    return honest.replace(struct.pack("<I", len(data)), struct.pack("<I", told))


def _wrong_sum() -> bytes:
    return _zip((NAME, b"abcd" * 100)).replace(b"abcd" * 100, b"abce" * 100)


def _encrypted() -> bytes:
    data = bytearray(_zip((NAME, b"secret")))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + at] |= 1
    return bytes(data)


def _unusual_packing() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(NAME, b"x" * 100)
    return stream.getvalue()


def _long_index() -> bytes:
    return _zip(*((f"file-{number:06}", b"") for number in range(5_000)))


def _two_ends() -> bytes:
    """The usual end tells of one member; that for large archives, believed before it, of many."""
    data = _zip((NAME, b"x"))
    at = data.index(b"PK\x05\x06")
    large = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 1 << 40, 1 << 40, at, 0)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, at, 1)
    return data[:at] + large + locator + data[at:]


def _tar(*members: tuple[str, bytes | str, bytes]) -> bytes:
    """Members as name, type (and where it links to), content."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, kind, data in members:
            info = tarfile.TarInfo(name)
            info.type, info.size = (tarfile.REGTYPE if kind == "" else tarfile.SYMTYPE), len(data)
            info.linkname = str(kind)
            if kind:
                info.size = 0
            archive.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def _tar_of_long_links() -> bytes:
    """CVE-2025-4517: links so long that resolving them stops short of the last one."""
    step, links = "d" * 247, []
    path = ""
    for letter in "abcdefghijklmnop":
        links.append((path + letter, step + "/", b""))
        path += step + "/"
    links.append((path + "l" * 254, "../" * 16, b""))
    links.append(("escape", path + "l" * 254 + "/../../outside", b""))
    return _tar(*links, ("escape/evil", "", b"evil"))


REFUSED: dict[str, Callable[[Path], bytes]] = {
    "the name twice": lambda _: _twice(NAME, b"one", b"two"),
    "a link": lambda _: _link("/etc/passwd"),
    "a link out of the folder": lambda _: _link("../outside"),
    "a device": lambda _: _device(),
    "a folder": lambda _: _zip((NAME + "/", b"")),
    "a bomb": lambda _: _zip((NAME, bytes(64 << 20)), packed=True),
    "a bomb that tells a small size": lambda _: _lying_size(1000),
    "a bomb that tells the limit": lambda _: _lying_size(LIMIT),
    "a wrong sum": lambda _: _wrong_sum(),
    "encrypted": lambda _: _encrypted(),
    "packed in an unusual way": lambda _: _unusual_packing(),
    "an index of thousands": lambda _: _long_index(),
    "two ends": lambda _: _two_ends(),
    "cut off": lambda _: _zip((NAME, b"x" * 100))[:-30],
    "nothing": lambda _: b"",
    "bytes": lambda _: zlib.compress(bytes(1000)),
    "a tar": lambda _: _tar((NAME, "", b"x")),
    "a tar with a way out": lambda _: _tar(("../outside", "", b"x")),
    "a tar from the root": lambda folder: _tar((str(folder / "outside"), "", b"x")),
    "a tar of links": lambda _: _tar(("a", "..", b""), ("a/outside", "", b"x")),
    "a tar of long links": lambda _: _tar_of_long_links(),
}
# The member asked for is sound, and what else is in the archive stays there.
READ: dict[str, Callable[[Path], bytes]] = {
    "a way out": lambda _: _zip(("../outside", b"evil"), (NAME, b"good")),
    "a way out by backslash": lambda _: _zip(("..\\outside", b"evil"), (NAME, b"good")),
    "a way from the root": lambda folder: _zip((f"{folder}/outside", b"evil"), (NAME, b"good")),
    "a link beside it": lambda _: _zip((NAME, b"good"), ("a" + NAME, b"evil")),
    "a long way out": lambda _: _zip(("a/" * 500 + "../" * 501 + "outside", b"evil"),
                                     (NAME, b"good")),
}  # fmt: skip
