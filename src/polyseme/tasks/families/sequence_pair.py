"""One label for a text or a pair, read as `<S> a </S> b </S>`, as GPT and BERT are fine-tuned.

All the reading is the model's; here is only a linear layer on the vector of one special token.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import override

from polyseme.config import Settings
from polyseme.progress import Progress
from polyseme.tasks.embeddings.dropout import ByteDropout
from polyseme.tasks.embeddings.embeddings import Embeddings, EmbeddingsConfig
from polyseme.tasks.embeddings.features import InputDims, TaskInputs
from polyseme.tasks.embeddings.finetuned import FineTunedConfig
from polyseme.tasks.families.classification import Classified
from polyseme.tasks.families.family import ExampleFeatures, TaskBatch
from polyseme.tasks.families.labels import LabelFamily, LabelNetwork
from polyseme.tasks.families.pairs import Paired
from polyseme.tasks.texts import LONGEST_OF_PAIR, LONGEST_TEXT, TextReader


class SequencePairConfig(Settings):
    """A sequence pair, or a single text: one sequence, read by a fine-tuned model alone."""

    kind: Literal["sequence_pair"] = "sequence_pair"
    pooling: Literal["first", "last"] = "last"
    """Which token's vector stands for the sequence: the last one (EOS), which has read everything
    (GPT), or the first (BOS), for a model that sees both sides (BERT's [CLS])."""
    symmetric: bool = False
    """Whether two texts are read in both orders and the vectors added: for similarity, which has
    no order."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on the vector in training."""


class SequencePairClassifier(LabelNetwork):
    """A linear layer on one token's vector."""

    def __init__(self, config: SequencePairConfig, dims: InputDims, labels: int) -> None:
        super().__init__()
        self.config = config
        self.dropout = ByteDropout(config.dropout)
        self.out = nn.Linear(dims.input, labels)

    @override
    def scores(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """(B, K) from sequences with their special tokens; in both orders, if symmetric."""
        rows = torch.arange(len(inputs.mask), device=inputs.mask.device)
        ends = inputs.mask.sum(dim=1) - 1
        places = ends if self.config.pooling == "last" else torch.zeros_like(ends)
        pooled = inputs.input[rows, places]
        if self.config.symmetric:
            there, back = pooled.chunk(2)
            pooled = there + back
        scores: Tensor = self.out(self.dropout(pooled))
        return scores


@dataclass(frozen=True)
class SequencePair(LabelFamily[Classified | Paired]):
    """One label for a text or a pair, whichever the training data has."""

    example_types: ClassVar = (Classified, Paired)
    config: SequencePairConfig
    is_on_pairs: bool = field(default=False, kw_only=True)

    @property
    def num_texts(self) -> int:
        """One, or two."""
        return 2 if self.is_on_pairs else 1

    def check(self, embeddings: EmbeddingsConfig) -> None:
        """Only a fine-tuned model has vectors for special tokens."""
        if embeddings.words or not isinstance(embeddings.model, FineTunedConfig):
            raise ValueError(
                "a network of kind 'sequence_pair' reads a fine-tuned model and nothing else: set "
                "embeddings.model.kind = 'finetuned' and leave out embeddings.words"
            )

    def fit(self, examples: Sequence[Classified | Paired]) -> Self:
        """With the labels of the training data, and whether it is on pairs."""
        return replace(super().fit(examples), is_on_pairs=isinstance(examples[0], Paired))

    def to_json(self) -> dict[str, Any]:
        """The same."""
        return {**super().to_json(), "is_on_pairs": self.is_on_pairs}

    def restore(self, told: Mapping[str, Any]) -> Self:
        """The reverse."""
        return replace(super().restore(told), is_on_pairs=told["is_on_pairs"])

    @override
    def prepare(
        self,
        examples: Sequence[Classified | Paired],
        embeddings: Embeddings,
        *,
        use_cache: bool = True,
        progress: Progress | None = None,
    ) -> ExampleFeatures:
        """A sequence for each example; then, if symmetric, each the other way round."""
        sequences = [example.sentences for example in examples]
        reverse = [row[::-1] for row in sequences] if self.config.symmetric else []
        features = embeddings.prepare_sequences([*sequences, *reverse])
        return ExampleFeatures(features, np.arange(len(features)).reshape(-1, len(examples)))

    def network(self, dims: InputDims) -> SequencePairClassifier:
        """A linear layer."""
        return SequencePairClassifier(self.config, dims, len(self.labels.names))

    def of_texts(self, texts: tuple[str, ...], reader: TextReader) -> Iterator[Classified | Paired]:
        """The text, or the two."""
        longest = LONGEST_OF_PAIR if self.is_on_pairs else LONGEST_TEXT
        words = [reader.words(text, longest) for text in texts]
        yield Paired(words[0], words[1], "") if self.is_on_pairs else Classified(words[0], "")
