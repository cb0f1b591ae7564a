"""The few words of the pickle language that weights are written in, and no others.

    in   bytes of pickles that follow one another, as torch writes them (protocol 2)
    out  dicts, lists, tuples, texts and numbers; tensors as descriptions

This is no unpickler: nothing is imported, looked up or called. A name such as
`torch._utils._rebuild_tensor_v2` is compared with a short list (`descriptions.py`) and stands for
a description. An instruction or a name that is not on a list ends the reading.
"""

import struct
from collections.abc import Callable
from typing import Any

from polyseme.legacy.contents import RefusedError
from polyseme.legacy.descriptions import KNOWN, Mapping, Name, describe_call, describe_storage

MAX_BYTES = 1 << 22
"""Of one file's pickles together. Those of published models have a few thousand."""
MAX_THINGS = 50_000
_MAX_TEXT = 10_000
_MAX_NAME = 100
_MARK = object()


class Reader:
    """A pile of values, a memory, and a position in `data`. Instructions are functions of it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0
        self._pile: list[Any] = []
        self._memory: dict[int, Any] = {}

    def read(self) -> Any:
        """The next pickle's value; afterwards `position` is behind it."""
        self._pile, self._memory = [], {}
        if self.take(2) != b"\x80\x02":
            raise RefusedError("it is not a pickle of protocol 2, which torch writes")
        while (code := self.take(1)) != b".":
            instruction = _INSTRUCTIONS.get(code)
            if instruction is None:
                raise RefusedError(f"its pickle has the instruction {code!r}, which weights lack")
            instruction(self)
            if len(self._pile) > MAX_THINGS or len(self._memory) > MAX_THINGS:
                raise RefusedError("its pickle piles up more things than weights need")
        value = self.pop()
        if self._pile:
            raise RefusedError("its pickle leaves things over")
        return value

    def take(self, count: int) -> bytes:
        """The next bytes."""
        taken = self._data[self.position : self.position + count]
        if len(taken) < count:
            raise RefusedError(f"its pickle is cut off, or longer than {MAX_BYTES:,} bytes")
        self.position += count
        return taken

    def number(self, layout: str) -> Any:
        """The next number, written as `struct` calls it."""
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def line(self) -> str:
        """The next line, which must be a short one."""
        end = self._data.find(b"\n", self.position, self.position + _MAX_NAME)
        if end < 0:
            raise RefusedError("its pickle has a very long name, or one without an end")
        return self.take(end + 1 - self.position)[:-1].decode("utf-8", "replace")

    def push(self, value: Any) -> None:
        """Lay a value on the pile."""
        self._pile.append(value)

    def pop(self) -> Any:
        """Take the uppermost value."""
        if not self._pile or self._pile[-1] is _MARK:
            raise RefusedError("its pickle takes from an empty pile")
        return self._pile.pop()

    def pop_to_mark(self) -> list[Any]:
        """Take all values down to the mark, and the mark."""
        things: list[Any] = []
        while self._pile and self._pile[-1] is not _MARK:
            things.append(self._pile.pop())
        if not self._pile:
            raise RefusedError("its pickle ends a group that it never began")
        self._pile.pop()
        return things[::-1]

    def top(self, kind: type) -> Any:
        """The uppermost value, left where it is."""
        if not self._pile or type(self._pile[-1]) is not kind:
            raise RefusedError(f"its pickle changes what is not a {kind.__name__.lower()}")
        return self._pile[-1]

    def remember(self, number: int) -> None:
        """Keep the uppermost value under this number."""
        value = self.pop()
        self.push(value)
        self._memory[number] = value

    def recall(self, number: int) -> None:
        """Lay the value kept under this number on the pile."""
        if number not in self._memory:
            raise RefusedError(f"its pickle asks for thing {number}, which it never kept")
        self.push(self._memory[number])


