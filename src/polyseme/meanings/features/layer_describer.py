"""Uses described by one layer of a model, to see what each layer knows.

    in   sentences with a use in each, and the number of a layer
    out  `UseFeatures` whose context is the word's own vector in that layer, and nothing else

Layer 0 knows the form alone, so that all uses of one form are the same. Each layer above knows more
of the sentence. For reading meanings, all views together (`features.py`) tell more than any layer.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from polyseme.embedding.word_embedder import WordEmbedder
from polyseme.errors import ConfigError, InputError
from polyseme.meanings.features.use_describer import UseDescriber
from polyseme.meanings.features.use_features import UseFeatures


class LayerDescriber(UseDescriber):
    """Describes a use by the mean of its words' vectors in one layer."""

    def __init__(self, embedder: WordEmbedder, layer: int) -> None:
        if not 0 <= layer < embedder.num_layers:
            raise ConfigError(
                f"There is no layer {layer}: this model has layers 0 to {embedder.num_layers - 1}."
            )
        super().__init__(embedder)
        self.layer = layer

    @property
    def is_of_layer(self) -> bool:
        """One layer, and nothing else."""
        return True

    def without_syntax(self, features: UseFeatures) -> UseFeatures:
        """As they are: what a layer knows is what is asked for."""
        return features

    def __call__(
        self,
        sentences: Sequence[Sequence[str]],
        spans: npt.NDArray[np.int64],
        on_use: Callable[[int], None] = lambda _: None,
    ) -> UseFeatures:
        """The vector of each use, one in each sentence; `spans` is (N, 2)."""
        found = np.empty((len(spans), self.embedder.dim), np.float32)
        vectors = self.embedder.stream(sentences, layers=self.layer)
        for number, ((begin, end), words) in enumerate(zip(spans.tolist(), vectors, strict=True)):
            found[number] = words[0, begin:end].mean(axis=0)
            on_use(number + 1)
        if len(found) and not (found != found[0]).any():
            raise InputError(
                f"In layer {self.layer} all {len(found):,} uses are the same: it knows the form of "
                "a word and not its sentence. Take a higher layer, or other forms with --forms."
            )
        return UseFeatures(found, np.zeros((len(found), 1), np.float32), None)
