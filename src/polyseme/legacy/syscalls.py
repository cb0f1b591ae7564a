"""The calls to the kernel that a reading process may make; every other one fails.

A filter in the kernel's own small language (classic BPF) compares the number of each call with the
list below. Numbers differ between processors, so those are named for which the list was checked.
"""

import ctypes
import os
import platform
import struct

_X86_64 = 0xC000003E  # AUDIT_ARCH_...: which processor's numbers a call uses
_ARM64 = 0xC00000B7

# Reading and seeking in what is open, memory, clocks, and leaving. No open, no socket, no fork.
_X86_64_CALLS = {
    "read": 0, "write": 1, "close": 3, "fstat": 5, "lseek": 8, "mmap": 9, "mprotect": 10,
    "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15,
    "pread64": 17, "sched_yield": 24, "mremap": 25, "madvise": 28, "getpid": 39,
    "exit": 60, "gettimeofday": 96, "sigaltstack": 131, "gettid": 186, "time": 201,
    "futex": 202, "clock_gettime": 228, "exit_group": 231, "getrandom": 318, "rseq": 334,
}  # fmt: skip
_ARM64_CALLS = {
    "close": 57, "lseek": 62, "read": 63, "write": 64, "pread64": 67,
    "fstat": 80, "exit": 93, "exit_group": 94, "futex": 98, "clock_gettime": 113,
    "sched_yield": 124, "sigaltstack": 132, "rt_sigaction": 134, "rt_sigprocmask": 135,
    "rt_sigreturn": 139, "gettimeofday": 169, "getpid": 172, "gettid": 178, "brk": 214,
    "munmap": 215, "mremap": 216, "mmap": 222, "mprotect": 226, "madvise": 233, "getrandom": 278,
    "rseq": 293,
}  # fmt: skip
CALLS = {"x86_64": (_X86_64, _X86_64_CALLS), "aarch64": (_ARM64, _ARM64_CALLS)}

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000 | 1  # _FAIL: "not permitted"
_SET_SECCOMP, _FILTER = 22, 2


class _Program(ctypes.Structure):
    """struct sock_fprog"""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def allow_only_computing(libc: ctypes.CDLL) -> str | None:
    """Install the filter in this process; the reason if that is impossible here."""
    machine = platform.machine()
    if machine not in CALLS:
        return f"The calls of the processor {machine} are not known"
    program = make_filter(*CALLS[machine])
    told = _Program(len(program) // 8, program)
    zero = ctypes.c_ulong(0)
    if libc.prctl(_SET_SECCOMP, ctypes.c_ulong(_FILTER), ctypes.byref(told), zero, zero):
        return f"This kernel takes no seccomp filter ({os.strerror(ctypes.get_errno())})"
    return None


def make_filter(processor: int, calls: dict[str, int]) -> bytes:
    """The filter: another processor's numbers end the process, unlisted calls fail."""
    numbers = sorted(calls.values())
    steps = [
        (_LOAD, 0, 0, 4),  # the processor, in struct seccomp_data
        (_EQUAL, 1, 0, processor),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),  # the number of the call
        # Each match jumps over the comparisons left and over _FAIL.
        *((_EQUAL, len(numbers) - at, 0, number) for at, number in enumerate(numbers)),
        (_RETURN, 0, 0, _FAIL),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *step) for step in steps)
