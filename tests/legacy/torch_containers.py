"""torch's two containers around any pickle, with one storage of four floats in them."""

import io
import pickle
import struct
import zipfile

from legacy.hostile_pickles import TWO, text

MAGIC = 0x1950A86A20F9469CFC6C


def old_container(pickled: bytes, *, keys: bytes = b"]" + text("0") + b"a") -> bytes:
    """torch's container until 2020, with this pickle as what it holds and four floats."""
    magic = pickle.dumps(MAGIC, 2)
    system = TWO + b"}(" + text("little_endian") + b"\x88u."
    front = magic + pickle.dumps(1001, 2) + system + pickled + TWO + keys + b"."
    return front + struct.pack("<q4f", 4, *range(4))


def new_container(pickled: bytes) -> bytes:
    """torch's container since 2020, likewise."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("model/data.pkl", pickled)
        archive.writestr("model/byteorder", "little")
        archive.writestr("model/data/0", struct.pack("<4f", *range(4)))
        archive.writestr("model/version", "3\n")
    return stream.getvalue()
