"""Sharded targets are the same targets."""

import pytest
import torch
from laws.cases import CASES, Case

from polyseme.objectives.prediction import TrainingTargets

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
