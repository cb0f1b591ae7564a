"""What the processor is, as far as it decides which instructions are used and so the last bits."""

import platform
from functools import cache
from pathlib import Path

import torch

# Of instructions that torch's own name for the processor does not tell, those that its libraries
# multiply with where they find them.
_MULTIPLY = ("avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "bf16", "sve", "i8mm")
_KIND = ("vendor_id", "cpu family", "model", "CPU implementer", "CPU part")


def instructions() -> str:
    """Everything this processor can do, in the system's words."""
    facts = _facts()
    return facts.get("flags") or facts.get("Features") or platform.processor()


def describe_processor() -> str:
    """Its kind, what torch takes it for, and how it can multiply."""
    facts, can = _facts(), instructions().split()
    kind = "-".join(facts[name] for name in _KIND if name in facts) or platform.machine()
    capability = torch.backends.cpu.get_cpu_capability()
    return " ".join([kind, capability, *(name for name in _MULTIPLY if name in can)])


@cache
def _facts() -> dict[str, str]:
    """What Linux tells of the first processor; nothing elsewhere."""
    try:
        first, _, _ = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
