"""The compiled half of LSTMs: `gates.c` for learning, `steps.c` and `tiles.c` for use.

`python -m polyseme.encoders.compiled` builds it with the system's C compiler. Nothing needs it:
without it the same work is done by torch, in more time. It is never built behind anyone's back.
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

from polyseme.errors import PolysemeError
from polyseme.files import publish

_NAMES = ("gates.c", "steps.c", "tiles.c", "gates.h", "steps.h")
SOURCES = tuple(Path(__file__).with_name(name) for name in _NAMES)
_COMPILERS = ("cc", "gcc", "clang")
# Not -ffast-math: it lets sums be reordered, which gates.c does not survive, takes NaN for
# impossible, and as a link option changes how the whole process treats very small numbers.
_OPTIONS = (
    *("-std=c11", "-O3", "-march=native", "-shared", "-fPIC", "-fvisibility=hidden"),
    *("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-ffp-contract=fast"),
    "-fopenmp-simd",  # only the promise that loops may be vectorised, no threads
)
_WIDE = "-mprefer-vector-width=512"  # else compilers stop at 256 bits on processors that have 512


def library_path(folder: Path | None = None) -> Path:
    """Where the library is. Another source or another processor gives it another name."""
    text = b"".join(source.read_bytes() for source in SOURCES)
    made_of = hashlib.sha256(text + " ".join(_options()).encode())
    made_of.update(_processor().encode())
    system = f"{sys.platform}-{platform.machine()}".lower()
    return (folder or SOURCES[0].parent) / f"gates-{made_of.hexdigest()[:12]}-{system}.so"


@functools.cache
def load() -> ctypes.CDLL | None:
    """The library, or None where it was not built. A process asks once and keeps the answer."""
    path = library_path()
    if not path.is_file():
        return None
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        logging.getLogger(__name__).warning("%s is not used: %s", path, error)
        return None


def build(folder: Path | None = None) -> Path:
    """Compile the library, beside this file unless told, and say where it is."""
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        raise PolysemeError(
            f"No C compiler was found (looked for {', '.join(_COMPILERS)}). LSTMs work without "
            "one, only slower; to make them faster, install one and run this again."
        )
    path = library_path(folder)
    sources = [str(source) for source in SOURCES if source.suffix == ".c"]
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        result = subprocess.run(  # noqa: S603
            [compiler, *_options(), "-o", str(scratch), *sources],
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
        publish(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
    return path


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


def _processor() -> str:
    """What this processor can do: a folder may be shared by machines of several kinds."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor()
    return next((line for line in lines if line.lower().startswith(("flags", "features"))), "")


if __name__ == "__main__":
    sys.exit(main())
