"""An objective may read more than once and be measured otherwise: shown by two that are not ours.

*Replaced* is ELECTRA's (Clark et al., 2020): some words are masked, guesses of the model itself are
put in their place, and of every word it is predicted whether it was replaced. *Twice* is SimCSE's
(Gao et al., 2021): the same sentence, read twice with other dropout, is to be found among others.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from laws.cases import make
from torch import Tensor, nn
from torch.nn import functional

from polyseme.data.batch import Batch
from polyseme.data.vocabulary import Vocabulary
from polyseme.model import Model
from polyseme.objectives.masked import ClassificationHead, Masked
from polyseme.objectives.prediction import (
    Encode,
    HeldOutMeasure,
    Negatives,
    Prediction,
    Targets,
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


class Twice(nn.Module):
    """Which sentence of the batch a sentence is, read once more."""

    pairs = False
    measure: HeldOutMeasure = "accuracy"

    def make_targets(
        self, batch: Batch, vocabulary: Vocabulary, random: np.random.Generator
    ) -> TrainingTargets:
        del vocabulary, random
        rows = torch.arange(len(batch.lengths))
        return TrainingTargets(batch, {"twice": Targets(rows, torch.zeros_like(rows), rows)})

    def predict(self, encode: Encode, targets: TrainingTargets) -> dict[str, Prediction]:
        one, other = (_mean(encode(targets.batch).top, targets.batch.mask) for _ in range(2))
        part = targets.parts["twice"]
        return {"twice": Prediction(_Nearest(other), one[part.rows], part.ids)}


class _Nearest:
    """The head of `Twice`: its classes are the batch's own sentences."""

    measure: HeldOutMeasure = "accuracy"

    def __init__(self, among: Tensor) -> None:
        self.among = among

    def losses(
        self,
        parts: Sequence[tuple[Tensor, Tensor]],
        *,
        table: Tensor | None,
        negatives: Negatives | None,
    ) -> Sequence[Tensor]:
        del negatives
        return [-self.log_probabilities(*part, table=table).sum() for part in parts]

    def log_probabilities(
        self, vectors: Tensor, targets: Tensor, *, table: Tensor | None
    ) -> Tensor:
        del table
        return self._all(vectors).gather(1, targets[:, None])[:, 0]

    def top_k(self, vectors: Tensor, k: int, *, table: Tensor | None) -> tuple[Tensor, Tensor]:
        del table
        log_probs, ids = self._all(vectors).topk(k, dim=-1)
        return log_probs, ids

    def logits(self, vectors: Tensor, ids: Tensor, *, table: Tensor | None) -> Tensor:
        del table
        return self._all(vectors)[:, ids]

    def _all(self, vectors: Tensor) -> Tensor:
        one, other = functional.normalize(vectors, dim=-1), functional.normalize(self.among, dim=-1)
        return (20 * one @ other.T).log_softmax(dim=-1)


def _mean(top: Tensor, mask: Tensor) -> Tensor:
    return (top * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)


def model_with(kind: str) -> tuple[Model, TrainingTargets]:
    """A tiny model whose objective is one of the two, and targets for it."""
    case = make("lstm", "joint", "masked", "word", "full")
    model = case.model()
    masked = model.network.objective
    assert isinstance(masked, Masked)
    objective = Replaced(masked, dim=8) if kind == "replaced" else Twice()
    model.network.objective = objective  # type: ignore[assignment]
    random = np.random.default_rng(0)
    return model, objective.make_targets(case.batch(), model.vocabulary, random)


@pytest.mark.parametrize("kind", ["replaced", "twice"])
def test_an_objective_that_reads_twice_is_trained_and_measured(kind: str) -> None:
    torch.manual_seed(0)
    model, targets = model_with(kind)
    network, read = model.network, []
    network.encoder.register_forward_hook(lambda *_: read.append(1))
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.02)
    network.train()
    losses = []
    for _ in range(40):
        loss = torch.stack([loss for part, loss in network(targets).items() if part == kind]).sum()
        losses.append(float(loss.detach()))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert len(read) == 80
    assert losses[-1] < 0.5 * losses[0]
    measures = evaluate_targets(network, [targets]).measures
    assert measures[f"{kind}_accuracy"] > 0.9
    assert ("masked_perplexity" in measures) == (kind == "replaced")


def test_a_prediction_has_targets_of_its_own() -> None:
    model, targets = model_with("replaced")
    found = model.network.scores(targets)["replaced"].targets
    is_masked = torch.zeros_like(targets.batch.mask)
    is_masked[targets.parts["masked"].rows, targets.parts["masked"].columns] = True
    every = targets.parts["replaced"]
    assert not found[~is_masked[every.rows, every.columns]].any()
    assert set(found.tolist()) == {0, 1}
