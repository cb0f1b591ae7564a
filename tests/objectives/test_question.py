"""A question that is shared out is the question all the same."""

import pytest
import torch
from laws.cases import CASES, Case

from polyseme.objectives.question import Question

# Every objective and softmax; the encoders matter less here.
SHARED = [
    case
    for case in CASES
    if "-lookup-" in case.name or (case.name.startswith("lstm") and "-fused-" in case.name)
]


@pytest.mark.parametrize("case", SHARED, ids=[case.name for case in SHARED])
def test_the_losses_of_all_shares_make_the_whole(case: Case) -> None:
    model = case.model()
    question = case.question(model)
    with torch.no_grad():
        whole = model.network(question)
        for of in (1, 2, 3, 7):  # there are 4 sentences
            shares = [question.share(number, of) for number in range(of)]
            found = [model.network(share) for share in shares]
            for part, loss in whole.items():
                assert torch.allclose(sum(one[part] for one in found), loss, rtol=1e-4), (of, part)
                counted = sum(share.counts[part] for share in shares)
                assert counted == question.counts[part]


@pytest.mark.parametrize("case", SHARED[:12], ids=[case.name for case in SHARED[:12]])
def test_the_gradients_of_all_shares_make_the_wholes(case: Case) -> None:
    model = case.model()
    question = case.question(model)
    whole = slopes(case, [question])
    shared = slopes(case, [question.share(number, 6) for number in range(6)])
    for name, slope in whole.items():
        assert torch.allclose(shared[name], slope, atol=1e-4), name


def slopes(case: Case, questions: list[Question]) -> dict[str, torch.Tensor]:
    """What all these questions together pull each weight by."""
    network = case.model().network
    for question in questions:
        torch.stack(list(network(question).values())).sum().backward()  # type: ignore[no-untyped-call]
    found = ((name, weight.grad) for name, weight in network.named_parameters())
    return {name: slope for name, slope in found if slope is not None}


def test_every_sentence_is_read_in_exactly_one_share() -> None:
    case = CASES[0]
    question = case.question(case.model())
    lengths = [question.share(number, 3).batch.lengths.tolist() for number in range(3)]
    whole = question.batch.lengths.tolist()
    assert lengths == [whole[0::3], whole[1::3], whole[2::3]]


def test_a_share_without_sentences_reads_one_and_is_asked_nothing() -> None:
    case = CASES[0]
    share = case.question(case.model()).share(5, 6)
    assert len(share.batch.lengths) == 1
    assert set(share.counts.values()) == {0}


def test_words_are_counted_with_their_marks() -> None:
    case = CASES[0]
    question = case.question(case.model(), case.batch([["ba", "no"], ["ba"]]))
    assert question.num_words == 7
    assert question.counts == {part: 5 for part in question.counts}  # noqa: C420
