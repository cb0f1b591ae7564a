"""What the processor has decides what is compiled and loaded."""

from itertools import pairwise

import pytest
import torch

from polyseme.encoders.kernels import build
from polyseme.encoders.kernels.build import NEEDS, instruction_sets

LAPTOP = "fpu sse2 avx f16c fma avx2 bmi2"
SERVER = f"{LAPTOP} avx512f avx512dq avx512cd avx512bw avx512vl"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("fpu sse2", ["baseline"]),
        ("fpu sse2 avx avx2", ["baseline"]),  # some virtual machines hide FMA
        (LAPTOP, ["avx2", "baseline"]),
        (f"{LAPTOP} avx512f", ["avx2", "baseline"]),  # Xeon Phi: not the rest of it
        (SERVER, ["avx512", "avx2", "baseline"]),
        (f"{SERVER} avx512_bf16 amx_bf16 amx_tile", ["amx", "avx512", "avx2", "baseline"]),
    ],
)
def test_only_what_the_processor_has_and_the_best_first(
    flags: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_facts", lambda: {"flags": flags})
    assert instruction_sets() == expected


def test_arm_has_its_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_facts", lambda: {"Features": "fp asimd bf16 sve"})
    assert instruction_sets() == ["baseline"]


@pytest.mark.parametrize(
    ("capability", "best"), [("AVX512", "avx512"), ("AVX2", "avx2"), ("DEFAULT", "baseline")]
)
def test_where_the_system_does_not_tell_torch_does(
    capability: str, best: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_facts", dict)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert instruction_sets()[0] == best


def test_a_better_instruction_set_has_all_of_a_lesser() -> None:
    needed = [set(needs) for needs in NEEDS.values()]
    assert all(more > less for more, less in pairwise(needed))