def _text(reader: Reader) -> None:
    length = reader.number("<I")
    if length > _MAX_TEXT:
        raise RefusedError(f"its pickle has a text of {length:,} bytes")
    try:
        reader.push(reader.take(length).decode("utf-8"))
    except UnicodeDecodeError as error:
        raise RefusedError("its pickle has a text that is not UTF-8") from error


def _long(reader: Reader) -> None:
    count = reader.number("<B")
    if count > 16:  # the magic number of the old container has ten
        raise RefusedError(f"its pickle has a number of {count} bytes")
    reader.push(int.from_bytes(reader.take(count), "little", signed=True))


def _name(reader: Reader) -> None:
    name = Name(reader.line(), reader.line())
    if name not in KNOWN:
        raise RefusedError(f"its pickle names {name.module}.{name.name}, not needed for weights")
    reader.push(name)


def _tuple(reader: Reader, count: int) -> None:
    reader.push(tuple([reader.pop() for _ in range(count)][::-1]))


def _extend(reader: Reader, things: list[Any]) -> None:
    reader.top(list).extend(things)


def _set_items(reader: Reader, things: list[Any]) -> None:
    keys, values = things[::2], things[1::2]
    target = reader.top(Mapping)
    if len(keys) != len(values) or not all(type(key) in (str, int) for key in keys):
        raise RefusedError("its pickle has a dict with keys that are neither text nor number")
    if len({*keys}) < len(keys) or any(key in target for key in keys):
        raise RefusedError("its pickle has a dict with one key twice")
    target.update(zip(keys, values, strict=True))


def _call(reader: Reader) -> None:
    arguments, name = reader.pop(), reader.pop()
    if type(arguments) is not tuple or type(name) is not Name:
        raise RefusedError("its pickle calls something that is not a known name")
    reader.push(describe_call(name, arguments))


def _build(reader: Reader) -> None:
    """Torch hangs version numbers on a state dict. They are dropped; anything else is refused."""
    state = reader.pop()
    reader.top(Mapping)
    if type(state) is not Mapping or state.keys() != {"_metadata"}:
        raise RefusedError("its pickle changes the inside of a thing")


_INSTRUCTIONS: dict[bytes, Callable[[Reader], None]] = {
    b"(": lambda reader: reader.push(_MARK),
    b"N": lambda reader: reader.push(None),
    b"\x88": lambda reader: reader.push(True),
    b"\x89": lambda reader: reader.push(False),
    b"}": lambda reader: reader.push(Mapping()),
    b"]": lambda reader: reader.push([]),
    b")": lambda reader: reader.push(()),
    b"K": lambda reader: reader.push(reader.number("<B")),
    b"M": lambda reader: reader.push(reader.number("<H")),
    b"J": lambda reader: reader.push(reader.number("<i")),
    b"G": lambda reader: reader.push(reader.number(">d")),
    b"\x8a": _long,
    b"X": _text,
    b"t": lambda reader: reader.push(tuple(reader.pop_to_mark())),
    b"\x85": lambda reader: _tuple(reader, 1),
    b"\x86": lambda reader: _tuple(reader, 2),
    b"\x87": lambda reader: _tuple(reader, 3),
    b"q": lambda reader: reader.remember(reader.number("<B")),
    b"r": lambda reader: reader.remember(reader.number("<I")),
    b"h": lambda reader: reader.recall(reader.number("<B")),
    b"j": lambda reader: reader.recall(reader.number("<I")),
    b"a": lambda reader: _extend(reader, [reader.pop()]),
    b"e": lambda reader: _extend(reader, reader.pop_to_mark()),
    b"s": lambda reader: _set_items(reader, [reader.pop(), reader.pop()][::-1]),
    b"u": lambda reader: _set_items(reader, reader.pop_to_mark()),
    b"c": _name,
    b"R": _call,
    b"b": _build,
    b"Q": lambda reader: reader.push(describe_storage(reader.pop())),
}
