"""A sentence's vectors depend on the sentence alone: not on company, order, padding or the past.

The same bits in any company, at the sizes of real models: tiny ones may round alike by luck.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch import Tensor

from embedding.making import (
    ALL_WORDS,
    POINTS,
    CarriedOver,
    Change,
    Sentences,
    broken,
    distance,
    last_bit_of_others,
    layers_of,
    lowest_cosine,
    neighbours_seen,
    normalised_over_the_batch,
    padding_read,
    some_sentences,
    tiny,
)
from polyseme.data.batch import Batch
from polyseme.data.vocabulary import Vocabulary
from polyseme.embedding.embedder import Embedder
from polyseme.embedding.settings import Precision
from polyseme.encoders.encoded import Encoded
from polyseme.model import Model
from polyseme.presets import PRESETS

every_point = pytest.mark.parametrize("point", POINTS)
CONTEXT = [point for point in POINTS if POINTS[point][0] != "none"]
HALVES = [point for point in POINTS if POINTS[point][1] != "joint"]
LONG = [ALL_WORDS[n % 11] for n in range(35)]


def check_company(embedder: Embedder, sentences: Sentences, order: list[int]) -> None:
    """Alone, in a batch, in another order, beside a long one: the same, to the bit if asked."""
    together = layers_of(embedder, sentences)
    exactly = layers_of(embedder, sentences, batch_invariant=True)
    mixed = layers_of(embedder, [LONG, *(sentences[n] for n in order)])[1:]
    mixed_exactly = layers_of(
        embedder, [LONG, *(sentences[n] for n in order)], batch_invariant=True
    )[1:]
    for place, number in enumerate(order):
        [alone] = layers_of(embedder, [sentences[number]])
        [alone_exactly] = layers_of(embedder, [sentences[number]], batch_invariant=True)
        for found in (together[number], mixed[place], alone_exactly):
            assert distance(found, alone) <= 1e-5
            assert lowest_cosine(found, alone) >= 0.999999
        assert exactly[number].tobytes() == alone_exactly.tobytes()
        assert mixed_exactly[place].tobytes() == alone_exactly.tobytes()


def check_past(embedder: Embedder, times: int) -> None:
    """Again and again, other sentences between, batch-invariant or not: the same bits."""
    mine: Sentences = [["no", "unseen", "ban"], ["水"]]
    kinds = (False, True)
    first = [
        layers_of(embedder, mine, batch_invariant=batch_invariant) for batch_invariant in kinds
    ]
    random = np.random.default_rng(7)
    for _ in range(times):
        others = [list(random.choice(ALL_WORDS, length)) for length in random.integers(1, 20, 3)]
        layers_of(embedder, others, batch_invariant=bool(random.integers(2)))
        for kind, expected in zip(kinds, first, strict=True):
            again = layers_of(embedder, mine, batch_invariant=kind)
            assert all(np.array_equal(a, b) for a, b in zip(again, expected, strict=True))


def check_halves(embedder: Embedder, words: list[str], end: int) -> None:
    """What reads forward never saw what follows; what reads backward never what came before."""
    is_separate = embedder.model.config.encoder.direction == "separate"
    half = embedder.dim // 2 if is_separate else embedder.dim
    whole, begin, rest = (
        layers_of(embedder, [each])[0] for each in (words, words[:end], words[end:])
    )
    ahead, ahead_alone = whole[:, :end, :half], begin[..., :half]
    assert np.abs(ahead - ahead_alone).max(initial=0) <= 1e-6
    if is_separate:
        behind, behind_alone = whole[:, end:, half:], rest[..., half:]
        assert np.abs(behind - behind_alone).max(initial=0) <= 1e-6


@every_point
def test_company_order_and_padding_change_nothing(point: str) -> None:
    examples(check_company_of(tiny(point)), 12)


@pytest.mark.slow
@every_point
def test_company_order_and_padding_change_nothing_in_many_cases(point: str) -> None:
    examples(check_company_of(tiny(point)), 120)  # a thousand over all points


def check_company_of(embedder: Embedder) -> Callable[[Sentences, st.DataObject], None]:
    def check(sentences: Sentences, data: st.DataObject) -> None:
        order = data.draw(st.permutations(range(len(sentences))))
        check_company(embedder, sentences, list(order))

    return check


def examples(check: Callable[[Sentences, st.DataObject], None], number: int) -> None:
    """Run a check on so many cases, always the same ones."""
    chosen = settings(
        max_examples=number,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # a case that fails is not made smaller: that takes long
    )
    chosen(given(some_sentences(), st.data())(check))()


@every_point
def test_what_was_embedded_before_changes_no_bit(point: str) -> None:
    check_past(tiny(point), 10)


@pytest.mark.slow
@every_point
def test_what_was_embedded_before_changes_no_bit_in_many_repeats(point: str) -> None:
    check_past(tiny(point), 100)


@pytest.mark.parametrize("point", HALVES)
def test_halves_see_only_their_own_side(point: str) -> None:
    examples(check_halves_of(tiny(point)), 12)


@pytest.mark.slow
@pytest.mark.parametrize("point", HALVES)
def test_halves_see_only_their_own_side_in_many_cases(point: str) -> None:
    examples(check_halves_of(tiny(point)), 75)  # five hundred over all points


def check_halves_of(embedder: Embedder) -> Callable[[Sentences, st.DataObject], None]:
    def check(sentences: Sentences, data: st.DataObject) -> None:
        words = sentences[0]
        check_halves(embedder, words, data.draw(st.integers(0, len(words))))

    return check


@pytest.mark.parametrize("change", [normalised_over_the_batch, padding_read])
def test_an_encoder_that_looks_at_its_batch_is_noticed(change: Change) -> None:
    with pytest.raises(AssertionError):
        examples(check_company_of(broken(tiny("elmo"), change)), 12)


@every_point
def test_a_last_bit_that_depends_on_the_company_is_noticed(point: str) -> None:
    """The control does not wait for arithmetic to round in two ways, which it need not do."""
    embedder = tiny(point)
    encoder = embedder.model.network.encoder
    whole = encoder.contextualize

    def contextualize(distinct: Tensor, batch: Batch, **told: bool) -> Encoded:
        return last_bit_of_others(whole(distinct, batch, **told), distinct)

    encoder.contextualize = contextualize  # type: ignore[method-assign]
    with pytest.raises(AssertionError):
        examples(check_company_of(embedder), 12)


def test_a_state_that_is_carried_over_is_noticed() -> None:
    with pytest.raises(AssertionError):
        check_past(broken(tiny("elmo"), CarriedOver()), 2)


def test_an_encoder_that_looks_ahead_is_noticed() -> None:
    with pytest.raises(AssertionError):
        examples(check_halves_of(broken(tiny("elmo"), neighbours_seen)), 12)


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


@pytest.mark.parametrize(("precision", "threads"), [("float32", 2), ("bfloat16", 1)])
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
