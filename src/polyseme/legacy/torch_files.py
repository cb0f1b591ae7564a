"""torch's two containers for a state dict: which arrays they hold, and where.

    in   an open file               read only inside the sandbox, see `child.py`
    out  a table of its tensors     name, shape, strides, type and offset of each

Since 2020 torch writes a zip with a pickle and one uncompressed member per storage. Before, it
wrote five pickles and then the storages, each with its length before it; ELMoForManyLangs' files
of 2018 are such. Both are read by position only: nothing is unpacked.
"""

import io
import struct
import zipfile
from typing import Any, BinaryIO

from polyseme.legacy.contents import MAX_ARRAYS, ArraySpec, RefusedError
from polyseme.legacy.descriptions import Mapping, Storage, Tensor
from polyseme.legacy.pickles import MAX_BYTES, Reader

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001


def find_tensors(stream: BinaryIO, size: int) -> list[ArraySpec]:
    """The tensors of a torch file of `size` bytes that holds a state dict."""
    is_zip = stream.read(4) == b"PK\x03\x04"
    stream.seek(0)
    return _in_zip(stream) if is_zip else _in_old_container(stream, size)


def warm_up() -> None:
    """Import what reading a zip imports late, while importing is still possible."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a", b"")
    b"a".decode("cp437")  # the encoding of names that are not said to be UTF-8
    with zipfile.ZipFile(stream) as archive:
        archive.infolist()


def _in_zip(stream: BinaryIO) -> list[ArraySpec]:
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, UnicodeError) as error:
        raise RefusedError(f"it is a broken zip: {error}") from error
    if len(members) > MAX_ARRAYS or len({one.filename for one in members}) < len(members):
        raise RefusedError("its zip has very many members, or two with one name")
    by_name = {one.filename: one for one in members}
    pickles = [name for name in by_name if name.endswith("/data.pkl") and name.count("/") == 1]
    if len(pickles) != 1:
        raise RefusedError("it is a zip, but not one that torch wrote: it has no data.pkl")
    folder = pickles[0].removesuffix("data.pkl")
    order = by_name.get(folder + "byteorder")
    if order is not None and _member(stream, order) != b"little":
        raise RefusedError("its numbers are big-endian")
    tensors = _state_dict(Reader(_member(stream, by_name[pickles[0]])).read())
    specs = []
    for name, tensor in tensors.items():
        member = by_name.get(f"{folder}data/{tensor.storage.key}")
        if member is None or member.file_size != tensor.storage.num_bytes:
            raise RefusedError(f"{name!r} has no storage of its size")
        specs.append(tensor.spec(name, _data_offset(stream, member)))
    return specs


def _member(stream: BinaryIO, member: zipfile.ZipInfo) -> bytes:
    if member.file_size > MAX_BYTES:
        raise RefusedError(f"{member.filename!r} is longer than {MAX_BYTES:,} bytes")
    stream.seek(_data_offset(stream, member))
    return stream.read(member.file_size)


def _data_offset(stream: BinaryIO, member: zipfile.ZipInfo) -> int:
    """Where a member's bytes begin: behind its own header, which the zip's index leaves out."""
    is_plain = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 0x1
    if not is_plain or member.compress_size != member.file_size or member.header_offset < 0:
        raise RefusedError(f"{member.filename!r} is compressed or encrypted")
    stream.seek(member.header_offset)
    header = stream.read(30)
    if len(header) < 30 or header[:4] != b"PK\x03\x04":
        raise RefusedError(f"{member.filename!r} is not where the zip's index says")
    name, extra = struct.unpack("<HH", header[26:30])
    return int(member.header_offset + 30 + name + extra)


def _in_old_container(stream: BinaryIO, size: int) -> list[ArraySpec]:
    reader = Reader(stream.read(MAX_BYTES))
    if reader.read() != _MAGIC or reader.read() != _PROTOCOL:
        raise RefusedError("it is not a file that torch wrote")
    system = reader.read()
    if type(system) is not Mapping or system.get("little_endian") is not True:
        raise RefusedError("its numbers are big-endian")
    tensors, keys = _state_dict(reader.read()), reader.read()
    if type(keys) is not list or not all(type(key) is str for key in keys):
        raise RefusedError("it has no list of storages")
    storages = {tensor.storage.key: tensor.storage for tensor in tensors.values()}
    if len({*keys}) < len(keys) or storages.keys() != {*keys}:
        raise RefusedError("its storages are not those of its tensors")
    offsets, position = {}, reader.position
    for key in keys:
        stream.seek(position)
        if stream.read(8) != struct.pack("<q", storages[key].numbers):
            raise RefusedError(f"storage {key!r} has another length than its tensors say")
        offsets[key] = position + 8
        position += 8 + storages[key].num_bytes
    if position > size:
        raise RefusedError("it is cut off")
    return [tensor.spec(name, offsets[tensor.storage.key]) for name, tensor in tensors.items()]


def _state_dict(value: Any) -> dict[str, Tensor]:
    if type(value) is not Mapping or not value:
        raise RefusedError("it holds something else than a dict of tensors")
    tensors: dict[str, Tensor] = {}
    kinds: dict[str, Storage] = {}
    for name, tensor in value.items():
        if type(name) is not str or type(tensor) is not Tensor:
            raise RefusedError(f"{name!r} is not a tensor with a name")
        tensors[name] = tensor
        if kinds.setdefault(tensor.storage.key, tensor.storage) != tensor.storage:
            raise RefusedError(f"storage {tensor.storage.key!r} is described in two ways")
    return tensors
