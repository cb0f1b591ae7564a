"""What one machine without a graphics card can know of many cards: shapes, kinds of numbers and
devices by torch's fake tensors, the arithmetic of 64 processes by its fake process group."""

from typing import Any, NamedTuple

import pytest
import torch
from laws.cases import CASES, Case
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.distributed.fake_pg import FakeStore

from polyseme.devices import moved
from polyseme.training import TrainingConfig
from polyseme.training.processes import DistributedContext
from polyseme.training.step import Stepper

NUMBER = 64
# Every objective and softmax on an LSTM, and every encoder read apart and in pairs.
SOME = [
    case
    for case in CASES
    if "-word+" in case.name
    and (
        case.name.startswith(("lstm-", "none-"))
        or case.config.encoder.direction == "separate"
        or case.has_pairs
    )
]


@pytest.mark.parametrize("case", SOME, ids=lambda case: case.name)
def test_a_training_step_stays_on_the_card(case: Case) -> None:
    """Nothing is left behind on the processor: an operation on two devices would fail."""
    model = case.model()
    targets = case.targets(model)
    with FakeTensorMode(allow_non_fake_inputs=True):
        # A build without CUDA cannot draw fake random numbers on a card; "meta" is a device, too.
        network = model.network.to("meta").train()
        losses = network(targets.to("meta"))
        torch.stack(list(losses.values())).sum().backward()  # type: ignore[no-untyped-call]
        found = {p.grad.device.type for p in network.parameters() if p.grad is not None}
    assert found == {"meta"}
    assert all(loss.shape == () for loss in losses.values())


@pytest.mark.parametrize("name", ["lstm-separate-bidirectional-word+characters-sampled"])
def test_64_processes_have_together_the_gradient_of_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More processes than sentences: some have none. Their own parts are summed here and divided by
    their number, as DDP does; its reducer would wait for messages that nobody sends."""
    monkeypatch.setattr(DistributedContext, "wrap", lambda _, module: module)
    (case,) = [each for each in CASES if each.name == name]
    targets = case.targets(case.model())
    config = TrainingConfig(steps=1, device="cpu", precision="float32")

    def gradients(rank: int, number: int) -> list[torch.Tensor]:
        network = case.model().network
        stepper = Stepper(network, config, DistributedContext(rank, number, "cpu"))
        stepper.wrap()
        stepper.forward_backward(targets, step=0, wants_stop=False)
        stepper.unwrap()
        return [
            torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in network.parameters()
        ]

    alone = gradients(0, 1)
    together = [torch.zeros_like(each) for each in alone]
    for rank in range(NUMBER):
        torch.distributed.init_process_group(
            "fake", rank=rank, world_size=NUMBER, store=FakeStore()
        )
        try:
            for total, part in zip(together, gradients(rank, NUMBER), strict=True):
                total.add_(part)
        finally:
            torch.distributed.destroy_process_group()
    for total, expected in zip(together, alone, strict=True):
        assert torch.allclose(total / NUMBER, expected, atol=1e-6)


class Tensor(NamedTuple):
    """What `moved` sees of a tensor, and what it did with it."""

    device: torch.device
    did: list[tuple[Any, ...]]

    def pin_memory(self) -> "Tensor":
        self.did.append(("pin",))
        return self

    def to(self, device: str, non_blocking: bool = False) -> "Tensor":
        self.did.append((device, non_blocking))
        return self


@pytest.mark.parametrize(
    ("device", "has_card", "did"),
    [
        ("cuda:1", True, [("pin",), ("cuda:1", True)]),
        ("cuda", False, [("cuda", False)]),
        ("cpu", True, [("cpu", False)]),
    ],
)
def test_to_a_card_a_batch_goes_from_locked_memory_without_waiting(
    device: str, has_card: bool, did: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: has_card)
    tensor: Any = Tensor(torch.device("cpu"), [])
    moved(tensor, device)
    assert tensor.did == did
