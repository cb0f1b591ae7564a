"""Pickles that weights are never made of, one for each way of doing harm that is known.

Each is a whole pickle. Those of `live` Python's own unpickler would obey by making the file that
`canary` names, which shows that they are not blunt.
"""

import collections
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

TWO = b"\x80\x02"


class Calling:
    """Pickles as a call of a function with arguments."""

    def __init__(self, function: Callable[..., Any], *arguments: Any, **state: Any) -> None:
        self.call = (function, arguments, state or None)

    def __reduce__(self) -> Any:
        return self.call


def text(value: str) -> bytes:
    data = value.encode("utf-8")
    return b"X" + struct.pack("<I", len(data)) + data


def name(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()


def call(module: str, attribute: str, *arguments: bytes) -> bytes:
    return name(module, attribute) + b"(" + b"".join(arguments) + b"tR"


def tensor(
    *,
    key: str = "0",
    numbers: int = 4,
    start: bytes = b"K\x00",
    shape: bytes = b"K\x04\x85",
    strides: bytes = b"K\x01\x85",
    storage: str = "FloatStorage",
) -> bytes:
    """A tensor as torch writes it, by default four floats."""
    where = b"(" + text("storage") + name("torch", storage) + text(key) + text("cpu")
    where += b"J" + struct.pack("<i", numbers) + b"tQ"
    hooks = name("collections", "OrderedDict") + b")R"
    parts = b"(" + where + start + shape + strides + b"\x89" + hooks + b"t"
    return name("torch._utils", "_rebuild_tensor_v2") + parts + b"R"


def state_dict(*items: bytes) -> bytes:
    return TWO + name("collections", "OrderedDict") + b")R(" + b"".join(items) + b"u."


GOOD = state_dict(text("w"), tensor())

# Modules whose functions run code, commands or files; most come from advisories against scanners.
_CALLS = [
    ("os", "system"), ("posix", "system"), ("nt", "system"), ("os", "execvp"), ("os", "popen"),
    ("builtins", "eval"), ("builtins", "exec"), ("builtins", "compile"), ("builtins", "getattr"),
    ("builtins", "__import__"), ("__builtin__", "eval"), ("builtins", "open"),
    ("subprocess", "Popen"), ("subprocess", "check_output"), ("runpy", "_run_code"),
    ("importlib", "import_module"), ("pty", "spawn"), ("code", "interact"), ("pdb", "run"),
    ("timeit", "timeit"), ("cProfile", "run"), ("trace", "Trace"), ("doctest", "debug_script"),
    ("ctypes", "CDLL"), ("shutil", "rmtree"), ("webbrowser", "open"), ("pip", "main"),
    ("pickle", "loads"), ("marshal", "loads"), ("types", "CodeType"), ("types", "FunctionType"),
    ("functools", "partial"), ("operator", "attrgetter"), ("operator", "methodcaller"),
    ("torch", "load"), ("torch.hub", "load"), ("torch.serialization", "load"),
    ("torch.utils.collect_env", "run"), ("torch._utils", "_rebuild_parameter"),
    ("torch.jit.unsupported_tensor_ops", "execWrapper"), ("torch", "LongStorage"),
    ("torch._utils", "_rebuild_tensor_v3"), ("torch.storage", "_load_from_bytes"),
    ("numpy", "load"), ("numpy.core.multiarray", "_reconstruct"), ("numpy", "fromfile"),
    ("collections", "defaultdict"), ("collections", "namedtuple"), ("_codecs", "encode"),
    ("copyreg", "_reconstructor"), ("site", "execsitecustomize"), ("asyncio", "run"),
    ("torch._utils", "os.system"), ("torch", "_utils.os.system"), ("collections", "abc.sys"),
    ("collections ", "OrderedDict"), ("Collections", "OrderedDict"), ("", "OrderedDict"),
]  # fmt: skip


def live(canary: Path) -> dict[str, bytes]:
    """What Python's unpickler would obey, in every protocol."""
    touch = f"touch {canary}"
    nested = pickle.dumps(Calling(open, str(canary), "w"))
    calls = {
        "open": Calling(open, str(canary), "w"),
        "system": Calling(os.system, touch),
        "eval": Calling(eval, f"open({str(canary)!r}, 'w')"),
        "nested": Calling(pickle.loads, nested),
        "in an ordered dict": collections.OrderedDict(w=Calling(open, str(canary), "w")),
        "in a list": [[{"w": Calling(os.system, touch)}]],
    }
    return {
        f"{how} in protocol {protocol}": pickle.dumps(value, protocol)
        for how, value in calls.items()
        for protocol in range(6)
    }


def _odd(canary: Path) -> dict[str, bytes]:
    """Instructions beyond GLOBAL and REDUCE."""
    where = text(str(canary))
    return {
        "inst": b"(S'" + str(canary).encode() + b"'\nS'w'\nibuiltins\nopen\n.",
        "obj": TWO + b"(" + name("builtins", "open") + where + text("w") + b"o.",
        "newobj": TWO + name("builtins", "object") + b")\x81.",
        "newobj of a known name": TWO + name("collections", "OrderedDict") + b")\x81.",
        "newobj_ex": b"\x80\x04" + name("builtins", "object") + b")}\x92.",
        "stack_global": b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
        "stack_global in protocol 2": TWO + text("os") + text("system") + b"\x93.",
        "ext1": TWO + b"\x82\x01.",
        "ext2": TWO + b"\x83\x01\x00.",
        "ext4": TWO + b"\x84\x01\x00\x00\x00.",
        "persid": b"Pevil\n.",
        "build on a dict": TWO + b"}}" + text("__class__") + b"Nsb.",
        "build with more than versions": (
            TWO + name("collections", "OrderedDict") + b")R}" + text("_metadata") + b"Ns"
            + text("__class__") + b"Nsb."
        ),
        "build on a tensor": TWO + tensor() + b"}" + text("_metadata") + b"Nsb.",
        "build on a name": TWO + name("torch", "FloatStorage") + b"}b.",
        "build with a tuple": TWO + name("collections", "OrderedDict") + b")R}}\x86b.",
        "ordered dict with arguments": TWO + call("collections", "OrderedDict", b"]") + b".",
        "storage called": TWO + call("torch", "FloatStorage", b"K\x04") + b".",
        "call of a text": TWO + text("os.system") + b")R.",
        "call of a list": TWO + b"])R.",
        "call without a tuple": TWO + name("collections", "OrderedDict") + b"]R.",
        "bytearray8": b"\x80\x05\x96" + struct.pack("<Q", 1 << 60) + b".",
        "next buffer": b"\x80\x05\x97.",
        "readonly buffer": b"\x80\x05\x98.",
        "frozenset": b"\x80\x04(\x91.",
        "empty set": b"\x80\x04\x8f.",
        "pop": TWO + b"NN0.",
        "pop mark": TWO + b"N(1.",
        "dup": TWO + b"N2.",
        "protocol said twice": TWO + TWO + b"N.",
        "protocol 9": b"\x80\x09N.",
        "no protocol": b"N.",
        "text integer": TWO + b"I" + b"9" * 5000 + b"\n.",
        "text long": TWO + b"L" + b"9" * 5000 + b"L\n.",
        "text float": TWO + b"F1e400\n.",
        "quoted string": TWO + b"S'\\x41'\n.",
        "raw unicode": TWO + b"V\\u0041\n.",
        "text get": TWO + b"g0\n.",
    }  # fmt: skip


def _piles() -> dict[str, bytes]:
    """Stack tricks, memory bombs and lengths that lie."""
    laughs = b"".join(b"(" + b"h" + bytes([n]) + b"h" + bytes([n]) + b"tq" + bytes([n + 1])
                      for n in range(200))  # fmt: skip
    return {
        "nothing": b"",
        "stop alone": TWO + b".",
        "no stop": TWO + b"N",
        "two things left": TWO + b"NN.",
        "mark left": TWO + b"(N.",
        "mark as value": TWO + b"(.",
        "tuple without mark": TWO + b"Nt.",
        "items without mark": TWO + b"}u.",
        "items odd": TWO + b"}(Nu.",
        "item on a list": TWO + b"]" + text("a") + b"Ns.",
        "append to a dict": TWO + b"}Na.",
        "append to nothing": TWO + b"Na.",
        "tuple3 of two": TWO + b"NN\x87.",
        "put of nothing": TWO + b"q\x00.",
        "put of a mark": TWO + b"(q\x00.",
        "get before put": TWO + b"h\x05.",
        "long get before put": TWO + b"j\xff\xff\xff\xff.",
        "billion laughs": TWO + b"Nq\x00" + laughs + b".",
        "very many marks": TWO + b"(" * 100_000 + b".",
        "very many lists in one another": TWO + b"]" * 100_000 + b"a" * 99_999 + b".",
        "very many dicts": TWO + b"(" + b"}" * 100_000 + b"t.",
        "memory of many": TWO + b"N" + b"".join(b"r" + struct.pack("<I", n) for n in range(60_000))
        + b".",
        "itself in itself": TWO + b"]q\x00h\x00a.",
        "text of 4 GB": TWO + b"X\xff\xff\xff\xffabc.",
        "long text": TWO + text("a" * 100_000) + b".",
        "text of protocol 4": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"a.",
        "bytes of protocol 4": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 62) + b"a.",
        "frame that lies": b"\x80\x04\x95" + struct.pack("<Q", 1 << 62) + b"N.",
        "long of 2 GB": TWO + b"\x8b\xff\xff\xff\x7f\x01.",
        "long of 255 bytes": TWO + b"\x8a\xff" + b"\x7f" * 255 + b".",
        "text not utf-8": TWO + b"X\x02\x00\x00\x00\xff\xff.",
        "key that is a list": TWO + b"}]Ns.",
        "key that is a tuple": TWO + b"})Ns.",
        "key twice": TWO + b"}(" + (text("a") + b"N") * 2 + b"u.",
        "name without end": TWO + b"ccollections",
        "name of a megabyte": TWO + b"c" + b"a" * (1 << 20) + b"\nb\n.",
    }  # fmt: skip


