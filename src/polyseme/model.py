"""Text settings + encoder + objective = one model = one folder on disk.

    model.safetensors   the weights, heads included
    config.toml         every setting, resolved
    vocabulary.parquet  the words it can predict (and characters.parquet, those it can read)
    README.md           the model card
    manifest.json       SHA-256 of all of these, and how the text was prepared

Nothing in such a folder is code, and nothing in it is believed before its hash fits.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import model_validator
from torch import Tensor, nn
from typing_extensions import TypedDict

from polyseme.config import Settings, build, read_toml, to_toml
from polyseme.data.batch import FIRST_WORD, UNK
from polyseme.data.vocabulary import CHARACTERS, Vocabulary, VocabularyConfig
from polyseme.display import describe_layers, html_table, summary
from polyseme.encoders.encoder import Encoder, EncoderConfig, NoContextualizerConfig
from polyseme.errors import ConfigError, ModelError
from polyseme.objectives import ObjectiveConfig, build_objective
from polyseme.objectives.masked import MaskedConfig
from polyseme.objectives.prediction import (
    Scores,
    TrainingTargets,
    log_probabilities,
    losses,
    scores,
)
from polyseme.objectives.word2vec import Word2VecConfig
from polyseme.storage.files import describe_files, write_text
from polyseme.storage.folders import (
    CONFIG,
    MANIFEST,
    ArtifactType,
    open_artifact,
    read_manifest,
    write_manifest,
)
from polyseme.storage.installed import model_folder
from polyseme.storage.weights import load_network, read_shapes, write_weights
from polyseme.text.corpus import VOCABULARY, Corpus
from polyseme.text.preprocessing import Preparation

WEIGHTS = "model.safetensors"
CARD = "README.md"


class _ModelManifest(TypedDict):
    """What is read of it; of old weights nobody knows how their text was prepared."""

    preparation: dict[str, Any]
    metadata: dict[str, Any]


ARTIFACT = ArtifactType(
    name="model",
    version=2,
    files=frozenset({WEIGHTS, CONFIG, VOCABULARY}),
    metadata_keys=("preparation", "metadata"),
    made_by="polyseme pretrain CORPUS",
    shape=_ModelManifest,
)


class ModelConfig(Settings):
    """What is read, how it is encoded, what is predicted."""

    vocabulary: VocabularyConfig = VocabularyConfig()
    """Words and characters."""
    encoder: EncoderConfig
    """From words to vectors."""
    objective: ObjectiveConfig
    """From vectors to predictions."""

    @model_validator(mode="after")
    def _parts_fit(self) -> "ModelConfig":
        for misfit in _misfits(self):
            raise ValueError(misfit)
        return self


def _misfits(config: ModelConfig) -> Iterator[str]:
    """What does not fit together, in words."""
    encoder, objective, vocabulary = config.encoder, config.objective, config.vocabulary
    if objective.direction not in (None, encoder.direction):
        yield (
            f"the objective '{objective.kind}' needs an encoder of direction "
            f"'{objective.direction}', not '{encoder.direction}': {objective.reason}"
        )
    has_context = not isinstance(encoder.contextualizer, NoContextualizerConfig)
    if has_context and isinstance(objective, Word2VecConfig):
        yield (
            "the objective 'word2vec' needs encoder.contextualizer.kind = 'none': with context, a "
            "neighbour has seen the word that it is to predict"
        )
    if not has_context and objective.kind in ("bidirectional", "masked"):
        yield (
            f"the objective '{objective.kind}' needs an encoder with context: a word's own vector "
            "is the same in both directions, and where it is masked it tells nothing"
        )
    if encoder.widest_filter and vocabulary.characters == "none":
        yield "the input reads characters; set vocabulary.characters to another kind"
    elif encoder.widest_filter > vocabulary.max_characters:
        yield (
            f"a filter {encoder.widest_filter} characters wide needs at least as many "
            f"vocabulary.max_characters, not {vocabulary.max_characters}"
        )
    if getattr(objective.softmax, "tied", False) and encoder.word_dim != encoder.contextualizer.dim:
        yield (
            "a tied softmax needs word embeddings of the encoder's dimension: the input has "
            f"{encoder.word_dim}, the encoder {encoder.contextualizer.dim}"
        )
    if encoder.segments and not (isinstance(objective, MaskedConfig) and objective.next_sentence):
        yield "segments are for pairs of sentences, which only 'masked' with next_sentence has"


class LanguageModel(nn.Module):
    """Encoder and objective as one module: targets in, losses or probabilities out."""

    def __init__(self, config: ModelConfig, *, vocab_size: int, num_chars: int) -> None:
        super().__init__()
        self.encoder = Encoder(config.encoder, vocab_size=vocab_size, num_chars=num_chars)
        self.objective = build_objective(
            config.objective, vocab_size=vocab_size, dim=config.encoder.contextualizer.dim
        )

    def forward(self, targets: TrainingTargets) -> dict[str, Tensor]:
        """What training lowers, for each part summed over its predictions."""
        predictions = self.objective.predict(self.encoder, targets)
        return losses(predictions, self.word_embeddings, targets.negatives)

    @torch.no_grad()
    def log_probabilities(self, targets: TrainingTargets) -> dict[str, Tensor]:
        """For each part, the natural log of each target's probability among all there are."""
        return log_probabilities(
            self.objective.predict(self.encoder, targets), self.word_embeddings
        )

    @torch.no_grad()
    def scores(self, targets: TrainingTargets) -> dict[str, Scores]:
        """For each part, how well it predicts each target, as its head is measured."""
        return scores(self.objective.predict(self.encoder, targets), self.word_embeddings)

    @property
    def word_embeddings(self) -> Tensor | None:
        """(V, D) those of the input, which a tied softmax predicts with; None without any."""
        embedding = self.encoder.inputs.word_embedding
        return None if embedding is None else embedding.weight


