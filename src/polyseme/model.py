"""Text settings + encoder + objective = one model = one folder on disk.

    model.safetensors   the weights, heads included
    config.toml         every setting, resolved
    vocabulary.parquet  the words it can predict (and characters.parquet, those it can read)
    README.md           the model card
    manifest.json       SHA-256 of all of these, and how the text was prepared

Nothing in such a folder is code, and nothing in it is believed before its hash fits.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import model_validator
from safetensors.torch import save
from torch import Tensor, nn

from polyseme.batches.lexicon import CHARACTERS, Lexicon, LexiconConfig
from polyseme.config import Settings, build, read_toml, to_toml
from polyseme.encoders.encoder import Encoder, EncoderConfig, NoContextConfig
from polyseme.encoders.stored import check_room, read_weights, seal
from polyseme.errors import ConfigError, ModelError
from polyseme.files import (
    WORK,
    canonical_json,
    describe_file,
    is_as_written,
    publish,
    write_text,
)
from polyseme.objectives.guess import log_probabilities, losses
from polyseme.objectives.masked import MaskedConfig
from polyseme.objectives.neighbours import NeighboursConfig
from polyseme.objectives.objective import ObjectiveConfig, build_objective
from polyseme.objectives.question import Question
from polyseme.text.corpus import VOCABULARY, Corpus

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
CONFIG = "config.toml"
WEIGHTS = "model.safetensors"
CARD = "README.md"
_OWN = {WEIGHTS, CONFIG, VOCABULARY}
_SEAL = "told_sha256"  # of what the manifest tells beside the files, whose hashes are their own


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
            f"{encoder.table_width} numbers per word, the encoder {encoder.context.width}"
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
        for part in ("segmenter", "script"):
            then = self.preparation["preparation"][part]
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
        weights = {
            name: weight.detach().to("cpu", dtype).contiguous()
            for name, weight in self.network.state_dict().items()
        }
        scratch = folder / WORK / WEIGHTS
        scratch.parent.mkdir(exist_ok=True)
        scratch.write_bytes(save(weights))  # its own way of writing leaves a file only we can read
        publish(scratch, folder / WEIGHTS)
        self.lexicon.save(folder)
        write_text(folder / CONFIG, to_toml(model=self.config))
        write_text(folder / CARD, card)
        names = [WEIGHTS, CONFIG, CARD, VOCABULARY]
        names += [CHARACTERS] if self.config.lexicon.characters == "unicode" else []
        manifest = {
            "format": FORMAT_VERSION,
            "preparation": self.preparation,
            "facts": self.facts,
            _SEAL: seal(self.preparation, self.facts),
            "files": {name: describe_file(folder / name) for name in names},
        }
        write_text(folder / MANIFEST, canonical_json(manifest))

    @classmethod
    def load(cls, folder: Path) -> "Model":
        """The model in this folder, every file checked against the manifest."""
        manifest = _read_manifest(folder)
        _check_files(folder, manifest["files"])
        try:
            config = build(ModelConfig, read_toml(folder / CONFIG).get("model", {}))
        except (ConfigError, RecursionError) as error:
            raise ModelError(f"The weights in {folder} do not fit its settings: {error}") from error
        check_room(folder / WEIGHTS, config.encoder)
        lexicon = Lexicon.load(folder)
        with torch.random.fork_rng(devices=[]):  # what is drawn here is overwritten at once
            network = build_network(config, lexicon)
        network.load_state_dict(read_weights(folder / WEIGHTS, network), assign=True)
        return cls(config, lexicon, network.eval(), manifest["preparation"], manifest["facts"])


def build_network(config: ModelConfig, lexicon: Lexicon) -> LanguageModel:
    """The network for these settings and these words."""
    return LanguageModel(config, vocabulary=lexicon.size, alphabet=lexicon.num_characters)


def count_parameters(module: nn.Module) -> int:
    """Numbers that are learnt."""
    return sum(parameter.numel() for parameter in module.parameters())


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise ModelError(
            f"{folder} holds no finished model: there is no {MANIFEST} in it. Make one with: "
            f"polyseme pretrain CORPUS --out {folder}"
        )
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = manifest["format"]
        hashes = {name: told["sha256"] for name, told in manifest["files"].items()}
        is_whole = manifest[_SEAL] == seal(manifest["preparation"], manifest["facts"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelError(f"{path} is damaged: {error}. Take the folder anew.") from error
    if version != FORMAT_VERSION:
        raise ModelError(
            f"{folder} has model format {version}, this version of Polyseme reads "
            f"{FORMAT_VERSION}. Use the version that made it."
        )
    is_plain = all(Path(name).name == name for name in hashes)
    if not (is_plain and hashes.keys() >= _OWN and is_whole):
        raise ModelError(f"{path} does not tell of a model's own files. Take the folder anew.")
    return manifest


def _check_files(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    for name, told in files.items():
        path = folder / name
        if not is_as_written(path, told):
            raise ModelError(
                f"{path} is missing or not as it was written (SHA-256 differs from {MANIFEST}). "
                "Take the whole folder anew from where it came."
            )
