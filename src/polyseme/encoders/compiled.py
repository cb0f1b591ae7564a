"""The compiled half of LSTMs: `gates.c` for learning, `steps.c` and `tiles.c` for use.

`python -m polyseme.encoders.compiled` builds it with the system's C compiler. Nothing needs it:
without it the same work is done by torch, in more time. It is never built behind anyone's back, and
only a build that nobody else can have changed is loaded.
"""

import ctypes
import functools
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from polyseme.encoders import trusted
from polyseme.encoders.processor import instructions
from polyseme.encoders.signatures import declare
from polyseme.errors import PolysemeError
from polyseme.files import publish, sha256_of

_NAMES = ("gates.c", "steps.c", "tiles.c", "gates.h", "steps.h")
SOURCES = tuple(Path(__file__).with_name(name) for name in _NAMES)
COMPILERS = ("cc", "gcc", "clang")
# Not -ffast-math: it lets sums be reordered, which gates.c does not survive, takes NaN for
# impossible, and as a link option changes how the whole process treats very small numbers.
_OPTIONS = (
    *("-std=c11", "-O3", "-march=native", "-shared", "-fPIC", "-fvisibility=hidden"),
    *("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-ffp-contract=fast"),
    "-fopenmp-simd",  # only the promise that loops may be vectorised, no threads
)
_WIDE = "-mprefer-vector-width=512"  # else compilers stop at 256 bits on processors that have 512


_FOLDER = "built"  # of its own, so that who can write it does not depend on anyone's umask
_COMMAND = "python -m polyseme.encoders.compiled"


class Kernel(ctypes.CDLL):
    """The library, its functions declared, and the SHA-256 of its file."""

    def __init__(self, path: Path, digest: str) -> None:
        super().__init__(str(path))
        self.digest = digest
        declare(self)

    def can_step(self, precision: str) -> bool:
        """Whether whole steps can be computed in this precision, on this processor and system."""
        if not hasattr(self, f"step_{precision}"):
            return False
        return precision != "bfloat16" or bool(self.may_use_tiles())

    def way(self, precision: str) -> str:
        """What the work in this precision is done with."""
        if not self.can_step(precision):
            return f"gates {precision}"
        return {"float32": "AVX-512 float32", "bfloat16": "AMX bfloat16"}[precision]


def library_path(folder: Path | None = None) -> Path:
    """Where the library is. Another source or another processor gives it another name."""
    text = b"".join(source.read_bytes() for source in SOURCES)
    made_of = hashlib.sha256(text + " ".join(_options()).encode())
    made_of.update(instructions().encode())
    system = f"{sys.platform}-{platform.machine()}".lower()
    name = f"gates-{made_of.hexdigest()[:12]}-{system}.so"
    return (folder or SOURCES[0].parent / _FOLDER) / name


@functools.cache
def load() -> Kernel | None:
    """The library, or None where it was not built. A process asks once and keeps the answer."""
    path = library_path()
    if not os.path.lexists(path):
        return None
    try:
        return Kernel(path, trusted.check(path))
    except (OSError, trusted.UntrustedLibraryError) as error:
        logging.getLogger(__name__).warning(
            "The compiled kernel %s is not used: %s. Build it again (%s), or remove it; until then "
            "LSTMs work without it, only slower.",
            path,
            error,
            _COMMAND,
        )
        return None


def build(folder: Path | None = None) -> Path:
    """Compile the library, into a folder beside this file unless told, and say where it is."""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise PolysemeError(
            f"No C compiler was found (looked for {', '.join(COMPILERS)}). LSTMs work without "
            "one, only slower; to make them faster, install one and run this again."
        )
    path = library_path(folder)
    if folder is None:
        path.parent.mkdir(exist_ok=True)
        path.parent.chmod(trusted.MODE)
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        _compile(compiler, scratch)
        scratch.chmod(trusted.MODE)
        # First: killed in between, there is no library yet, or one that does not fit its record.
        trusted.record(path, sha256_of(scratch))
        publish(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
    try:
        trusted.check(path)
    except trusted.UntrustedLibraryError as error:
        raise PolysemeError(
            f"{path} was built, but will not be used: {error}. Remove {path.parent}, or make it "
            "yours alone, and build again."
        ) from error
    return path


def _compile(compiler: str, into: Path) -> None:
    sources = [str(source) for source in SOURCES if source.suffix == ".c"]
    result = subprocess.run(  # noqa: S603
        [compiler, *_options(), "-o", str(into), *sources],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if result.returncode:
        raise PolysemeError(
            f"{compiler} could not compile {' '.join(sources)}; LSTMs work without "
            f"it, only slower. It said:\n{result.stderr.strip()}"
        )


def main() -> int:
    """Build, and say so."""
    try:
        path = build()
    except (PolysemeError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"LSTMs on this processor now use {path}\n")
    return 0


def _options() -> tuple[str, ...]:
    is_x86 = platform.machine().lower() in {"x86_64", "amd64"}
    return (*_OPTIONS, _WIDE) if is_x86 else _OPTIONS


if __name__ == "__main__":
    sys.exit(main())
