"""Compile the inner loops: `gates.c` and `softmax.c` for training, `steps.c`, `tiles.c`
and `few_rows.c` for embedding, `louvain.c` for groups of uses.

`python -m polyseme.encoders.kernels.build` does it with the system's C compiler, for the best
instruction set of this processor. Nothing needs it: without it the same work is done by torch and
numpy, in more time. It is never built behind anyone's back. A loaded library can do whatever the
user can, so only the very file that was built here is loaded, and only if nobody else could have
changed it.

What the processor is and can do, and for which instruction sets the kernel is compiled.
"""

import contextlib
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Literal

from polyseme.errors import PolysemeError
from polyseme.limits import read_text
from polyseme.storage.files import publish, sha256_of, write_text

InstructionSet = Literal["amx", "avx512", "avx2", "baseline"]
_AVX2 = ("avx2", "fma", "f16c")
_AVX512 = (*_AVX2, "avx512f", "avx512bw", "avx512dq", "avx512vl")
NEEDS: dict[InstructionSet, tuple[str, ...]] = {
    "amx": (*_AVX512, "avx512_bf16", "amx_tile", "amx_bf16"),
    "avx512": _AVX512,
    "avx2": _AVX2,
    "baseline": (),  # what every processor of the architecture has: on x86-64 SSE2, on ARM NEON
}
"""Flags of the processor that each needs, in Linux's words; the best first."""

