"""The two objectives that read in a direction: which word is the target where.

Sharded targets are the same targets.

Neighbours, found one word at a time.
"""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
import torch
from laws.cases import CASES, Case

from objectives.making import VOCABULARY, random_sentences
from polyseme.data.batch import BOS, EOS
from polyseme.encoders.encoded import Encoded
from polyseme.objectives.bidirectional import (
    Bidirectional,
    BidirectionalConfig,
    Causal,
    CausalConfig,
)
from polyseme.objectives.prediction import Targets, TrainingTargets, word_ids
from polyseme.objectives.softmaxes import FullSoftmaxConfig, SampledSoftmaxConfig
from polyseme.objectives.word2vec import PART, Word2Vec, Word2VecConfig

FULL = FullSoftmaxConfig()


def read_off(part: Targets, number: int) -> list[list[tuple[int, int]]]:
    """For each sentence, (place, target) in order."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(number)]
    for row, column, target in zip(
        *(t.tolist() for t in (part.rows, part.columns, part.ids)), strict=True
    ):
        found[row].append((column, target))
    return found


def test_each_direction_predicts_the_neighbour_it_has_not_read() -> None:
    sentences = random_sentences(9)
    batch = VOCABULARY.batch(sentences)
    objective = Bidirectional(BidirectionalConfig(softmax=FULL), vocab_size=VOCABULARY.size, dim=4)
    targets = objective.make_targets(batch, VOCABULARY, np.random.default_rng(0))
    ahead = read_off(targets.parts["forward"], 9)
    behind = read_off(targets.parts["backward"], 9)
    for row, sentence in enumerate(sentences):
        known = VOCABULARY.ids_of(pa.array(sentence)).tolist()
        ids = [BOS, *known, EOS]
        assert ahead[row] == [(place, ids[place + 1]) for place in range(len(ids) - 1)]
        assert behind[row] == [(place, ids[place - 1]) for place in range(1, len(ids))]
    assert targets.counts == dict.fromkeys(("forward", "backward"), batch.num_words - 9)


def test_a_causal_model_predicts_what_the_forward_half_predicts() -> None:
    batch = VOCABULARY.batch(random_sentences(9))
    one = Causal(CausalConfig(softmax=FULL), vocab_size=VOCABULARY.size, dim=4)
    both = Bidirectional(BidirectionalConfig(softmax=FULL), vocab_size=VOCABULARY.size, dim=4)
    found = one.make_targets(batch, VOCABULARY, np.random.default_rng(0)).parts["forward"]
    expected = both.make_targets(batch, VOCABULARY, np.random.default_rng(0)).parts["forward"]
    for name in ("rows", "columns", "ids"):
        assert torch.equal(getattr(found, name), getattr(expected, name))


def test_each_direction_predicts_from_its_own_half() -> None:
    batch = VOCABULARY.batch([["w1", "w2"]])
    objective = Bidirectional(BidirectionalConfig(softmax=FULL), vocab_size=VOCABULARY.size, dim=4)
    targets = objective.make_targets(batch, VOCABULARY, np.random.default_rng(0))
    top = torch.arange(32.0).view(1, 4, 8)
    predictions = objective.predict(lambda _: Encoded((top,), batch.mask, True), targets)
    assert torch.equal(predictions["forward"].vectors, top[0, :3, :4])
    assert torch.equal(predictions["backward"].vectors, top[0, 1:, 4:])


def test_a_cloze_head_predicts_each_word_from_the_states_beside_it() -> None:
    """By its definition: the forward state before the word, the backward state after it."""
    batch = VOCABULARY.batch([["w1", "w2"], ["w3"]])
    config = BidirectionalConfig(softmax=FULL, cloze=True)
    objective = Bidirectional(config, vocab_size=VOCABULARY.size, dim=4)
    targets = objective.make_targets(batch, VOCABULARY, np.random.default_rng(0))
    known = VOCABULARY.ids_of(pa.array(["w1", "w2", "w3"])).tolist()
    assert read_off(targets.parts["cloze"], 2) == [[(1, known[0]), (2, known[1])], [(1, known[2])]]
    top = torch.arange(64.0).view(2, 4, 8)
    predictions = objective.predict(lambda _: Encoded((top,), batch.mask, True), targets)
    left = torch.stack([top[0, 0, :4], top[0, 1, :4], top[1, 0, :4]])
    right = torch.stack([top[0, 2, 4:], top[0, 3, 4:], top[1, 2, 4:]])
    assert objective.cloze is not None
    assert torch.equal(predictions["cloze"].vectors, objective.cloze(left, right))
    assert list(targets.only("cloze", "words").parts) == ["cloze"]


@pytest.mark.parametrize("is_sampled", [True, False])
def test_negatives_are_sampled_where_the_softmax_is(is_sampled: bool) -> None:
    softmax = SampledSoftmaxConfig(num_samples=7) if is_sampled else FULL
    objective = Causal(CausalConfig(softmax=softmax), vocab_size=VOCABULARY.size, dim=4)
    targets = objective.make_targets(
        VOCABULARY.batch([["w1"]]), VOCABULARY, np.random.default_rng(0)
    )
    assert (targets.negatives is not None) == is_sampled
    assert not is_sampled or len(targets.negatives.ids) == 7  # type: ignore[union-attr]


# Every objective and softmax; the encoders matter less here.
SOME = [
    case
    for case in CASES
    if "-word-" in case.name or (case.name.startswith("lstm") and "-word+characters-" in case.name)
]


@pytest.mark.parametrize("case", SOME, ids=[case.name for case in SOME])
def test_the_losses_of_all_shards_make_the_whole(case: Case) -> None:
    model = case.model()
    targets = case.targets(model)
    with torch.no_grad():
        whole = model.network(targets)
        for of in (1, 2, 3, 7):  # there are 4 sentences
            shards = [targets.shard(number, of) for number in range(of)]
            found = [model.network(shard) for shard in shards]
            for part, loss in whole.items():
                assert torch.allclose(sum(one[part] for one in found), loss, rtol=1e-4), (of, part)
                counted = sum(shard.counts[part] for shard in shards)
                assert counted == targets.counts[part]


@pytest.mark.parametrize("case", SOME[:12], ids=[case.name for case in SOME[:12]])
def test_the_gradients_of_all_shards_make_the_wholes(case: Case) -> None:
    model = case.model()
    targets = case.targets(model)
    whole = gradients(case, [targets])
    sharded = gradients(case, [targets.shard(number, 6) for number in range(6)])
    for name, gradient in whole.items():
        assert torch.allclose(sharded[name], gradient, atol=1e-4), name


def gradients(case: Case, several: list[TrainingTargets]) -> dict[str, torch.Tensor]:
    """Each weight's gradient of all these together."""
    network = case.model().network
    for targets in several:
        torch.stack(list(network(targets).values())).sum().backward()  # type: ignore[no-untyped-call]
    found = ((name, weight.grad) for name, weight in network.named_parameters())
    return {name: gradient for name, gradient in found if gradient is not None}


