"""Files of weights that tell untruths about themselves, made from a true one."""

import json
import struct
from collections.abc import Callable
from typing import Any

import torch
from safetensors.torch import load, save


def header_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def joined(header: Any, body: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def retold(change: Callable[[dict[str, Any]], None]) -> Callable[[bytes], bytes]:
    """The file with what its header tells of its first tensor changed."""

    def harm(data: bytes) -> bytes:
        header, body = header_of(data)
        change(header[sorted(key for key in header if key != "__metadata__")[0]])
        return joined(header, body)

    return harm


def revalued(change: Callable[[dict[str, torch.Tensor]], None]) -> Callable[[bytes], bytes]:
    """The file with other values, written by safetensors itself."""

    def harm(data: bytes) -> bytes:
        weights = {name: weight.clone() for name, weight in load(data).items()}
        change(weights)
        return save(weights)

    return harm


def first_to(dtype: torch.dtype) -> Callable[[bytes], bytes]:
    def change(weights: dict[str, torch.Tensor]) -> None:
        name = sorted(weights)[0]
        weights[name] = weights[name].to(dtype)

    return revalued(change)


def first_at(value: float) -> Callable[[bytes], bytes]:
    def change(weights: dict[str, torch.Tensor]) -> None:
        weights[sorted(weights)[0]].view(-1)[0] = value

    return revalued(change)


def without_first(weights: dict[str, torch.Tensor]) -> None:
    del weights[sorted(weights)[0]]


def overlapping(data: bytes) -> bytes:
    header, body = header_of(data)
    names = sorted(key for key in header if key != "__metadata__")
    same = next(b for a in names for b in names if a < b and
                header[a]["shape"] == header[b]["shape"])  # fmt: skip
    other = next(a for a in names if a < same and header[a]["shape"] == header[same]["shape"])
    header[same]["data_offsets"] = header[other]["data_offsets"]
    return joined(header, body)


def gap(data: bytes) -> bytes:
    header, body = header_of(data)
    last = max((told for told in header.values() if "shape" in told),
               key=lambda told: told["data_offsets"][1])  # fmt: skip
    last["data_offsets"] = [offset + 64 for offset in last["data_offsets"]]
    return joined(header, body + bytes(64))


SAFETENSORS: dict[str, Callable[[bytes], bytes]] = {
    "length beyond the file": lambda data: struct.pack("<Q", len(data)) + data[8:],
    "length of 2^63": lambda data: struct.pack("<Q", 1 << 63) + data[8:],
    "length of zero": lambda data: struct.pack("<Q", 0) + data[8:],
    "length one less": lambda data: struct.pack("<Q", len_of(data) - 1) + data[8:],
    "length one more": lambda data: struct.pack("<Q", len_of(data) + 1) + data[8:],
    "header of 100 MB": lambda data: joined(b"{" + b" " * (100 << 20) + b"}", b""),
    "header of 99 MB of names": lambda _: joined(
        b"{" + b",".join(b'"%06d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}' % n
                         for n in range(1_500_000)) + b"}", b""),
    "header nested without end": lambda data: joined(b"[" * 100_000, b""),
    "header no table": lambda data: joined([1, 2], b""),
    "header of nothing": lambda data: joined({}, b""),
    "header not utf-8": lambda data: joined(b"\xff\xff", b""),
    "overlap": overlapping,
    "gap": gap,
    "bytes left over": lambda data: data + bytes(64),
    "cut off": lambda data: data[:-4],
    "offsets backwards": retold(lambda told: told["data_offsets"].reverse()),
    "offsets beyond the file": retold(lambda told: told.update(data_offsets=[0, 1 << 40])),
    "offsets negative": retold(lambda told: told.update(data_offsets=[-8, 8])),
    "shape without end": retold(lambda told: told.update(shape=[1 << 40, 1 << 40])),
    "shape of another size": retold(lambda told: told["shape"].append(2)),
    "shape turned": retold(lambda told: told.update(shape=[1, *told["shape"]])),
    "type unknown": retold(lambda told: told.update(dtype="PICKLE")),
    "type told otherwise": retold(lambda told: told.update(dtype="I32")),
    "type of other bytes": retold(lambda told: told.update(dtype="F16")),
    "type missing": retold(lambda told: told.pop("dtype")),
    "doubles": first_to(torch.float64),
    "integers": first_to(torch.int32),
    "eight bits": first_to(torch.float8_e4m3fn),
    "not a number": first_at(float("nan")),
    "infinite": first_at(float("-inf")),
    "one missing": revalued(without_first),
    "one too many": revalued(lambda weights: weights.update(more=torch.zeros(2))),
}  # fmt: skip


def len_of(data: bytes) -> int:
    return int(struct.unpack("<Q", data[:8])[0])
