"""A model that is trained along with the task: its encoder is part of the task's module.

    in   the words of a batch, as the model's own lexicon has them, between their marks
    out  every layer of every word (L, B, T, D), marks dropped

What it reads is what it read in pretraining: `<S> words </S>`, from a state of zeros, a sentence
longer than any it was trained on in pieces. So the first step starts from the frozen vectors.
"""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from polyseme.batches.alphabet import Integers
from polyseme.batches.marks import END, START
from polyseme.batches.table import pad
from polyseme.errors import ModelError
from polyseme.files import sha256_of
from polyseme.folders import MANIFEST
from polyseme.model import Model
from polyseme.text.sentences import cut_long
from polyseme.training.optimizer import ParamGroup
from polyseme.transfer.fed import Reading
from polyseme.transfer.joined import JoinedSource, Rows
from polyseme.transfer.layers import (
    LayerTrainingConfig,
    check_layers,
    layer_parameters,
    lowest_awake,
)
from polyseme.transfer.sentences import Sentences
from polyseme.vectors.embedder import Embedder


class FineTunedConfig(LayerTrainingConfig):
    """The layers of a model that is trained along with the task."""

    kind: Literal["finetuned"] = "finetuned"
    model: Path
    """Folder of the model to begin with; it is not changed."""


class FineTuned(nn.Module):
    """The encoder, as a part of the task."""

    def __init__(self, config: FineTunedConfig, model: Model, *, model_hash: str) -> None:
        super().__init__()
        self.config, self.model_hash = config, model_hash
        self.encoder = model.network.encoder
        self._model = [model]  # in a list: its softmax is no part of the task
        self._chosen = check_layers(config, self.num_layers)
        self._longest = Embedder(model, device="cpu").longest
        for layer, _, parameter in layer_parameters(self.encoder):
            parameter.requires_grad_(layer in self._chosen)

    @classmethod
    def load(cls, config: FineTunedConfig) -> "FineTuned":
        """The model in the folder that the settings name."""
        return cls(config, Model.load(config.model), model_hash=sha256_of(config.model / MANIFEST))

    @property
    def model(self) -> Model:
        """The model with the weights as they are now, to be saved by itself."""
        facts = {**self._model[0].facts, "fine_tuned_from": self.model_hash}
        return replace(self._model[0], facts=facts)

    @property
    def num_layers(self) -> int:
        """Vectors for each word."""
        return self.encoder.config.num_layers

    @property
    def width(self) -> int:
        """Numbers in each."""
        return self.encoder.config.output_width

    def param_groups(self) -> dict[str, ParamGroup]:
        """How each parameter that is ever trained is to be trained, by its name in this module."""
        top, config = self.num_layers - 1, self.config
        return {
            f"encoder.{name}": ParamGroup(
                config.rate * config.rate_below ** (top - layer), name != "inputs.table.weight"
            )
            for layer, name, _ in layer_parameters(self.encoder)
            if layer in self._chosen
        }

    def source(self, sentences: Sentences) -> "ReadingSource":
        """A data set as this model reads it."""
        return ReadingSource(self._model[0], sentences, longest=self._longest)

    def joined(self, rows: Rows) -> JoinedSource:
        """A data set whose rows are several sentences each, with the marks between them."""
        return JoinedSource(self._model[0], rows, longest=self._longest)

    def forward(self, reading: Reading, *, step: int | None = None) -> Tensor:
        """(L, B, T, D); what stands where there is no word means nothing.

        `step`: the number of the training step, from 0, on which it depends which layers learn.
        """
        asleep = {} if step is None else self._asleep(step)
        # Detached for this one call rather than frozen: which layers sleep is an argument and no
        # state, so that a run that is continued cannot have it wrong.
        each = functional_call(self.encoder, asleep, (reading.batch,)).each
        places = reading.places.flatten()
        shape = (*reading.places.shape, self.width)
        return torch.stack([layer.flatten(0, 1)[places].view(shape) for layer in each])

    def _asleep(self, step: int) -> dict[str, Tensor]:
        """The weights of layers that do not learn yet."""
        lowest = lowest_awake(step, self.config, self.num_layers)
        found = layer_parameters(self.encoder)
        return {name: parameter.detach() for layer, name, parameter in found if layer < lowest}


class ReadingSource:
    """The words of a data set, looked up in a model's lexicon."""

    def __init__(self, model: Model, sentences: Sentences, *, longest: int) -> None:
        if longest < 1:
            raise ModelError(f"This model reads {longest} words at a time, marks not counted.")
        self._sentences, self._longest = sentences, longest
        self._table = model.lexicon.table_of(sentences.distinct)

    def gather(self, chosen: Integers) -> Reading:
        """The batch the encoder reads, and where the words stand in it."""
        lengths = self._sentences.lengths[chosen]
        spans = [cut_long(0, int(length), self._longest) for length in lengths]
        starts = np.array(
            [
                start + begin
                for start, pieces in zip(self._sentences.starts[chosen], spans, strict=True)
                for begin, _ in pieces
            ]
        )
        sizes = np.array([end - begin for pieces in spans for begin, end in pieces])
        matrix = np.pad(pad(self._sentences.rows, starts, sizes), ((0, 0), (1, 1)))
        matrix[:, 0] = START
        matrix[np.arange(len(sizes)), sizes + 1] = END
        places = np.zeros((len(chosen), int(lengths.max())), np.int64)
        piece = 0
        for row, pieces in enumerate(spans):
            for begin, end in pieces:
                places[row, begin:end] = piece * matrix.shape[1] + 1 + np.arange(end - begin)
                piece += 1
            places[row, lengths[row] :] = places[row, 0]  # no other sentence's word
        return Reading(self._table.batch(matrix, sizes + 2), torch.from_numpy(places))
