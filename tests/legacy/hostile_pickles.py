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

_TENSORS = {
    "storage of 2^31 numbers": state_dict(text("w"), tensor(numbers=(1 << 31) - 1)),
    "one number repeated 2^31 times": state_dict(
        text("w"), tensor(shape=b"J\xff\xff\xff\x7f\x85", strides=b"K\x00\x85")
    ),
    "shape beyond the storage": state_dict(text("w"), tensor(shape=b"K\x05\x85")),
    "storage elsewhere": state_dict(text("w"), tensor(key="../../../etc/passwd")),
    "integers": state_dict(text("w"), tensor(storage="LongStorage")),
    "value that is a text": state_dict(text("w"), text("evil")),
    "name that is a number": state_dict(b"K\x01", tensor()),
    "no tensor at all": state_dict(),
    "only a tensor": TWO + tensor() + b".",
    "text of 4 GB": TWO + b"X\xff\xff\xff\xffabc.",
}

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


def payloads(canary: Path) -> dict[str, bytes]:
    """Every hostile pickle by what it tries."""
    calls = {
        f"{module}.{attribute}": TWO + call(module, attribute, text("1"), text("2")) + b"."
        for module, attribute in _CALLS
    }
    return {**live(canary), **calls, **_TENSORS}
