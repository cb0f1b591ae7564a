"""A process locks itself in, for good, before it looks at an untrusted file.

Afterwards it can read what it already has open, compute, write to its pipe and end. It can open no
file and no connection, start nothing, and take no more memory or time than it was given. The kernel
holds it to that, so an error in a parser, HDF5's above all, reaches nothing.

Two locks, since each has a gap: Landlock knows files whatever the call is named, but not every kind
of socket; seccomp (`syscalls.py`) knows calls, but no files. Where either is missing, no file is
read: a lock that may be left open is none.
"""

import ctypes
import os
import sys
from pathlib import Path

from polyseme.legacy.syscalls import allow_only_computing

MEMORY = 200 << 20
"""Bytes a child may take beyond what it has when it begins; it holds structure, not numbers."""
SECONDS = 20
"""Of processor time."""

_WAY_OUT = (
    "Reading untrusted files needs Linux 5.13 or later with Landlock on, on an x86-64 or arm64 "
    "processor. Convert the model on such a machine (a virtual one will do) and copy the result."
)
_CREATE_RULESET, _RESTRICT_SELF = 444, 446  # the same numbers on every processor
_NO_NEW_PRIVILEGES, _DIE_WITH_PARENT = 38, 1


class SandboxError(Exception):
    """This machine cannot lock a process in; the text says why and what to do."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{reason}. {_WAY_OUT}")


def check_system() -> None:
    """Refuse where there is no Landlock to ask for."""
    if sys.platform != "linux":
        raise SandboxError(f"This system is {sys.platform}")


def lock() -> None:
    """Lock this process in. To be called with everything imported and everything open."""
    check_system()
    # Landlock binds the calling thread alone: another one would stay free.
    threads = len(list(Path("/proc/self/task").iterdir()))
    if threads != 1:
        raise SandboxError(f"The reading process has {threads} threads where it should have one")
    _limit()
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value in ((_DIE_WITH_PARENT, 9), (_NO_NEW_PRIVILEGES, 1)):
        if libc.prctl(option, ctypes.c_ulong(value), *[ctypes.c_ulong(0)] * 3):
            raise SandboxError(_failure("prctl"))
    _close_files(libc)
    reason = allow_only_computing(libc)
    if reason:
        raise SandboxError(reason)


def _limit() -> None:
    import resource  # Unix only, and this module is imported everywhere

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    descriptors = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    limits = {
        resource.RLIMIT_AS: pages * resource.getpagesize() + MEMORY,
        resource.RLIMIT_CPU: SECONDS,
        resource.RLIMIT_NOFILE: descriptors + 1,
        resource.RLIMIT_NPROC: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    for limit, value in limits.items():
        _, most = resource.getrlimit(limit)
        bound = value if most == resource.RLIM_INFINITY else min(value, most)
        try:
            resource.setrlimit(limit, (bound, bound))
        except (OSError, ValueError) as error:
            raise SandboxError(f"A limit could not be set ({error})") from error


class _Ruleset(ctypes.Structure):
    """struct landlock_ruleset_attr: what is forbidden unless a rule allows it. We add no rule."""

    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


def _close_files(libc: ctypes.CDLL) -> None:
    """Landlock: no right to any file, TCP port, outside socket or outside process."""
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if version < 1:
        raise SandboxError(_failure("This kernel has no Landlock, or has it switched off"))
    # Each version brought more that can be forbidden; asking an old kernel for more is an error.
    rights = 13 if version < 2 else 14 if version < 3 else 15 if version < 5 else 16
    ruleset = _Ruleset((1 << rights) - 1, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    descriptor = libc.syscall(
        _CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint32(0)
    )
    if descriptor < 0 or libc.syscall(_RESTRICT_SELF, descriptor, ctypes.c_uint32(0)):
        raise SandboxError(_failure("Landlock refused"))
    os.close(descriptor)


def _failure(what: str) -> str:
    return f"{what} ({os.strerror(ctypes.get_errno())})"
