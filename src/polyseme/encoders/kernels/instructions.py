"""What the processor is and can do, and for which instruction sets the kernel is compiled.

A library is compiled for one instruction set, all of them from the same sources, and a process
loads one library. So two ways of adding up are never mixed, and no processor meets an instruction
that it does not have.
"""

import platform
from functools import cache
from pathlib import Path
from typing import Literal

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
