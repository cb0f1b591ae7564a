"""The same bits in any company, at the sizes of real models: tiny ones may round alike by luck."""

import numpy as np
import pyarrow as pa
import pytest
import torch

from polyseme.data.vocabulary import Vocabulary
from polyseme.embedding.embedder import Embedder
from polyseme.embedding.settings import Precision
from polyseme.model import Model
from polyseme.presets import PRESETS

WORDS = [str(number) for number in range(2000)]
LARGE = ["elmo-medium", "elmo-original"]


def embedder_of(preset: str, precision: Precision, threads: int) -> Embedder:
    """Random weights at the size of a preset, few words: they are looked up, not added up."""
    config = PRESETS[preset].model
    few = config.vocabulary.model_copy(update={"size": len(WORDS) + 5})
    config = config.model_copy(update={"vocabulary": few})
    vocabulary = Vocabulary(few, pa.array(WORDS), np.ones(len(WORDS), np.int64), "0123456789")
    torch.manual_seed(1)
    model = Model.new(config, vocabulary, None)
    return Embedder(model, device="cpu", precision=precision, threads=threads)


def check(embedder: Embedder, lengths: tuple[int, ...], times: int) -> None:
    random = np.random.default_rng(0)

    def drawn(length: int) -> list[str]:
        return [str(word) for word in random.integers(0, len(WORDS), length)]

    mine = [drawn(length) for length in lengths]
    alone = [next(iter(embedder.stream([words], batch_invariant=True))) for words in mine]
    for _ in range(times):
        others = [drawn(int(length)) for length in random.choice(lengths, 6 * len(lengths))]
        places = random.permutation(len(others) + len(mine))
        mixed = [(mine + others)[place] for place in places]
        found = list(embedder.stream(mixed, batch_invariant=True))
        for number, expected in enumerate(alone):
            place = int(np.flatnonzero(places == number)[0])
            assert found[place].tobytes() == expected.tobytes(), len(mine[number])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("preset", [name for name in PRESETS if name not in LARGE])
def test_a_sentence_has_the_same_bits_in_any_company(
    preset: str, precision: Precision, threads: int
) -> None:
    check(embedder_of(preset, precision, threads), (1, 7, 33), 2)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("preset", PRESETS)
def test_a_sentence_has_the_same_bits_in_any_company_in_many_cases(
    preset: str, precision: Precision, threads: int
) -> None:
    check(embedder_of(preset, precision, threads), (1, 2, 7, 20, 33, 60), 8)


def test_in_ordinary_batches_last_bits_do_change() -> None:
    """The control: bits move at this size, so the tests above can fail."""
    embedder = embedder_of("elmo-mini", "float32", 1)
    mine = WORDS[:20]
    [alone] = embedder.stream([mine])
    many = list(embedder.stream([mine, *(WORDS[n : n + 30] for n in range(100))]))
    assert many[0].tobytes() != alone.tobytes()
