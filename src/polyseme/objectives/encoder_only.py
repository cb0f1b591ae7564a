"""No objective: a model that reads and predicts nothing, as published weights without a softmax."""

from typing import ClassVar, Literal, NoReturn

import numpy as np
from torch import nn

from polyseme.config import Settings
from polyseme.data.batch import Batch
from polyseme.data.vocabulary import Vocabulary
from polyseme.errors import ModelError
from polyseme.objectives.prediction import Encode, Prediction
from polyseme.objectives.targets import TrainingTargets


class EncoderOnlyConfig(Settings):
    """Nothing is predicted: the weights came without a softmax. Such a model can only embed."""

    direction: ClassVar[None] = None
    reason: ClassVar[str] = ""
    softmax: ClassVar[None] = None

    kind: Literal["encoder_only"] = "encoder_only"


class EncoderOnly(nn.Module):
    """Stands where an objective would, and says so when it is asked to predict."""

    pairs = False

    def make_targets(
        self,
        batch: Batch,  # noqa: ARG002
        vocabulary: Vocabulary,  # noqa: ARG002
        random: np.random.Generator,  # noqa: ARG002
    ) -> TrainingTargets:
        """Refuses."""
        _refuse()

    def predict(self, encode: Encode, targets: TrainingTargets) -> dict[str, Prediction]:  # noqa: ARG002
        """Refuses."""
        _refuse()


def _refuse() -> NoReturn:
    raise ModelError(
        "This model predicts nothing (objective.kind = 'encoder_only'): its weights came without a "
        "softmax. It can embed; to train, score or evaluate, take a model made with pretrain."
    )
