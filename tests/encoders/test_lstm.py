"""Stacks of the recurrence: directions, what is added to what, and the state that is carried.

Many sentences packed, against the layers one after another as training runs them.
"""

import math

import pytest
import torch
from torch import Tensor

from polyseme.encoders.encoded import Direction, reverse_sequences
from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.loader import Kernel
from polyseme.encoders.lstm import Lstm, LstmConfig, run_packed, run_to_last

PROJECTED = LstmConfig(num_layers=3, proj_size=6, hidden_size=10, cell_clip=0.3, output_clip=0.2)
PLAIN = LstmConfig(num_layers=2, proj_size=6)
CONFIGS = pytest.mark.parametrize("config", [PROJECTED, PLAIN], ids=["projected", "plain"])


def lstm(config: LstmConfig, direction: Direction) -> Lstm:
    torch.manual_seed(0)
    return Lstm(config, direction).eval()


def one_stack(module: Lstm, stack: int, words: list[list[float]]) -> list[list[list[float]]]:
    """Every layer's outputs for one sentence, one number at a time; no residual, no direction."""
    layers = []
    for number, layer in enumerate(module.layers):
        weights = {name: w[stack].double() for name, w in layer.state_dict().items()}
        hidden_size = weights["bias"].shape[0] // 4
        proj_size = weights["weight_hh"].shape[0]
        hidden, cell = [0.0] * proj_size, [0.0] * hidden_size
        outputs = []
        for word in words:
            gates = (
                weights["bias"]
                + torch.tensor(word, dtype=torch.double) @ weights["weight_ih"]
                + torch.tensor(hidden, dtype=torch.double) @ weights["weight_hh"]
            ).tolist()
            for n in range(hidden_size):
                input_gate, forget_gate = _sigmoid(gates[n]), _sigmoid(gates[hidden_size + n])
                cell[n] = forget_gate * cell[n] + input_gate * math.tanh(gates[3 * hidden_size + n])
                cell[n] = _clip(cell[n], module.config.cell_clip)
            out = [
                _sigmoid(gates[2 * hidden_size + n]) * math.tanh(cell[n])
                for n in range(hidden_size)
            ]
            if "weight_hr" in weights:
                out = (torch.tensor(out, dtype=torch.double) @ weights["weight_hr"]).tolist()
            hidden = [_clip(value, module.config.output_clip) for value in out]
            outputs.append(hidden)
        if number:
            outputs = (torch.tensor(outputs) + torch.tensor(words)).tolist()
        layers.append(outputs)
        words = outputs
    return layers


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def _clip(value: float, bound: float | None) -> float:
    return value if bound is None else max(-bound, min(bound, value))


@CONFIGS
def test_separate_each_half_is_a_plain_loop_over_its_own_reading_direction(
    config: LstmConfig,
) -> None:
    module, vectors = lstm(config, "separate"), torch.randn(2, 5, 6)
    with torch.no_grad():
        found = module(vectors, torch.tensor([5, 3]))
    for row, length in ((0, 5), (1, 3)):
        words = vectors[row, :length].tolist()
        forward, backward = one_stack(module, 0, words), one_stack(module, 1, words[::-1])
        for number, layer in enumerate(found):
            assert _near(layer[row, :length, :6], forward[number])
            assert _near(layer[row, :length, 6:], backward[number][::-1])


@CONFIGS
def test_forward_is_the_first_of_the_two_stacks(config: LstmConfig) -> None:
    module, vectors = lstm(config, "forward"), torch.randn(1, 4, 6)
    with torch.no_grad():
        found = module(vectors, torch.tensor([4]))
    expected = one_stack(module, 0, vectors[0].tolist())
    assert all(_near(layer[0], expected[number]) for number, layer in enumerate(found))


def _near(found: Tensor, expected: list[list[float]]) -> bool:
    return torch.allclose(found, torch.tensor(expected), atol=1e-5)