def _tensors() -> dict[str, bytes]:
    """Tensors and storages that tell untruths."""
    big = b"\x8a\x08" + struct.pack("<q", 1 << 60)
    odd = {
        "shape beyond the storage": tensor(shape=b"K\x05\x85"),
        "start beyond the storage": tensor(start=b"K\x01"),
        "negative start": tensor(start=b"J\xff\xff\xff\xff"),
        "negative stride": tensor(strides=b"J\xff\xff\xff\xff\x85"),
        "negative shape": tensor(shape=b"J\xff\xff\xff\xff\x85"),
        "shape of 2^60": tensor(shape=big + b"\x85"),
        "stride of 2^60": tensor(strides=big + b"\x85"),
        "number repeated": tensor(shape=b"J\xff\xff\xff\x7f\x85", strides=b"K\x00\x85"),
        "empty shape part": tensor(shape=b"K\x00\x85"),
        "shape and strides differ": tensor(strides=b")"),
        "shape that is a list": tensor(shape=b"]K\x04a"),
        "shape of true": tensor(shape=b"\x88\x85"),
        "nine axes": tensor(shape=b"(" + b"K\x01" * 9 + b"t", strides=b"(" + b"K\x01" * 9 + b"t"),
        "storage of 2^31": tensor(numbers=(1 << 31) - 1),
        "negative storage": tensor(numbers=-1),
        "storage elsewhere": tensor(key="../../../etc/passwd"),
        "storage that is missing": tensor(key="7"),
        "storage of another kind": tensor(storage="DoubleStorage"),
        "storage of integers": tensor(storage="LongStorage"),
        "value that is a text": text("evil"),
        "value that is a dict": b"}",
        "value that is a name": name("torch", "FloatStorage"),
    }
    found = {how: state_dict(text("w"), one) for how, one in odd.items()}
    found["two tensors over one another"] = state_dict(text("a"), tensor(), text("b"), tensor())
    found["one storage, two kinds"] = state_dict(
        text("a"), tensor(), text("b"), tensor(storage="HalfStorage")
    )
    found["name that is a number"] = state_dict(b"K\x01", tensor())
    found["name with a line break"] = state_dict(text("a\n\x1b[2J"), tensor())
    found["name of nothing"] = state_dict(text(""), tensor())
    found["no tensor at all"] = state_dict()
    found["only a tensor"] = TWO + tensor() + b"."
    found["storage by itself"] = TWO + text("evil") + b"Q."
    found["storage of five texts"] = TWO + b"(" + text("a") * 5 + b"tQ."
    found["view of a storage"] = TWO + b"(" + text("storage") + name("torch", "FloatStorage")
    found["view of a storage"] += text("0") + text("cpu") + b"K\x04" + text("view") + b"tQ."
    return found


def payloads(canary: Path) -> dict[str, bytes]:
    """Every hostile pickle by what it tries."""
    calls = {
        f"{module}.{attribute}": TWO + call(module, attribute, text("1"), text("2")) + b"."
        for module, attribute in _CALLS
    }
    return {**live(canary), **calls, **_odd(canary), **_piles(), **_tensors()}
