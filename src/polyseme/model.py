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

import torch
from pydantic import model_validator
from torch import Tensor, nn
from typing_extensions import TypedDict

from polyseme.batches.lexicon import CHARACTERS, Lexicon, LexiconConfig
from polyseme.config import Settings, build, read_toml, to_toml
from polyseme.encoders.encoder import Encoder, EncoderConfig, NoContextConfig
from polyseme.encoders.stored import check_shapes, read_shapes, read_weights, write_weights
from polyseme.errors import ConfigError, ModelError
from polyseme.files import write_text
from polyseme.folders import MANIFEST, Kind, open_sealed, read_manifest, seal_folder
from polyseme.objectives.guess import log_probabilities, losses
from polyseme.objectives.masked import MaskedConfig
from polyseme.objectives.neighbours import NeighboursConfig
from polyseme.objectives.objective import ObjectiveConfig, build_objective
from polyseme.objectives.question import Question
from polyseme.text.corpus import VOCABULARY, Corpus
from polyseme.text.running import check_preparation

CONFIG = "config.toml"
WEIGHTS = "model.safetensors"
CARD = "README.md"


class _Manifest(TypedDict):
    """What is read of it; old weights do not tell how their text was prepared."""

    preparation: dict[str, Any]
    facts: dict[str, Any]


KIND = Kind(
    name="model",
    version=1,
    files=frozenset({WEIGHTS, CONFIG, VOCABULARY}),
    told=("preparation", "facts"),
    made_by="polyseme pretrain CORPUS",
    shape=_Manifest,
)


class ModelConfig(Settings):
    """One point of the space: what is read, how it is encoded, what is predicted."""

    lexicon: LexiconConfig = LexiconConfig()
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
    encoder, objective, lexicon = config.encoder, config.objective, config.lexicon
    if objective.needs not in (None, encoder.direction):
        yield (
            f"the objective '{objective.kind}' needs an encoder that reads '{objective.needs}', "
            f"not '{encoder.direction}': {objective.because}"
        )
    has_context = not isinstance(encoder.context, NoContextConfig)
    if has_context and isinstance(objective, NeighboursConfig):
        yield (
            "the objective 'neighbours' needs encoder.context.kind = 'none': with context, a "
            "neighbour has seen the word that it is to tell"
        )
    if not has_context and objective.kind in ("bidirectional", "masked"):
        yield (
            f"the objective '{objective.kind}' needs an encoder with context: a word's own vector "
            "is the same in both directions, and where it is hidden it tells nothing"
        )
    if encoder.widest_filter and lexicon.characters == "none":
        yield "the input reads characters; set lexicon.characters to another kind"
    elif encoder.widest_filter > lexicon.max_characters:
        yield (
            f"a filter {encoder.widest_filter} characters wide needs lexicon.max_characters of at "
            f"least as many, not {lexicon.max_characters}"
        )
    if getattr(objective.softmax, "tied", False) and encoder.table_width != encoder.context.width:
        yield (
            f"a tied softmax needs an input table as wide as the encoder: the table has "
            f"{encoder.table_width} dimensions, the encoder {encoder.context.width}"
        )
    if encoder.segments and not (isinstance(objective, MaskedConfig) and objective.next_sentence):
        yield "segments are for pairs of sentences, which only 'masked' with next_sentence has"


class LanguageModel(nn.Module):
    """Encoder and objective as one module: a question in, losses or probabilities out."""

    def __init__(self, config: ModelConfig, *, vocabulary: int, alphabet: int) -> None:
        super().__init__()
        self.encoder = Encoder(config.encoder, vocabulary=vocabulary, alphabet=alphabet)
        self.objective = build_objective(
            config.objective, vocabulary=vocabulary, width=config.encoder.context.width
        )

    def forward(self, question: Question) -> dict[str, Tensor]:
        """What training lowers, for each part summed over its predictions."""
        guesses = self.objective.guess(self.encoder(question.batch), question)
        return losses(guesses, question, self._table)

    @torch.no_grad()
    def log_probabilities(self, question: Question) -> dict[str, Tensor]:
        """For each part, the natural log of each answer's probability among all words."""
        guesses = self.objective.guess(self.encoder(question.batch), question)
        return log_probabilities(guesses, question, self._table)

    @property
    def _table(self) -> Tensor | None:
        table = self.encoder.inputs.table
        return None if table is None else table.weight


@dataclass(frozen=True)
class Model:
    """A language model with the words it knows and the way its text was prepared."""

    config: ModelConfig
    lexicon: Lexicon
    network: LanguageModel
    preparation: Mapping[str, Any]
    """How the text was prepared: segmenter, version, dictionary. What is embedded must match."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the card and the manifest tell: corpus, steps, perplexities."""

    @classmethod
    def new(cls, config: ModelConfig, lexicon: Lexicon, preparation: Mapping[str, Any]) -> "Model":
        """An untrained model; its weights depend on torch's seed."""
        return cls(config, lexicon, build_network(config, lexicon), preparation)

    def check_same_words(self, corpus: Corpus) -> None:
        """Refuse a corpus whose words were found in another way than this model's."""
        if not self.preparation:  # old weights do not tell: whoever prepared the corpus has chosen
            return
        described = check_preparation(self.preparation)
        for part in ("segmenter", "script"):
            then = described[part]
            now = corpus.manifest["preparation"][part]
            if then != now:
                raise ModelError(
                    f"The model's words were found with {then}, those of {corpus.folder} with "
                    f"{now}. Prepare the texts with the model's {part}."
                )

    def save(self, folder: Path, *, card: str, dtype: torch.dtype = torch.float32) -> None:
        """Write the folder; the manifest last, which makes it a model."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in (MANIFEST, CHARACTERS):  # another model may have stood here
            (folder / name).unlink(missing_ok=True)
        write_weights(folder / WEIGHTS, self.network, dtype)
        self.lexicon.save(folder)
        write_text(folder / CONFIG, to_toml(model=self.config))
        write_text(folder / CARD, card)
        names = [WEIGHTS, CONFIG, CARD, VOCABULARY]
        names += [CHARACTERS] if self.config.lexicon.characters == "unicode" else []
        seal_folder(folder, KIND, names, preparation=self.preparation, facts=self.facts)

    @classmethod
    def load(cls, folder: Path) -> "Model":
        """The model in this folder, every file checked against the manifest."""
        told = open_sealed(folder, KIND, weights=read_shapes)
        try:
            config = build(ModelConfig, read_toml(folder / CONFIG).get("model", {}))
        except ConfigError as error:
            raise ModelError(f"The weights in {folder} do not fit its settings: {error}") from error
        lexicon = Lexicon.load(folder)
        check_shapes(folder / WEIGHTS, lambda: build_network(config, lexicon))
        with torch.random.fork_rng(devices=[]):  # what is drawn here is overwritten at once
            network = build_network(config, lexicon)
        network.load_state_dict(read_weights(folder / WEIGHTS, network), assign=True)
        return cls(config, lexicon, network.eval(), told["preparation"], told["facts"])


def preparation_of(folder: Path) -> Mapping[str, Any]:
    """How the text of the model in a folder was prepared; its weights are not read."""
    preparation: Mapping[str, Any] = read_manifest(folder, KIND)["preparation"]
    return preparation


def build_network(config: ModelConfig, lexicon: Lexicon) -> LanguageModel:
    """The network for these settings and these words."""
    return LanguageModel(config, vocabulary=lexicon.size, alphabet=lexicon.num_characters)


def count_parameters(module: nn.Module) -> int:
    """Numbers that are learnt."""
    return sum(parameter.numel() for parameter in module.parameters())