@CONFIGS
def test_two_halves_with_the_state_carried_equal_the_whole(config: LstmConfig) -> None:
    module, vectors = lstm(config, "forward"), torch.randn(3, 8, 6)
    lengths = torch.tensor([8, 8, 8])
    with torch.no_grad():
        whole, end = module.run(vectors, lengths, None)
        first, states = module.run(vectors[:, :3], torch.tensor([3, 3, 3]), None)
        second, after = module.run(vectors[:, 3:], torch.tensor([5, 5, 5]), states)
    for number, layer in enumerate(whole):
        halves = torch.cat([first[number], second[number]], dim=1)
        assert torch.allclose(halves, layer, atol=1e-6)
        assert torch.allclose(after[number].cell, end[number].cell, atol=1e-6)
        assert torch.allclose(after[number].hidden, end[number].hidden, atol=1e-6)


def test_gates_begin_by_remembering() -> None:
    for name, weight in lstm(PROJECTED, "separate").named_parameters():
        if not name.endswith("bias"):
            continue
        input_gate, forget_gate, output_gate, candidate = weight.chunk(4, dim=-1)
        assert bool((forget_gate == 1).all())
        assert not torch.cat([input_gate, output_gate, candidate]).any()


@CONFIGS
def test_joint_the_second_layer_reads_both_halves_of_the_first(config: LstmConfig) -> None:
    module, vectors = lstm(config, "joint"), torch.randn(1, 4, 6)
    with torch.no_grad():
        found = module(vectors, torch.tensor([4]))
        second = module.layers[1]
        read = torch.stack([found[0], found[0].flip(1)]).transpose(1, 2)
        outcome, _ = second(read, None)
    expected = torch.cat([outcome[0, :, 0], outcome[1, :, 0].flip(0)], dim=-1) + found[0][0]
    assert torch.allclose(found[1][0], expected, atol=1e-6)


TIGHT = {"cell_clip": 0.4, "output_clip": 0.2}
CONFIGS_PACKED_LSTM = {
    "projected": LstmConfig(num_layers=3, proj_size=32, hidden_size=48, **TIGHT),
    "free": LstmConfig(num_layers=2, proj_size=64, hidden_size=160),
    "unprojected": LstmConfig(num_layers=2, proj_size=64, cell_clip=0.4),
    "not added": LstmConfig(num_layers=2, proj_size=32, hidden_size=48, residual=False, **TIGHT),
    "sizes no kernel takes": LstmConfig(num_layers=2, proj_size=10, hidden_size=37, **TIGHT),
}
LENGTHS = [1, 9, 4, 30, 2, 9, 17, 3, 3, 1, 25, 12, 8, 5, 5, 2, 7, 19, 11]


def drawn(
    name: str, direction: Direction, lengths: list[int] = LENGTHS, distinct: int = 20
) -> tuple[Lstm, Tensor, Tensor, Tensor]:
    """Layers, the vectors of distinct words, words and lengths."""
    torch.manual_seed(len(lengths))
    lstm = Lstm(CONFIGS_PACKED_LSTM[name], direction).eval()
    with torch.no_grad():
        for weight in lstm.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    words = torch.randint(1, distinct, (len(lengths), max(lengths)))
    words[torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None]] = 0
    return lstm, torch.randn(distinct, CONFIGS_PACKED_LSTM[name].dim), words, torch.tensor(lengths)


def plain(lstm: Lstm, distinct: Tensor, words: Tensor, lengths: Tensor) -> list[Tensor]:
    """As training runs it; zeros where there is no word."""
    mask = torch.arange(words.shape[1]) < lengths[:, None]
    with torch.no_grad():
        return [layer * mask[..., None] for layer in lstm(distinct[words], lengths)]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("direction", ["forward", "separate", "joint"])