def test_every_sentence_is_read_in_exactly_one_shard() -> None:
    case = CASES[0]
    targets = case.targets(case.model())
    lengths = [targets.shard(number, 3).batch.lengths.tolist() for number in range(3)]
    whole = targets.batch.lengths.tolist()
    assert lengths == [whole[0::3], whole[1::3], whole[2::3]]


def test_a_shard_without_sentences_reads_one_and_predicts_nothing() -> None:
    case = CASES[0]
    shard = case.targets(case.model()).shard(5, 6)
    assert len(shard.batch.lengths) == 1
    assert set(shard.counts.values()) == {0}


def test_words_are_counted_with_their_special_tokens() -> None:
    case = CASES[0]
    targets = case.targets(case.model(), case.batch([["ba", "no"], ["ba"]]))
    assert targets.num_words == 7
    assert targets.counts == {part: 5 for part in targets.counts}  # noqa: C420


def word2vec(**values: object) -> Word2Vec:
    config = Word2VecConfig.model_validate({"softmax": FullSoftmaxConfig(), **values})
    return Word2Vec(config, vocab_size=VOCABULARY.size, dim=3)


@pytest.mark.parametrize("window", [1, 2, 5, 40])
def test_a_word_is_predicted_from_the_mean_of_those_around_it(window: int) -> None:
    batch = VOCABULARY.batch(random_sentences(8))
    objective = word2vec(window=window)
    targets = objective.make_targets(batch, VOCABULARY, np.random.default_rng(0))
    vectors = torch.randn(*batch.words.shape, 3)
    found = objective.predict(lambda _: Encoded((vectors,), batch.mask, False), targets)[
        PART
    ].vectors
    part = targets.parts[PART]
    for number, (row, column) in enumerate(zip(part.rows, part.columns, strict=True)):
        near = [
            vectors[row, place]
            for place in range(int(batch.lengths[row]))
            if 0 < abs(place - int(column)) <= window
        ]
        assert torch.allclose(found[number], torch.stack(near).mean(0), atol=1e-5)


