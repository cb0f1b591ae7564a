"""Ways in which a file of a checkpoint can be damaged."""

import random
from collections.abc import Callable
from pathlib import Path

FILES = ("weights.safetensors", "optimizer.safetensors", "state.json", "manifest.json")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def keep_one_byte(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1])


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def lose_the_last_byte(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def gain_a_byte(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def delete(path: Path) -> None:
    path.unlink()


def swap_with_the_one_before(path: Path) -> None:
    """Exchange the file for that of another checkpoint: sound in itself, but of another step."""
    others = sorted(other for other in path.parent.parent.iterdir() if other != path.parent)
    path.write_bytes((others[0] / path.name).read_bytes())


def zero_a_block(path: Path) -> None:
    """What is left when a disk has lost a block."""
    held = bytearray(path.read_bytes())
    start = len(held) // 3
    held[start : start + 64] = bytes(64)
    path.write_bytes(bytes(held))


DAMAGES: list[Callable[[Path], None]] = [
    empty,
    keep_one_byte,
    halve,
    lose_the_last_byte,
    gain_a_byte,
    delete,
    swap_with_the_one_before,
    zero_a_block,
]


def flip(held: bytes, choose: random.Random) -> bytes:
    """The same bytes but for one bit."""
    bit = choose.randrange(8 * len(held))
    flipped = bytearray(held)
    flipped[bit // 8] ^= 1 << bit % 8
    return bytes(flipped)