@pytest.mark.parametrize("distinct", [20, 4000], ids=["words again and again", "words once"])
@pytest.mark.parametrize("name", CONFIGS_PACKED_LSTM)
def test_vectors_are_those_of_the_layers_as_they_are_trained(
    name: str, distinct: int, direction: Direction
) -> None:
    given = drawn(name, direction, distinct=distinct)
    for found, expected in zip(run_packed(*given), plain(*given), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("lengths", [LENGTHS, [1], [2, 1, 0], [0, 0]], ids=str)
@pytest.mark.parametrize("direction", ["forward", "separate", "joint"])
@pytest.mark.parametrize("name", CONFIGS_PACKED_LSTM)
def test_where_special_tokens_are_of_no_interest_the_words_between_have_the_same_vectors(
    name: str, direction: Direction, lengths: list[int]
) -> None:
    given = drawn(name, direction, [length + 2 for length in lengths])
    _, _, words, ends = given
    words[:, 0] = 1
    words[torch.arange(len(words)), ends - 1] = 2
    position = torch.arange(words.shape[1])
    is_word = (position > 0) & (position < ends[:, None] - 1)
    for found, expected in zip(
        run_packed(*given, special_tokens=False), plain(*given), strict=True
    ):
        torch.testing.assert_close(found[is_word], expected[is_word], rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", CONFIGS_PACKED_LSTM)
def test_the_last_outputs_are_those_of_reading_each_side_whole(name: str) -> None:
    lstm, distinct, words, lengths = drawn(name, "separate")
    _, _, others, other_lengths = drawn(name, "separate", list(range(1, len(lengths) + 1)))
    width = max(words.shape[1], others.shape[1])
    both = [torch.nn.functional.pad(each, (0, width - each.shape[1])) for each in (words, others)]
    last = run_to_last(lstm, distinct, (both[0], both[1]), (lengths, other_lengths))
    half = last.shape[1] // 2
    forward = run_packed(lstm, distinct, both[0], lengths)[-1]
    # The backward stack reads from the end: what it reads first stands last in a sentence.
    reversed_ = reverse_sequences(both[1][..., None], other_lengths)[..., 0]
    backward = run_packed(lstm, distinct, reversed_, other_lengths)[-1]
    for row in range(len(lengths)):
        expected = torch.cat([forward[row, lengths[row] - 1, :half], backward[row, 0, half:]])
        torch.testing.assert_close(last[row], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", CONFIGS_PACKED_LSTM)
def test_in_bfloat16_vectors_point_the_same_way(name: str) -> None:
    given = drawn(name, "separate")
    with torch.autocast("cpu", torch.bfloat16):
        layers = run_packed(*given)
    is_word = torch.arange(30) < given[3][:, None]
    for found, expected in zip(layers, plain(*given), strict=True):
        assert found.dtype == torch.bfloat16
        alike = torch.cosine_similarity(found[is_word].double(), expected[is_word].double(), -1)
        assert float(alike.min()) > 0.9995


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("rows", [1, 2, 5, 6, 7, 16, 17, 31, 33])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_any_number_of_sentences_can_be_read(rows: int, dtype: torch.dtype) -> None:
    given = drawn("projected", "separate", [1 + n % 3 for n in range(rows)])
    with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
        (*_, top) = run_packed(*given)
    torch.testing.assert_close(top.float(), plain(*given)[-1], rtol=0.05, atol=0.05)
    assert not top[torch.arange(top.shape[1]) >= given[3][:, None]].any()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_what_is_not_a_number_stays_in_its_sentence_and_is_not_hidden(dtype: torch.dtype) -> None:
    lstm, distinct, words, lengths = drawn("projected", "forward")
    distinct[-1] = torch.nan
    words[words == len(distinct) - 1] = 1
    words[3, 5] = len(distinct) - 1
    with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
        (*_, top) = run_packed(lstm, distinct, words, lengths)
    assert top[3, 5:].isnan().all()
    assert top[3, :5].isfinite().all()
    assert top[[0, 1, 2, 4, 5]].isfinite().all()


def test_two_threads_give_the_bits_of_one(library: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 32,768 cells at a step, or the work would not be shared out."""
    monkeypatch.setattr(loader, "load", lambda: library)
    given = drawn("free", "separate", [3] * 128)
    for dtype in (torch.float32, torch.bfloat16):
        found = []
        for number in (1, 2):
            torch.set_num_threads(number)
            with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
                found.append(run_packed(*given))
        torch.set_num_threads(1)
        assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))


def test_torch_multiplies_as_before_after_the_kernel_used_tiles(
    library: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "load", lambda: library)
    one, other = torch.randn(2, 64, 64).bfloat16()
    expected = one @ other
    for _ in range(3):
        with torch.autocast("cpu", torch.bfloat16):
            run_packed(*drawn("free", "separate"))
        assert torch.equal(one @ other, expected)