# Of instructions that torch's own name for the processor does not tell, those that its libraries
# multiply with where they find them.
_MULTIPLY = ("avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "bf16", "sve", "i8mm")
_KIND = ("vendor_id", "cpu family", "model", "CPU implementer", "CPU part")


def instruction_sets() -> list[InstructionSet]:
    """Those that this processor has, the best first."""
    has = _flags()
    return [name for name, needs in NEEDS.items() if has.issuperset(needs)]


def describe_processor() -> str:
    """Its kind, what torch takes it for, and how it can multiply."""
    import torch  # here, not above: wheels are built where there is none

    facts, has = _facts(), _flags()
    kind = "-".join(facts[name] for name in _KIND if name in facts) or platform.machine()
    capability = torch.backends.cpu.get_cpu_capability()
    return " ".join([kind, capability, *(name for name in _MULTIPLY if name in has)])


def _flags() -> set[str]:
    facts = _facts()
    told = facts.get("flags") or facts.get("Features")
    if told is not None:
        return set(told.split())
    import torch

    # Not Linux: torch has asked the processor. It tells less, and no more than there is.
    capability = torch.backends.cpu.get_cpu_capability()
    return set({"AVX512": _AVX512, "AVX2": _AVX2}.get(capability, ()))


@cache
def _facts() -> dict[str, str]:
    """What Linux tells of the first processor; nothing elsewhere."""
    try:
        first, _, _ = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


_NAMES = ("gates.c", "softmax.c", "steps.c", "tiles.c", "few_rows.c", "louvain.c")
SOURCES = tuple(Path(__file__).with_name(name) for name in (*_NAMES, "gates.h", "steps.h"))
COMPILERS = ("cc", "gcc", "clang")
COMMAND = "python -m polyseme.encoders.kernels.build"
# Not -ffast-math: it lets sums be reordered, which gates.c does not survive, takes NaN for
# impossible, and as a link option changes how the whole process treats very small numbers.
_OPTIONS = (
    *("-std=c11", "-O3", "-shared", "-fPIC", "-fvisibility=hidden"),
    *("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-ffp-contract=fast"),
    "-fopenmp-simd",  # only the promise that loops may be vectorised, no threads
)
_WIDE = "-mprefer-vector-width=512"  # else compilers stop at 256 bits on processors that have 512
_FOLDER = "built"  # of its own, so that who can write it does not depend on anyone's umask
_MODE = 0o755  # of a library and of its folder: whatever the umask, only the owner writes
_WRITTEN_BY_OTHERS = 0o022
_LONGEST_RECORD = 1024


class UntrustedLibraryError(Exception):
    """Why a library is not loaded."""


def library_path(instruction_set: InstructionSet, folder: Path | None = None) -> Path:
    """Where the library for an instruction set is. Another source gives it another name."""
    text = b"".join(source.read_bytes() for source in SOURCES)
    made_of = hashlib.sha256(text + " ".join(_options(instruction_set)).encode())
    system = f"{sys.platform}-{platform.machine()}".lower()
    name = f"lstm-{instruction_set}-{made_of.hexdigest()[:12]}-{system}.so"
    return (folder or SOURCES[0].parent / _FOLDER) / name


def build(folder: Path | None = None, instruction_set: InstructionSet | None = None) -> Path:
    """Compile for an instruction set, or for the best that processor and compiler both know.

    Into a folder beside this file unless told. Says where the library is.
    """
    compiler = _find_compiler()
    if compiler is None:
        raise PolysemeError(
            f"No C compiler was found (looked for {', '.join(COMPILERS)}). Polyseme works "
            "without one, but more slowly; to speed it up, install one and run this again."
        )
    *better, last = [instruction_set] if instruction_set else instruction_sets()
    for each in better:
        try:
            return _build(compiler, each, folder)
        except _CompilerError:
            continue  # compilers may be older than the processor
    return _build(compiler, last, folder)


def build_all(folder: Path) -> list[Path]:
    """Compile for every instruction set that the compiler knows: for a wheel, which runs anywhere.

    Empty if there is no compiler, or none that works.
    """
    compiler, libraries = _find_compiler(), []
    for each in NEEDS if compiler else ():
        with contextlib.suppress(_CompilerError):  # of another architecture, or too new for it
            libraries.append(_build(str(compiler), each, folder))
    return libraries


class _CompilerError(PolysemeError):
    pass


def _find_compiler() -> str | None:
    return next(filter(None, map(shutil.which, COMPILERS)), None)


def _build(compiler: str, instruction_set: InstructionSet, folder: Path | None) -> Path:
    path = library_path(instruction_set, folder)
    if folder is None:
        path.parent.mkdir(exist_ok=True)
        path.parent.chmod(_MODE)
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        _compile(compiler, instruction_set, scratch)
        scratch.chmod(_MODE)
        # First: killed in between, there is no library yet, or one that does not fit its record.
        # As `sha256sum --check` reads it.
        write_text(_record_of(path), f"{sha256_of(scratch)}  {path.name}\n")
        publish(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
    try:
        check(path)
    except UntrustedLibraryError as error:
        raise PolysemeError(
            f"{path} was built, but will not be used: {error}. Remove {path.parent}, or make it "
            "yours alone, and build again."
        ) from error
    return path


def _compile(compiler: str, instruction_set: InstructionSet, into: Path) -> None:
    sources = [str(source) for source in SOURCES if source.suffix == ".c"]
    result = subprocess.run(  # noqa: S603
        [compiler, *_options(instruction_set), "-o", str(into), *sources],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if result.returncode:
        raise _CompilerError(
            f"{compiler} could not compile {' '.join(sources)}; all works without "
            f"it, only slower. It said:\n{result.stderr.strip()}"
        )


def _options(instruction_set: InstructionSet) -> tuple[str, ...]:
    """Flags of the processor are options of the compiler but for a dash: avx512_bf16, amx_tile."""
    flags = (flag.replace("avx512_", "avx512").replace("_", "-") for flag in NEEDS[instruction_set])
    wide = (_WIDE,) if "avx512f" in NEEDS[instruction_set] else ()
    return (*_OPTIONS, *(f"-m{flag}" for flag in flags), *wide)


def check(library: Path) -> str:
    """The library's SHA-256, if it may be loaded; an UntrustedLibraryError that says why if not."""
    _check_owner(library.parent, is_folder=True)
    _check_owner(library, is_folder=False)
    try:
        recorded = read_text(_record_of(library), _LONGEST_RECORD).split()[0]
    except (OSError, ValueError, IndexError) as error:
        raise UntrustedLibraryError(
            f"what it should be is not written in {_record_of(library).name} beside it"
        ) from error
    found = sha256_of(library)
    if found != recorded:
        raise UntrustedLibraryError(
            f"its SHA-256 is {found[:16]}…, and {recorded[:16]}… was built: it was changed since"
        )
    return found


def _record_of(library: Path) -> Path:
    return library.with_name(f"{library.name}.sha256")


def _check_owner(path: Path, *, is_folder: bool) -> None:
    """Not a link, and nobody's to write but this user's or root's."""
    facts = path.lstat()
    is_right = stat.S_ISDIR if is_folder else stat.S_ISREG
    if not is_right(facts.st_mode):
        kind = "a folder" if is_folder else "a regular file"
        raise UntrustedLibraryError(f"{path} is not {kind} but perhaps a link")
    if os.name == "nt":  # has neither these owners nor these modes
        return
    if facts.st_uid not in (0, os.geteuid()):
        raise UntrustedLibraryError(
            f"{path} belongs to user {facts.st_uid}, neither to you ({os.geteuid()}) nor to root"
        )
    may_group = _is_private_group(facts.st_gid, facts.st_uid)
    if facts.st_mode & (stat.S_IWOTH if may_group else _WRITTEN_BY_OTHERS):
        mode = f"{stat.S_IMODE(facts.st_mode):o}"
        raise UntrustedLibraryError(f"others than its owner can write {path} (its mode is {mode})")


def _is_private_group(group: int, user: int) -> bool:
    """Whether a group is a user's own, as many systems make one for each: nobody else is in it.

    There what pip installs can be written by the group, which is to say by the user.
    """
    import grp
    import pwd

    try:
        owner, members = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    is_own = owner.pw_gid == group and members.gr_name == owner.pw_name
    return user != 0 and is_own and set(members.gr_mem) <= {owner.pw_name}


def main() -> int:
    """Build, and say so."""
    try:
        path = build()
    except (PolysemeError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"LSTMs and groups of uses are now computed by {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
