"""A few sentences by weights in float16: what `recur` gives, where nothing is lost by it."""

import copy

import pytest
import torch
from torch import Tensor

from encoders.kernel import Kernels
from polyseme.encoders.cell import State
from polyseme.encoders.encoded import Direction
from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.build import instruction_sets
from polyseme.encoders.lstm import Lstm, LstmConfig, run_packed
from polyseme.encoders.steps import MOST_ROWS, FewRows

CONFIGS = {
    "projected": LstmConfig(proj_size=128, hidden_size=208, cell_clip=0.4, output_clip=0.15),
    "free": LstmConfig(proj_size=64, hidden_size=48, num_layers=1),
    "unprojected": LstmConfig(proj_size=96),
}


@pytest.fixture(autouse=True, params=[each for each in instruction_sets() if each != "baseline"])
def kernel(
    request: pytest.FixtureRequest, kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each that has steps: the others leave all to `recur`."""
    monkeypatch.setattr(loader, "load", lambda: kernels(request.param))


def drawn(
    name: str, direction: Direction = "separate", steps: int = 9, rows: int = 1
) -> tuple[Lstm, Tensor]:
    torch.manual_seed(7)
    lstm = Lstm(CONFIGS[name], direction)
    with torch.no_grad():
        for each in lstm.parameters():
            each.copy_(each.half())
    return lstm, torch.randn(rows, steps, CONFIGS[name].proj_size)


def by_recur(lstm: Lstm, vectors: Tensor, monkeypatch: pytest.MonkeyPatch) -> tuple[Tensor, ...]:
    with torch.no_grad(), monkeypatch.context() as context:
        context.setattr(FewRows, "can_run", lambda *_: False)
        return lstm(vectors, torch.tensor([vectors.shape[1]] * len(vectors)))  # type: ignore[no-any-return]


def by_few_rows(lstm: Lstm, vectors: Tensor, monkeypatch: pytest.MonkeyPatch) -> tuple[Tensor, ...]:
    """Fails if anything is left to `recur`."""
    with torch.no_grad(), monkeypatch.context() as context:
        context.delattr("polyseme.encoders.lstm.recur")
        return lstm(vectors, torch.tensor([vectors.shape[1]] * len(vectors)))  # type: ignore[no-any-return]


@pytest.mark.parametrize("direction", ["forward", "separate"])
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize(("steps", "rows"), [(1, 1), (9, 1), (9, 2), (3, 5), (4, 7), (2, 19)])
def test_vectors_are_those_of_recur(
    name: str, direction: Direction, steps: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lstm, vectors = drawn(name, direction, steps, rows)
    expected = by_recur(lstm, vectors, monkeypatch)
    found = by_few_rows(lstm, vectors, monkeypatch)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=2e-6)


def test_a_sentence_in_two_parts_is_as_the_whole() -> None:
    """As text is generated: each word from the states that the words before it have left."""
    lstm, vectors = drawn("projected", "forward")
    length = torch.tensor([5])
    with torch.no_grad():
        whole, last = lstm.run(vectors, length, None)
        _, states = lstm.run(vectors[:, :4], length, None)
        before = copy.deepcopy(states)
        rest, after = lstm.run(vectors[:, 4:], length, states)
    assert torch.equal(rest[-1], whole[-1][:, 4:])
    for one, other in zip(after, last, strict=True):
        assert torch.equal(one.cell, other.cell)
        assert torch.equal(one.hidden, other.hidden)
    for one, other in zip(states, before, strict=True):  # which are still what they were
        assert torch.equal(one.cell, other.cell)


def test_changed_weights_are_used_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lstm, vectors = drawn("projected")
    by_few_rows(lstm, vectors, monkeypatch)
    with torch.no_grad():
        for parameter in lstm.parameters():
            parameter.neg_()
    changed = by_few_rows(lstm, vectors, monkeypatch)
    torch.testing.assert_close(changed, by_recur(lstm, vectors, monkeypatch), rtol=1e-5, atol=2e-6)
    lstm.load_state_dict(drawn("projected")[0].state_dict(), assign=True)
    replaced = by_few_rows(lstm, vectors, monkeypatch)
    torch.testing.assert_close(replaced, by_recur(lstm, vectors, monkeypatch), rtol=1e-5, atol=2e-6)
    assert not torch.allclose(replaced[0], changed[0])


@pytest.mark.parametrize("which", ["weight_hh", "weight_hr"])
def test_weights_that_float16_does_not_hold_are_left_to_recur(
    which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lstm, vectors = drawn("projected")
    with torch.no_grad():
        for layer in lstm.layers:
            getattr(layer, which)[0, 0, 0] += 1e-6
        found = lstm(vectors, torch.tensor([9]))
    assert torch.equal(found[1], by_recur(lstm, vectors, monkeypatch)[1])


@pytest.mark.parametrize("special_tokens", [True, False])
@pytest.mark.parametrize("direction", ["forward", "separate", "joint"])
@pytest.mark.parametrize("name", ["projected", "unprojected"])
def test_sentences_of_many_lengths_are_packed(
    name: str, direction: Direction, special_tokens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lstm, vectors = drawn(name, direction, 20, rows=14)
    lengths = torch.tensor([3, 20, 7, 7, 4, 12, 9, 3, 5, 18, 20, 6, 8, 11])
    words = torch.arange(vectors.shape[0] * 20).view(-1, 20)
    words[:, 0] = 0  # as all begin with the same token
    read = lstm, vectors.flatten(0, 1), words, lengths
    found = run_packed(*read, special_tokens=special_tokens)
    with monkeypatch.context() as context:
        context.setattr(FewRows, "can_run", lambda *_: False)
        expected = run_packed(*read, special_tokens=special_tokens)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=2e-6)
        assert not torch.equal(one, other)  # or the same code worked them out


def test_many_rows_gradients_and_other_precisions_are_left_to_others() -> None:
    [layer, _] = drawn("projected")[0].all_layers()
    weights = layer.weights()
    float32 = torch.float32
    with torch.no_grad():
        assert FewRows().can_run(weights, float32, [2, 2, 1])
        assert not FewRows().can_run(weights, torch.bfloat16, [2, 2, 1])
        assert not FewRows().can_run(weights, float32, [MOST_ROWS + 1])
    assert not FewRows().can_run(weights, float32, [2, 2, 1])
    with torch.inference_mode():
        cloned = weights._replace(weight_hh=weights.weight_hh.clone())
        assert not FewRows().can_run(cloned, float32, [2, 2, 1])


def test_what_is_not_a_number_is_not_hidden() -> None:
    lstm, vectors = drawn("projected", "forward")
    vectors[0, 4, 3] = torch.nan
    with torch.no_grad():
        (*_, top) = lstm(vectors, torch.tensor([9]))
    assert top[0, 4:].isnan().all()
    assert top[0, :4].isfinite().all()


def test_two_threads_give_the_bits_of_one() -> None:
    lstm, vectors = drawn("projected", rows=4)
    found = []
    for number in (1, 2):
        torch.set_num_threads(number)
        with torch.no_grad():
            found.append(lstm(vectors, torch.tensor([9, 9, 9, 9])))
    torch.set_num_threads(1)
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))


def test_it_begins_with_any_state_as_recur_does(monkeypatch: pytest.MonkeyPatch) -> None:
    lstm, vectors = drawn("free", steps=6)
    random = torch.Generator().manual_seed(1)
    state = State(
        torch.randn(2, 1, 64, generator=random) * 0.1, torch.randn(2, 1, 48, generator=random)
    )
    length = torch.tensor([6])
    with torch.no_grad():
        with monkeypatch.context() as context:
            context.delattr("polyseme.encoders.lstm.recur")
            found, after = lstm.run(vectors, length, [state])
        monkeypatch.setattr(FewRows, "can_run", lambda *_: False)
        expected, expected_after = lstm.run(vectors, length, [state])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=2e-6)
    torch.testing.assert_close(tuple(after[0]), tuple(expected_after[0]), rtol=1e-5, atol=2e-6)