def test_every_word_is_predicted_once_and_no_special_token() -> None:
    sentences = random_sentences(8)
    batch = VOCABULARY.batch(sentences)
    part = word2vec().make_targets(batch, VOCABULARY, np.random.default_rng(0)).parts[PART]
    places = list(zip(part.rows.tolist(), part.columns.tolist(), strict=True))
    assert places == [
        (row, n + 1) for row, words in enumerate(sentences) for n in range(len(words))
    ]
    assert torch.equal(part.ids, word_ids(batch)[part.rows, part.columns])


def test_neighbours_predicted_stand_within_the_window_in_the_same_sentence() -> None:
    sentences = random_sentences(400)
    batch, objective = VOCABULARY.batch(sentences), word2vec(architecture="skipgram", window=2)
    part = objective.make_targets(batch, VOCABULARY, np.random.default_rng(0)).parts[PART]
    ids = word_ids(batch)
    for row, column, target in zip(
        part.rows.tolist(), part.columns.tolist(), part.ids.tolist(), strict=True
    ):
        last = int(batch.lengths[row]) - 2
        near = [p for p in range(max(1, column - 2), min(last, column + 2) + 1) if p != column]
        assert target in ids[row, near].tolist()


def test_nearer_neighbours_are_predicted_more_often() -> None:
    """Window 3: a step of one comes from all three windows, of two from two, of three from one."""
    words = [f"w{number}" for number in range(30)]
    batch, objective = VOCABULARY.batch([words] * 300), word2vec(architecture="skipgram", window=3)
    part = objective.make_targets(batch, VOCABULARY, np.random.default_rng(0)).parts[PART]
    middle = (part.columns > 3) & (part.columns < 28)
    steps = Counter((part.ids - 5 - (part.columns - 1))[middle].tolist())
    total = sum(steps.values())
    expected = {1: (1 + 1 / 2 + 1 / 3) / 6, 2: (1 / 2 + 1 / 3) / 6, 3: (1 / 3) / 6}
    for step, share in expected.items():
        for sign in (1, -1):
            assert steps[sign * step] / total == pytest.approx(share, abs=4 * 0.5 / total**0.5)


def test_neighbours_are_predicted_from_the_word_alone() -> None:
    batch, objective = VOCABULARY.batch([["w1", "w2", "w3"]]), word2vec(architecture="skipgram")
    targets = objective.make_targets(batch, VOCABULARY, np.random.default_rng(0))
    vectors, part = torch.randn(1, 5, 3), targets.parts[PART]
    found = objective.predict(lambda _: Encoded((vectors,), batch.mask, False), targets)[
        PART
    ].vectors
    assert torch.equal(found, vectors[0, part.columns])


def test_a_sentence_of_one_word_has_no_word2vec() -> None:
    batch, objective = VOCABULARY.batch([["w1"]]), word2vec(architecture="skipgram")
    for seed in range(10):
        targets = objective.make_targets(batch, VOCABULARY, np.random.default_rng(seed))
        assert targets.counts == {PART: 0}
