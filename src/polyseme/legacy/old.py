"""What comes of reading old weights: all that a model of ours needs, and what is to be told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from polyseme.data.special_tokens import FIRST_WORD
from polyseme.data.vocabulary import Vocabulary, VocabularyConfig
from polyseme.legacy.contents import Floats
from polyseme.model import Model, ModelConfig, build_network
from polyseme.text.preprocessing import Preparation


@dataclass(frozen=True)
class OldModel:
    """Old weights under our names, in our order."""

    kind: str
    """Which programs wrote and read such files."""
    config: ModelConfig
    vocabulary: Vocabulary
    weights: dict[str, Floats]
    notes: tuple[str, ...] = ()
    """What a user should know: what is missing, what was passed over."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What is needed to write the same files again."""

    def model(self, preparation: Preparation | None, metadata: Mapping[str, Any]) -> Model:
        """As a model that can embed."""
        with torch.device("meta"):  # nothing is drawn at random only to be overwritten
            network = build_network(self.config, self.vocabulary)
        tensors = {name: torch.from_numpy(array) for name, array in self.weights.items()}
        network.load_state_dict(tensors, assign=True)
        told = {**self.metadata, **metadata}
        return Model(self.config, self.vocabulary, network.eval(), preparation, told)


def settings_of(
    vocabulary: VocabularyConfig, input_config: dict[str, Any], contextualizer: dict[str, Any]
) -> dict[str, Any]:
    """The settings of a model whose weights came without a softmax, not yet checked."""
    return {
        "vocabulary": vocabulary,
        "encoder": {
            "input": input_config,
            "contextualizer": contextualizer,
            "direction": "separate",
        },
        "objective": {"kind": "encoder_only"},
    }


def vocabulary_of(
    words: list[str], *, kind: str, max_characters: int, characters: str = ""
) -> Vocabulary:
    """These words, perhaps none, whose counts nobody knows."""
    config = VocabularyConfig.model_validate(
        {
            "size": FIRST_WORD + max(1, len(words)),
            "min_count": 1,
            "characters": kind,
            "max_characters": max_characters,
            "min_character_count": 1,
        }
    )
    counts = np.zeros(len(words), np.int64)
    return Vocabulary(config, pa.array(words, pa.string()), counts, characters)