@dataclass(frozen=True)
class Model:
    """A language model with the words it knows and the way its text was prepared."""

    config: ModelConfig
    vocabulary: Vocabulary
    network: LanguageModel
    preparation: Preparation | None
    """How its text became words; None if nobody knows. What is embedded must match."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What card and manifest have besides: corpus, steps, perplexities."""

    def __repr__(self) -> str:
        return summary("Model", *(f"{name} {value}" for name, value in self._rows()))

    def _repr_html_(self) -> str:
        return html_table("Model", self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        encoder = self.config.encoder
        return [
            ("encoder", f"{encoder.contextualizer.kind} ({encoder.direction})"),
            ("objective", self.config.objective.kind),
            ("vectors", describe_layers(encoder.num_layers, encoder.output_dim)),
            ("vocabulary", f"{len(self.vocabulary.words):,} words"),
            ("parameters", f"{count_parameters(self.network):,}"),
        ]

    @classmethod
    def new(
        cls, config: ModelConfig, vocabulary: Vocabulary, preparation: Preparation | None
    ) -> "Model":
        """An untrained model; its weights depend on torch's seed."""
        return cls(config, vocabulary, build_network(config, vocabulary), preparation)

    def with_words_of(self, corpus: Corpus) -> "Model":
        """This model with the vocabulary of a corpus, to be trained further on it.

        Words and characters of both keep their rows of the weights, others get those of an
        untrained model.
        """
        vocabulary = Vocabulary.of(corpus, self.config.vocabulary)
        network = build_network(self.config, vocabulary)
        weights = network.state_dict()
        rows = _common_rows(vocabulary, self.vocabulary)
        for name, before in self.network.state_dict().items():
            here, there = next((rows[end] for end in rows if name.endswith(end)), (..., ...))
            if weights[name][here].shape != before[there].shape:
                raise ModelError(f"{name} of this model cannot be used with other words.")
            weights[name][here] = before[there]
        return Model(self.config, vocabulary, network, corpus.preparation, self.metadata)

    def save(self, folder: Path, *, card: str, dtype: torch.dtype = torch.float32) -> None:
        """Write the folder; the manifest last, which makes it a model."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in (MANIFEST, CHARACTERS):  # another model may have stood here
            (folder / name).unlink(missing_ok=True)
        write_weights(folder / WEIGHTS, self.network, dtype)
        self.vocabulary.save(folder)
        write_text(folder / CONFIG, to_toml(model=self.config))
        write_text(folder / CARD, card)
        names = [WEIGHTS, CONFIG, CARD, VOCABULARY]
        names += [CHARACTERS] if self.config.vocabulary.characters == "unicode" else []
        preparation = self.preparation.to_manifest() if self.preparation else {}
        files = describe_files(folder, names)
        write_manifest(folder, ARTIFACT, files, preparation=preparation, metadata=self.metadata)

    @classmethod
    def load(cls, folder: Path) -> "Model":
        """The model in a folder, or an installed one; every file checked against the manifest."""
        folder = model_folder(folder)
        manifest = open_artifact(folder, ARTIFACT, weights=read_shapes)
        preparation = _preparation_in(manifest, folder)
        try:
            config = build(ModelConfig, read_toml(folder / CONFIG).get("model", {}))
        except ConfigError as error:
            raise ModelError(f"The weights in {folder} do not fit its settings: {error}") from error
        vocabulary = Vocabulary.load(folder)
        network = load_network(folder / WEIGHTS, lambda: build_network(config, vocabulary))
        return cls(config, vocabulary, network.eval(), preparation, manifest["metadata"])


def _common_rows(new: Vocabulary, old: Vocabulary) -> dict[str, tuple[Tensor, Tensor]]:
    """By the end of a weight's name: its rows of words or characters that both have."""
    there = np.concatenate([np.arange(FIRST_WORD), old.ids_of(new.words)])
    here = np.arange(new.size)
    is_known = (there != UNK) | (here == UNK)
    words = torch.from_numpy(here[is_known]), torch.from_numpy(there[is_known])
    # Id 0 is no character, and has no row.
    pairs = torch.tensor(new.chars.common_ids(old.chars), dtype=torch.int64).reshape(-1, 2) - 1
    by_word = ("word_embedding.weight", "softmax.weight", "softmax.bias")
    return dict.fromkeys(by_word, words) | {"char_embedding.weight": (pairs[:, 0], pairs[:, 1])}


def preparation_of(folder: Path) -> Preparation | None:
    """How the text of the model in a folder was prepared; its weights are not read."""
    folder = model_folder(folder)
    return _preparation_in(read_manifest(folder, ARTIFACT), folder)


def _preparation_in(manifest: Mapping[str, Any], folder: Path) -> Preparation | None:
    if not manifest["preparation"]:
        return None
    try:
        return Preparation.from_manifest(manifest["preparation"])
    except ValueError as error:
        raise ARTIFACT.damaged(folder, error) from error


def build_network(config: ModelConfig, vocabulary: Vocabulary) -> LanguageModel:
    """The network for these settings and these words."""
    return LanguageModel(config, vocab_size=vocabulary.size, num_chars=vocabulary.num_characters)


def count_parameters(module: nn.Module) -> int:
    """The number of trainable parameters."""
    return sum(parameter.numel() for parameter in module.parameters())
