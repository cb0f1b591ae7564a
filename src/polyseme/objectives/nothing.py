"""No objective: a model that reads and predicts nothing, as published weights without a softmax."""

from typing import ClassVar, Literal, NoReturn

import numpy as np
from torch import nn

from polyseme.batches.batch import Batch
from polyseme.batches.lexicon import Lexicon
from polyseme.config import Settings
from polyseme.encoders.encoded import Encoded
from polyseme.errors import ModelError
from polyseme.objectives.guess import Guess
from polyseme.objectives.question import Question


class NothingConfig(Settings):
    """Nothing is predicted: the weights came without a softmax. Such a model can only embed."""

    needs: ClassVar[None] = None
    because: ClassVar[str] = ""
    softmax: ClassVar[None] = None

    kind: Literal["nothing"] = "nothing"


class Nothing(nn.Module):
    """Stands where an objective would, and says so when it is asked to predict."""

    pairs = False

    def ask(self, batch: Batch, lexicon: Lexicon, random: np.random.Generator) -> Question:  # noqa: ARG002
        """Refuses."""
        _refuse()

    def guess(self, encoded: Encoded, question: Question) -> dict[str, Guess]:  # noqa: ARG002
        """Refuses."""
        _refuse()


def _refuse() -> NoReturn:
    raise ModelError(
        "This model predicts nothing (objective.kind = 'nothing'): its weights came without a "
        "softmax. It can embed; to train, score or evaluate, take a model made with pretrain."
    )
