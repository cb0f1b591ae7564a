"""A language model on a corpus, as the training loop sees it."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from polyseme.data.stream import (
    BatchConfig,
    PlannedBatch,
    SentenceStream,
    held_out,
    prefetch,
)
from polyseme.encoders.environment import Environment, describe
from polyseme.model import LanguageModel, Model
from polyseme.objectives import count_targets
from polyseme.objectives.prediction import OwnTargets, TrainingTargets
from polyseme.pretraining.evaluation import evaluate_targets, fixed_targets
from polyseme.text.corpus import Corpus
from polyseme.training.optimizer import ParamGroup, Position


class Pretraining:
    """Reads a corpus, makes the objective's targets, evaluates on what was held out."""

    def __init__(
        self,
        model: Model,
        corpus: Corpus,
        batches: BatchConfig,
        *,
        seed: int,
        held_out_words: int,
        precision: str = "float32",
        only: str | None = None,
    ) -> None:
        self.model, self.corpus, self.batch_config = model, corpus, batches
        self._seed, self._held_out_words, self._precision = seed, held_out_words, precision
        self._only = only
        self.own_shards: tuple[range, int] | None = None
        """Those of a step that this process works on, and of how many; None: all, or any."""
        if only is not None:
            for name, parameter in self.module.named_parameters():
                parameter.requires_grad_(name.startswith(f"objective.{only}."))
        self.stream = SentenceStream(
            corpus, model.vocabulary, batches, seed=seed, pairs=self.module.objective.pairs
        )

    @property
    def module(self) -> LanguageModel:
        """Everything that is trained."""
        return self.model.network

    def batches(self, position: Position) -> Iterator[tuple[Any, Position]]:
        """Targets from a position on, without end, made ready while others are worked on."""
        return prefetch(self._targets(position))

    def _targets(
        self, position: Position
    ) -> Iterator[tuple[TrainingTargets | OwnTargets, Position]]:
        for planned, after in self.stream.planned(position):
            # The seed is the position in the corpus: nothing to save, nothing to restore.
            seed = [self._seed, after["epoch"], after["window"], after["batch"]]
            yield self._make(planned, np.random.default_rng(seed)), after

    def _make(
        self, planned: PlannedBatch, random: np.random.Generator
    ) -> TrainingTargets | OwnTargets:
        """What one step predicts; of several processes' steps the own sentences, where the targets
        of a sentence depend on no other."""
        make, vocabulary = self.module.objective.make_targets, self.model.vocabulary
        counts = None
        if self.own_shards is not None:
            counts = count_targets(self.module.objective, torch.from_numpy(planned.lengths))
        if counts is None or self.own_shards is None:
            return self._trained(make(planned.build(), vocabulary, random))
        shards, number = self.own_shards
        shard = np.arange(len(planned.lengths)) % number
        rows = np.flatnonzero((shard >= shards.start) & (shard < shards.stop))
        # With fewer sentences than shards, some read the first one and predict nothing.
        own = self._trained(
            make(planned.build(rows if len(rows) else slice(1)), vocabulary, random)
        )
        if not len(rows):
            own = replace(own, parts={name: part.shard(1, 2) for name, part in own.parts.items()})
        counts = {name: counts[name] for name in own.parts}
        return OwnTargets(own, shards, counts, int(planned.lengths.sum()))

    def _trained(self, targets: TrainingTargets) -> TrainingTargets:
        """Those of what is trained."""
        return targets if self._only is None else targets.only(self._only)

    def param_groups(self) -> dict[str, ParamGroup]:
        """All parameters are trained alike."""
        return {}

    def evaluate(self) -> dict[str, float]:
        """Each part's measure on held-out text; the first part predicts words: perplexity."""
        # In the run's own precision: on the way the curve counts, at the end all digits do.
        found = evaluate_targets(self.module, self.held_out_targets, precision=self._precision)
        return found.measures

    @cached_property
    def held_out_targets(self) -> list[TrainingTargets]:
        """What is to be predicted in each evaluation on the way."""
        batches = held_out(
            self.corpus,
            self.model.vocabulary,
            self.batch_config,
            limit_words=self._held_out_words,
            pairs=self.module.objective.pairs,
        )
        targets = fixed_targets(self.module, self.model.vocabulary, batches)
        return [self._trained(each) for each in targets]

    def environment(self, *, device: str, precision: str) -> Environment:
        """Versions, threads, processor, kernel."""
        return describe(device=device, precision=precision)

    def fingerprint(self) -> dict[str, Any]:
        """What must be the same for a run to be continued: model, batches and text."""
        return {
            "model": self.model.config.model_dump(mode="json"),
            "batches": self.batch_config.model_dump(mode="json"),
            "seed": self._seed,
            "corpus": self.corpus.hashes,
            **({"only": self._only} if self._only else {}),
        }
