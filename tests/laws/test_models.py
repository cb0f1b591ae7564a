"""What holds for every model: it is saved and loaded whole, can learn, and shares out one."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from laws.cases import CASES, WORDS, Case, every_case
from polyseme.model import Model

OVERFITTED = [
    case
    for case in CASES
    if "-word+characters-" in case.name or case.name.startswith("lstm-separate-bidirectional")
]


@every_case
def test_saved_then_loaded_gives_the_same_bits(case: Case, tmp_path: Path) -> None:
    model = case.model()
    model.save(tmp_path, card="A test.")
    loaded = Model.load(tmp_path)
    targets, again = case.targets(model), case.targets(loaded)
    assert torch.equal(targets.batch.words, again.batch.words)
    for part, found in model.network.log_probabilities(targets).items():
        assert torch.equal(loaded.network.log_probabilities(again)[part], found)
    with torch.no_grad():
        layers = model.network.encoder(targets.batch).layers
        assert torch.equal(loaded.network.encoder(again.batch).layers, layers)


@every_case
def test_probabilities_over_all_targets_sum_to_one(case: Case) -> None:
    model = case.model()
    targets, network = case.targets(model), model.network
    with torch.no_grad():
        predictions = network.objective.predict(network.encoder, targets)
        table = network.encoder.inputs.word_embedding
        for part, prediction in predictions.items():
            number = 2 if part == "next_sentence" else model.vocabulary.size
            for vector in prediction.vectors[:2]:
                found = prediction.head.log_probabilities(
                    vector.expand(number, -1),
                    torch.arange(number),
                    table=None if table is None else table.weight,
                )
                assert float(found.exp().sum()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("case", OVERFITTED, ids=[case.name for case in OVERFITTED])
def test_one_batch_can_be_overfitted(case: Case) -> None:
    overfit(case)


@pytest.mark.slow
@every_case
def test_one_batch_can_be_overfitted_whole_list(case: Case) -> None:
    overfit(case)


def overfit(case: Case) -> None:
    """Train until each target has nearly all the probability."""
    model = case.model()
    # No word occurs twice, so that even a model of one word knows what comes next.
    batch = case.batch([WORDS])
    if case.has_pairs:
        batch = case.batch([WORDS[:6], WORDS[6:]])
        batch = replace(batch, follows=torch.tensor([0, 1]))
    targets = case.targets(model, batch)
    optimizer = torch.optim.AdamW(model.network.parameters(), lr=0.02, weight_decay=0.0)
    for _ in range(800):
        losses = model.network(targets)
        means = [loss / targets.counts[part] for part, loss in losses.items()]
        if all(float(mean.detach()) < 0.1 for mean in means):
            return
        optimizer.zero_grad()
        torch.stack(means).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    pytest.fail(f"not learnt: {[float(mean.detach()) for mean in means]}")
