"""What a sentence's vectors may depend on: the sentence, and nothing around it.

What holds for every model: it is saved and loaded whole, can learn, and shares out one.
"""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from laws.cases import CASES, SENTENCES, WORDS, Case, every_case, make
from polyseme.data.batch import Batch
from polyseme.model import Model


@torch.no_grad()
def layers_of(model: Model, batch: Batch) -> Tensor:
    layers: Tensor = model.network.encoder(batch).layers
    return layers


def assert_close(found: Tensor, expected: Tensor) -> None:
    """Equal but for the order in which floats were added up."""
    bound = 1e-5 * expected.square().mean().sqrt()
    assert float((found - expected).abs().max()) <= float(bound)


@every_case
def test_padding_and_company_change_nothing(case: Case) -> None:
    model, whole = case.model(), case.batch()
    together = layers_of(model, whole)
    for row, sentence in enumerate(SENTENCES):
        alone = layers_of(model, case.batch([sentence]))
        assert_close(together[:, row, : len(sentence) + 2], alone[:, 0])


@every_case
def test_there_is_nothing_where_there_is_no_word(case: Case) -> None:
    batch = case.batch()
    assert not layers_of(case.model(), batch)[:, ~batch.mask].any()


@every_case
def test_the_order_of_sentences_changes_nothing(case: Case) -> None:
    model, order = case.model(), [2, 0, 3, 1]
    mixed = layers_of(model, case.batch([SENTENCES[row] for row in order]))
    assert_close(mixed, layers_of(model, case.batch())[:, order])


@every_case
def test_layer_0_is_the_same_wherever_a_word_stands(case: Case) -> None:
    sentences = [["ban", "unseen", "no", "ban"], ["no", "ban"], ["unseen"]]
    words = layers_of(case.model(), case.batch(sentences))[0]
    for first, second in [((0, 1), (0, 4)), ((0, 1), (1, 2)), ((0, 3), (1, 1)), ((0, 2), (2, 1))]:
        assert torch.equal(words[first], words[second])
    assert not torch.equal(words[0, 1], words[0, 3])


@every_case
def test_twice_gives_the_same_bits(case: Case) -> None:
    model = case.model()
    targets = case.targets(model)
    first, losses = layers_of(model, targets.batch), model.network(targets)
    layers_of(model, case.batch([["other", "words"]]))  # nothing of these may linger
    assert torch.equal(layers_of(model, targets.batch), first)
    assert {k: float(v.detach()) for k, v in model.network(targets).items()} == {
        k: float(v.detach()) for k, v in losses.items()
    }


@every_case
def test_all_layers_are_as_wide_as_the_settings_say(case: Case) -> None:
    layers = layers_of(case.model(), case.batch())
    contextualizer = case.config.encoder.contextualizer
    number = 1 + contextualizer.num_layers
    rows, longest = len(SENTENCES), max(map(len, SENTENCES)) + 2
    assert layers.shape == (number, rows, longest, case.config.encoder.output_dim)


@pytest.mark.parametrize("contextualizer", ["lstm", "plain-lstm", "rotary", "learned"])
def test_joint_every_layer_sees_both_sides(contextualizer: str) -> None:
    case = make(contextualizer, "joint", "masked", "word", "full")
    model = case.model()
    sentence = ["ba", "ban", "no", "non", "ba"]
    before = layers_of(model, case.batch([sentence]))
    for position in (1, 4):  # BOS and EOS stand before and after
        changed = sentence.copy()
        changed[position] = "nonello" if position == 1 else "baello"
        after = layers_of(model, case.batch([changed]))
        assert (before[1:, 0, 3] != after[1:, 0, 3]).any(dim=-1).all()


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
    assert loaded.config == model.config
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
