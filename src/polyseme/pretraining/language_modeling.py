"""A language model on a corpus, as the training loop sees it."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from polyseme.data.stream import BatchConfig, SentenceStream, held_out, prefetch
from polyseme.encoders.environment import Environment, describe
from polyseme.model import LanguageModel, Model
from polyseme.objectives.targets import TrainingTargets
from polyseme.pretraining.evaluation import evaluate_targets, fixed_targets
from polyseme.text.corpus import Corpus
from polyseme.training.optimizer import ParamGroup
from polyseme.training.train_module import Position


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

    def batches(self, position: Position) -> Iterator[tuple[TrainingTargets, Position]]:
        """Targets from a position on, without end, made ready while others are worked on."""
        return prefetch(self._targets(position))

    def _targets(self, position: Position) -> Iterator[tuple[TrainingTargets, Position]]:
        for batch, after in self.stream(position):
            # The seed is the position in the corpus: nothing to save, nothing to restore.
            seed = [self._seed, after["epoch"], after["window"], after["batch"]]
            random = np.random.default_rng(seed)
            targets = self.module.objective.make_targets(batch, self.model.vocabulary, random)
            yield self._trained(targets), after

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
