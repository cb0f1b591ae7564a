"""A model that is fine-tuned with the task: its encoder is part of the task's module.

    in   `EncoderInput`   a batch of the model's own, special tokens and all
    out  every layer of every word (L, B, T, D), special tokens dropped

What it reads is what it read in pretraining: `<S> words </S>`, from a state of zeros, a sentence
longer than any it was trained on in pieces. So the first step starts from the frozen vectors.
"""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch
from pydantic import field_validator
from torch import Tensor, nn
from torch.func import functional_call

from polyseme.embedding.embedder import Embedder
from polyseme.embedding.hf.folder import hf_name
from polyseme.model import Model
from polyseme.storage.files import sha256_of
from polyseme.storage.folders import MANIFEST
from polyseme.storage.installed import model_folder
from polyseme.tasks.embeddings.encoder_inputs import SentenceRows, SentenceSource, SequenceSource
from polyseme.tasks.embeddings.features import EncoderInput, Sentences
from polyseme.tasks.embeddings.layers import (
    LayerTrainingConfig,
    check_layers,
    layer_parameters,
    lowest_unfrozen,
)
from polyseme.training.optimizer import ParamGroup


class FineTunedConfig(LayerTrainingConfig):
    """The layers of a model that is fine-tuned with the task."""

    kind: Literal["finetuned"] = "finetuned"
    model: Path
    """Folder of the model to begin with; it is not changed."""

    @field_validator("model")
    @classmethod
    def _can_be_trained(cls, value: Path) -> Path:
        if hf_name(value) is not None:
            raise ValueError(
                f"{value} is a Hugging Face encoder, which is not fine-tuned here. Set kind = "
                "'frozen'; or fine-tune it with transformers, and name the folder that it saves"
            )
        return value


class FineTuned(nn.Module):
    """The encoder, as a part of the task."""

    def __init__(self, config: FineTunedConfig, model: Model, *, model_hash: str) -> None:
        super().__init__()
        self.config, self.model_hash = config, model_hash
        self.encoder = model.network.encoder
        self._model = [model]  # in a list: its softmax is no part of the task
        self._chosen = check_layers(config, self.num_layers)
        self._longest = Embedder(model, device="cpu").max_length
        for layer, _, parameter in layer_parameters(self.encoder):
            parameter.requires_grad_(layer in self._chosen)

    @classmethod
    def load(cls, config: FineTunedConfig) -> "FineTuned":
        """The model in the folder that the settings name."""
        folder = model_folder(config.model)
        return cls(config, Model.load(folder), model_hash=sha256_of(folder / MANIFEST))

    @property
    def model(self) -> Model:
        """The model with the weights as they are now, to be saved by itself."""
        metadata = {**self._model[0].metadata, "fine_tuned_from": self.model_hash}
        return replace(self._model[0], metadata=metadata)

    @property
    def num_layers(self) -> int:
        """Vectors for each word."""
        return self.encoder.config.num_layers

    @property
    def dim(self) -> int:
        """Dimension of each."""
        return self.encoder.config.output_dim

    def param_groups(self) -> dict[str, ParamGroup]:
        """How each parameter that is ever trained is to be trained, by its name in this module."""
        top, config = self.num_layers - 1, self.config
        return {
            f"encoder.{name}": ParamGroup(
                config.lr_scale * config.layer_lr_decay ** (top - layer),
                name != "inputs.word_embedding.weight",
            )
            for layer, name, _ in layer_parameters(self.encoder)
            if layer in self._chosen
        }

    def source(self, sentences: Sentences) -> SentenceSource:
        """A data set as this model reads it."""
        return SentenceSource(self._model[0], sentences, longest=self._longest)

    def sequences(self, rows: SentenceRows) -> SequenceSource:
        """A data set whose rows are several sentences each, EOS between them."""
        return SequenceSource(self._model[0], rows, longest=self._longest)

    def forward(self, encoder_input: EncoderInput, *, step: int | None = None) -> Tensor:
        """(L, B, T, D); what stands where there is no word means nothing.

        `step`: the number of the training step, from 0, on which it depends which layers learn.
        """
        frozen = {} if step is None else self._frozen_weights(step)
        # Detached for this one call, without requires_grad: which layers are frozen is an argument
        # and no state, so that a run that is continued cannot have it wrong.
        each = functional_call(self.encoder, frozen, (encoder_input.batch,)).hidden_states
        places = encoder_input.places.flatten()
        shape = (*encoder_input.places.shape, self.dim)
        return torch.stack([layer.flatten(0, 1)[places].view(shape) for layer in each])

    def _frozen_weights(self, step: int) -> dict[str, Tensor]:
        """The weights of layers that are still frozen."""
        lowest = lowest_unfrozen(step, self.config, self.num_layers)
        found = layer_parameters(self.encoder)
        return {name: parameter.detach() for layer, name, parameter in found if layer < lowest}
