"""An objective may read more than once and be measured otherwise: shown by one that is not ours.

*Replaced* is ELECTRA's (Clark et al., 2020): some words are masked, guesses of the model itself are
put in their place, and of every word it is predicted whether it was replaced.
"""

from dataclasses import replace

import numpy as np
import torch
from laws.cases import make
from torch import nn

from polyseme.data.batch import Batch
from polyseme.data.vocabulary import Vocabulary
from polyseme.model import Model
from polyseme.objectives.masked import ClassificationHead, Masked
from polyseme.objectives.prediction import (
    Encode,
    Prediction,
    TrainingTargets,
    all_words,
    word_ids,
)
from polyseme.pretraining.evaluation import evaluate_targets


class Replaced(nn.Module):
    """Masked words, then of every word whether it is another than the one that was written."""

    pairs = False

    def __init__(self, masked: Masked, dim: int) -> None:
        super().__init__()
        self.masked = masked
        self.detector = ClassificationHead(dim, 2)

    def make_targets(
        self, batch: Batch, vocabulary: Vocabulary, random: np.random.Generator
    ) -> TrainingTargets:
        targets = self.masked.make_targets(batch, vocabulary, random)
        return replace(targets, parts={**targets.parts, "replaced": all_words(batch)})

    def predict(self, encode: Encode, targets: TrainingTargets) -> dict[str, Prediction]:
        guessed = self.masked.predict(encode, targets)
        masked, every = targets.parts["masked"], targets.parts["replaced"]
        _, words = self.masked.softmax.top_k(guessed["masked"].vectors.detach(), 1, table=None)
        # Other words may come in that the batch does not have: it gets one more for each guess.
        batch, first = targets.batch, len(targets.batch.ids)
        read = batch.words.clone()
        read[masked.rows, masked.columns] = torch.arange(first, first + len(words))
        characters = batch.char_ids[:1].expand(len(words), -1)
        batch = replace(
            batch,
            words=read,
            ids=torch.cat([batch.ids, words[:, 0]]),
            char_ids=torch.cat([batch.char_ids, characters]),
        )
        is_other = word_ids(batch)[every.rows, every.columns] != every.ids
        vectors = encode(batch).top[every.rows, every.columns]
        return {**guessed, "replaced": Prediction(self.detector, vectors, is_other.long())}


def model_and_targets() -> tuple[Model, TrainingTargets]:
    """A tiny model with that objective, and targets for it."""
    case = make("lstm", "joint", "masked", "word", "full")
    model = case.model()
    masked = model.network.objective
    assert isinstance(masked, Masked)
    objective = Replaced(masked, dim=8)
    model.network.objective = objective  # type: ignore[assignment]
    random = np.random.default_rng(0)
    return model, objective.make_targets(case.batch(), model.vocabulary, random)


def test_an_objective_that_reads_twice_is_trained_and_measured() -> None:
    torch.manual_seed(0)
    model, targets = model_and_targets()
    network, read = model.network, []
    network.encoder.register_forward_hook(lambda *_: read.append(1))
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.02)
    network.train()
    losses = []
    for _ in range(40):
        loss = network(targets)["replaced"]
        losses.append(float(loss.detach()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert len(read) == 80
    assert losses[-1] < 0.5 * losses[0]
    measures = evaluate_targets(network, [targets]).measures
    assert measures["replaced_accuracy"] > 0.9
    assert "masked_perplexity" in measures


def test_a_prediction_has_targets_of_its_own() -> None:
    model, targets = model_and_targets()
    found = model.network.scores(targets)["replaced"].targets
    is_masked = torch.zeros_like(targets.batch.mask)
    is_masked[targets.parts["masked"].rows, targets.parts["masked"].columns] = True
    every = targets.parts["replaced"]
    assert not found[~is_masked[every.rows, every.columns]].any()
    assert set(found.tolist()) == {0, 1}
