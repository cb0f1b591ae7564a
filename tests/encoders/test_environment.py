"""What decides last bits is described: each thing that can change them changes the description."""

import functools

import pytest
import torch

from encoders.kernel import Kernels
from polyseme.encoders import environment
from polyseme.encoders.environment import describe, differences
from polyseme.encoders.kernels import build, loader
from polyseme.encoders.kernels.build import instruction_sets
from polyseme.encoders.kernels.loader import Kernel


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("torch", "torch.__version__", "0.0"),
        ("polyseme", "polyseme.encoders.environment.__version__", "0.0"),
        ("processor", "torch.backends.cpu.get_cpu_capability", lambda: "OTHER"),
        ("processor", f"{build.__name__}._facts", lambda: {"vendor_id": "Other"}),
    ],
)
def test_each_thing_is_told_with_both_values(
    name: str, place: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = describe(device="cpu", precision="float32")
    monkeypatch.setattr(place, value)
    now = describe(device="cpu", precision="float32")
    assert [each for each in now if now[each] != before[each]] == [name]
    assert differences(before, now) == f"{name} {before[name]}, now {now[name]}"


def test_the_kernel_is_told_by_what_it_does_and_its_build(
    library: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {}
    for kernel in (None, library):
        monkeypatch.setattr(loader, "load", lambda chosen=kernel: chosen)
        for precision in ("float32", "bfloat16"):
            found = describe(device="cpu", precision=precision)["kernel"]
            told[kernel is not None, precision] = found
    assert told[False, "float32"] == told[False, "bfloat16"] == "none"
    name, build = library.instruction_set, library.digest[:16]
    assert told[True, "float32"] == (
        f"{name} gates, {build}" if name == "baseline" else f"{name} steps, {build}"
    )
    assert told[True, "bfloat16"] in (f"{name} steps, {build}", f"{name} gates, {build}")
    monkeypatch.setattr(library, "digest", "0" * 64)
    assert describe(device="cpu", precision="float32")["kernel"] != told[True, "float32"]


def test_instruction_sets_are_told_apart(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    for name in instruction_sets():
        monkeypatch.setattr(loader, "load", functools.partial(kernels, name))
        told.append(describe(device="cpu", precision="float32")["kernel"])
    assert len(set(told)) == len(told)


def test_a_system_that_forbids_tiles_is_told_apart(
    library: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same build on the same processor then takes the other way."""
    monkeypatch.setattr(loader, "load", lambda: library)
    monkeypatch.setattr(library, "step_bfloat16", lambda *_: None, raising=False)
    ways = set()
    for answer in (0, 1):
        monkeypatch.setattr(library, "may_use_tiles", lambda found=answer: found, raising=False)
        ways.add(describe(device="cpu", precision="bfloat16")["kernel"])
    assert len(ways) == 2


def test_a_gpu_has_no_kernel_and_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "Some GPU")
    monkeypatch.setattr(environment, "_describe_kernel", lambda _: "never asked")
    told = describe(device="cuda", precision="bfloat16")
    assert told["kernel"] == "none"
    assert str(told["device"]).startswith("Some GPU")


def test_what_was_not_recorded_is_said_to_be_so() -> None:
    assert differences({"torch": "2"}, {"torch": "2", "kernel": "none"}) == (
        "kernel not recorded, now none"
    )
