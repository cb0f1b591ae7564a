"""The vectors a task reads: static ones, a model's layers, or both, inserted where settings say.

    embeddings = Embeddings.new(config, words_of_the_data)
    dataset = embeddings.prepare(sentences)             # once for each data set
    inputs = embeddings(dataset.gather([3, 17, 4]))     # for each batch: `TaskInputs`

A task gets `embeddings.dims` when it is built and `TaskInputs` for each batch; which transfer is
behind them, it cannot know. ELMo is concatenated with the task's input [x; ELMo], with its output
[h; ELMo], with both, or with what its first layer gives, as in TagLM.

Where labels stand at characters, as in Chinese names, words are found in the joined characters as
the model's were, and each character takes its word's vectors beside one of its own, learned in the
task.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.data.batch import Batch, Integers
from polyseme.embedding.loading import preparation_from
from polyseme.errors import ConfigError, InputError
from polyseme.progress import SILENT, Progress
from polyseme.storage.files import canonical_json
from polyseme.tasks.embeddings.features import (
    FeatureBatch,
    InputDims,
    LayerMix,
    MixConfig,
    Sentences,
    TaskInputs,
)
from polyseme.tasks.embeddings.finetuned import (
    FineTuned,
    FineTunedConfig,
    InputSource,
    RowSource,
    SentenceRows,
)
from polyseme.tasks.embeddings.frozen import Frozen, FrozenConfig, LayerSource
from polyseme.tasks.embeddings.word_embedding import (
    EmbeddingVocabulary,
    NewVectorsConfig,
    WordEmbedding,
    WordEmbeddingConfig,
    WordSource,
)
from polyseme.text.preprocessing import TextPreprocessor, UnfitTextError
from polyseme.training.optimizer import ParamGroup


class CharacterLabelsConfig(Settings):
    """For data with labels on characters instead of words."""

    tokenizer_from: Path
    """Segmentation of the joined characters into words: that of the model or the corpus in a
    folder, or of a language (zh)."""
    dim: int = Field(64, ge=1, le=65_536)
    """Dimension of each character's own vector."""
    unk_dropout: float = Field(0.02, ge=0, lt=1)
    """Fraction of characters replaced by the unknown one in training, to prepare for new ones."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Dropout on their vectors in training."""

    @property
    def table(self) -> WordEmbeddingConfig:
        """The characters' own vectors, as a table of words."""
        return WordEmbeddingConfig(
            vectors=NewVectorsConfig(dim=self.dim),
            trained=True,
            lower_case=False,
            unk_dropout=self.unk_dropout,
            dropout=self.dropout,
        )


class WordAligner:
    """Finds the words that characters make up."""

    def __init__(self, config: CharacterLabelsConfig) -> None:
        self.preparation = preparation_from(config.tokenizer_from)
        self._preprocessor = TextPreprocessor.of_model(self.preparation)

    def align(self, characters: Sentences) -> "WordAlignment":
        """The words of every sentence, and the word of each character."""
        found = [self._align(each) for each in characters.words]
        return WordAlignment(
            Sentences(words for words, _ in found), [word_of for _, word_of in found]
        )

    def _align(self, characters: Sequence[str]) -> tuple[list[str], Integers]:
        # One by one: normalized as a whole, nobody could tell any more where a character begins.
        normalized = [self._normalize(character) for character in characters]
        ends = np.cumsum([len(character) for character in normalized])
        words = self._preprocessor.split_words("".join(normalized))
        if not words.words:  # white space only
            return list(characters), np.arange(len(characters))
        begins = ends - [len(character) for character in normalized]
        # White space, which is in no word, goes with the word before it.
        word_of = np.searchsorted(words.starts, begins, side="right") - 1
        return words.words, np.maximum(word_of, 0).astype(np.int64)

    def _normalize(self, character: str) -> str:
        try:
            return self._preprocessor.normalize(character)[0]
        except UnfitTextError:
            return " "  # what no corpus holds, no model has a vector for


class WordAlignment:
    """Sentences as words, and what takes vectors from words to their characters."""

    def __init__(self, sentences: Sentences, word_of: list[Integers]) -> None:
        self.sentences = sentences
        self._word_of = word_of

    def word_of(self, chosen: Integers) -> Tensor:
        """(B, T) the word of each character; 0 at padding, which is masked later."""
        found = [torch.from_numpy(self._word_of[number]) for number in chosen]
        return torch.nn.utils.rnn.pad_sequence(found, batch_first=True)

    def apply(self, features: FeatureBatch, chosen: Integers) -> FeatureBatch:
        """What stands at the words of these sentences, at the characters that make them up."""
        word_of = self.word_of(chosen)
        words, layers, encoder_input = features.words, features.layers, features.encoder_input
        return replace(
            features,
            words=None if words is None else _align_batch(words, word_of, features.lengths),
            layers=None if layers is None else layers[torch.arange(len(layers))[:, None], word_of],
            encoder_input=encoder_input and encoder_input.align(word_of),
        )


def _align_batch(batch: Batch, word_of: Tensor, lengths: Tensor) -> Batch:
    """A batch of words as one of characters, each of them its word."""
    is_character = torch.arange(word_of.shape[1]) < lengths[:, None]
    return replace(batch, words=batch.words.gather(1, word_of) * is_character, lengths=lengths)


InsertAt = Literal["input", "output", "both", "after_first_layer"]
_MIXES: dict[InsertAt, tuple[str, ...]] = {
    "input": ("input",),
    "output": ("output",),
    "both": ("input", "output"),
    "after_first_layer": ("after_first_layer",),
}


class EmbeddingsConfig(Settings):
    """The vectors a task reads."""

    words: WordEmbeddingConfig | None = None
    """Static vectors, the task's x; without it a model's layers are all there is."""
    model: Annotated[FrozenConfig | FineTunedConfig, Field(discriminator="kind")] | None = None
    """The model whose layers are used, and how; without it static vectors are all there is."""
    character_labels: CharacterLabelsConfig | None = None
    """Where labels stand at characters: how words are found in them. Both words and the model then
    read these words, and each character takes the vectors of its word."""
    mix: MixConfig = MixConfig()
    """How layers become one vector; with insert_at = 'both' there are two mixes."""
    insert_at: InsertAt = "input"
    """What the layers are concatenated with: the task's input, the output of its last layer, both,
    or the output of its first layer (TagLM, which takes the top layer: mix.layer = -1)."""

    @model_validator(mode="after")
    def _has_input(self) -> "EmbeddingsConfig":
        if not (self.words or self.model or self.character_labels):
            raise ValueError("a task needs words, a model, or both")
        has_own = self.words or self.character_labels
        if not has_own and self.insert_at not in ("input", "both"):
            raise ValueError(f"insert_at = '{self.insert_at}' leaves the input empty without words")
        return self


class FeatureDataset:
    """A data set's sentences, ready to be gathered by number."""

    def __init__(
        self,
        lengths: Integers,
        *,
        words: WordSource | None = None,
        layers: LayerSource | None = None,
        encoder_input: InputSource | RowSource | None = None,
        characters: WordSource | None = None,
        alignment: WordAlignment | None = None,
        num_truncated: int = 0,
    ) -> None:
        """`characters` and `alignment`: where labels stand at characters."""
        self.lengths = lengths
        """Words in each sentence; in rows of several sentences, special tokens counted."""
        self._words, self._layers, self._encoder_input = words, layers, encoder_input
        self.num_truncated = num_truncated
        """Words that are not read, their row of several sentences being too long."""
        self._characters, self._alignment = characters, alignment

    def __len__(self) -> int:
        return len(self.lengths)

    def gather(self, chosen: Sequence[int] | Integers) -> FeatureBatch:
        """These sentences, in this order. May be called in a thread that prepares batches."""
        numbers = np.asarray(chosen, np.int64)
        if not len(numbers) or numbers.min() < 0 or numbers.max() >= len(self):
            raise InputError(
                f"Sentences {numbers[:4].tolist()} ... are not all among the {len(self)} there are."
            )
        features = FeatureBatch(
            torch.from_numpy(self.lengths[numbers]),
            None if self._words is None else self._words.gather(numbers),
            None if self._layers is None else self._layers.gather(numbers),
            None if self._encoder_input is None else self._encoder_input.gather(numbers),
            None if self._characters is None else self._characters.gather(numbers),
        )
        return features if self._alignment is None else self._alignment.apply(features, numbers)


def load_model(config: EmbeddingsConfig, device: str | None = None) -> Frozen | FineTuned | None:
    """The model whose layers are used, if any. `device`: where a frozen one works."""
    match config.model:
        case FrozenConfig():
            return Frozen.load(config.model, device=device)
        case FineTunedConfig():
            return FineTuned.load(config.model)
    return None


class Embeddings(nn.Module):
    """Everything between words and a task. What is trained is in its parameters."""

    def __init__(
        self,
        config: EmbeddingsConfig,
        words: WordEmbedding | None,
        characters: WordEmbedding | None,
        model: Frozen | FineTuned | None,
    ) -> None:
        super().__init__()
        self.config = config
        self.words, self.characters = words, characters
        labels = config.character_labels
        self._aligner = None if labels is None else WordAligner(labels)
        self.finetuned = model if isinstance(model, FineTuned) else None
        # No module: neither trained nor saved.
        self._frozen = model if isinstance(model, Frozen) else None
        self._layers_dim = model.dim if model else 0
        places = _MIXES[config.insert_at] if model else ()
        self.mixes = nn.ModuleDict(
            {place: LayerMix(model.num_layers, config.mix) for place in places if model}
        )

    @classmethod
    def new(
        cls, config: EmbeddingsConfig, words: Iterable[str] = (), *, device: str | None = None
    ) -> "Embeddings":
        """Those of a task that is yet to be trained; reads the files that the settings name.

        `words`: those of the data that may have a static vector, see `WordEmbedding.new`.
        `device`: where a frozen model works; everything else goes where the module is put.
        """
        distinct = list(dict.fromkeys(words))
        labels = config.character_labels
        static = None if config.words is None else WordEmbedding.new(config.words, distinct)
        characters = None if labels is None else WordEmbedding.new(labels.table, distinct)
        return cls(config, static, characters, load_model(config, device))

    @classmethod
    def with_vocabulary(
        cls,
        config: EmbeddingsConfig,
        vocabulary: EmbeddingVocabulary,
        model: Frozen | FineTuned | None,
    ) -> "Embeddings":
        """Those whose weights are loaded next: built from what was kept beside them."""
        static = None if config.words is None else WordEmbedding(config.words, vocabulary)
        characters = None
        if config.character_labels is not None:
            labelled, dim = vocabulary.labelled_characters, config.character_labels.dim
            own = EmbeddingVocabulary(labelled, "", dim)
            characters = WordEmbedding(config.character_labels.table, own)
        return cls(config, static, characters, model)

    @property
    def vocabulary(self) -> EmbeddingVocabulary:
        """What must be kept beside the weights."""
        own = EmbeddingVocabulary() if self.words is None else self.words.vocabulary
        if self.characters is None:
            return own
        return replace(own, labelled_characters=self.characters.vocabulary.words)

    @property
    def dims(self) -> InputDims:
        """Dimensions of the inputs."""
        own = sum(part.dim for part in (self.characters, self.words) if part is not None)
        mixed = dict.fromkeys(self.mixes, self._layers_dim)
        return InputDims(own + mixed.pop("input", 0), **mixed)

    def prepare(
        self,
        sentences: Iterable[Sequence[str]],
        *,
        use_cache: bool = True,
        progress: Progress = SILENT,
    ) -> FeatureDataset:
        """A data set. `use_cache=False` for sentences met once, as in prediction."""
        labelled = Sentences(sentences)
        alignment = self._aligner.align(labelled) if self._aligner else None
        read = alignment.sentences if alignment else labelled
        frozen, finetuned = self._frozen, self.finetuned
        return FeatureDataset(
            labelled.lengths,
            words=self.words.source(read) if self.words else None,
            layers=frozen.source(read, use_cache=use_cache, progress=progress) if frozen else None,
            encoder_input=finetuned.source(read) if finetuned else None,
            characters=self.characters.source(labelled) if self.characters else None,
            alignment=alignment,
        )

    def prepare_sequences(self, rows: SentenceRows) -> FeatureDataset:
        """A data set whose rows are one or more sentences each: `<S> a </S> b </S>`.

        Every token has a vector, BOS and the last EOS too: the first and the last of the mask.
        """
        if self.finetuned is None or self.words is not None or self.characters is not None:
            raise ConfigError(
                "Sequence pairs need a fine-tuned model and no static vectors, which have none for "
                "special tokens: set model.kind = 'finetuned' and leave out words."
            )
        source = self.finetuned.sequences(rows)
        return FeatureDataset(
            source.lengths, encoder_input=source, num_truncated=source.num_truncated
        )

    def forward(self, features: FeatureBatch, *, step: int | None = None) -> TaskInputs:
        """The vectors of a batch.

        `step`: in training the number of the step, from 0, on which it depends which layers of a
        fine-tuned model are trained.
        """
        mask = features.mask
        mixed = self._mix(features, step)
        parts = [mixed.pop("input")] if "input" in mixed else []
        if self.words is not None:
            assert features.words is not None
            parts = [self.words(features.words), *parts]
        if self.characters is not None:
            assert features.characters is not None
            parts = [self.characters(features.characters), *parts]
        whole = torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0]
        others = {place: vectors * mask[..., None] for place, vectors in mixed.items()}
        return TaskInputs(whole * mask[..., None], mask, **others)

    def _mix(self, features: FeatureBatch, step: int | None) -> dict[str, Tensor]:
        layers: Tensor
        if self.finetuned is not None:
            layers = self.finetuned(features.encoder_input, step=step)
        elif features.layers is not None:
            layers = features.layers.float().permute(2, 0, 1, 3)  # (L, B, T, D)
        else:
            return {}
        return {place: mix(layers) for place, mix in self.mixes.items()}

    def penalty(self) -> Tensor:
        """What the task adds to its loss, once a step: the mixes' pull towards the average."""
        own = [mix.penalty() for mix in self.mixes.values() if isinstance(mix, LayerMix)]
        return torch.stack(own).sum() if own else torch.zeros(())

    def mix_weights(self) -> dict[str, Any]:
        """What each mix has learned, by where it is inserted: the layers' weights, and gamma."""
        return {
            place: {"weights": mix.weights(), "gamma": float(mix.gamma.detach())}
            for place, mix in self.mixes.items()
            if isinstance(mix, LayerMix)
        }

    def param_groups(self) -> dict[str, ParamGroup]:
        """How each parameter that is ever trained is to be trained, by its name in this module."""
        groups = {
            name: ParamGroup(weight_decay=name not in ("words.table", "characters.table"))
            for name, parameter in self.named_parameters()
            if parameter.requires_grad and not name.startswith("finetuned.")
        }
        if self.finetuned is not None:
            own = self.finetuned.param_groups()
            groups |= {f"finetuned.{name}": group for name, group in own.items()}
        return groups

    def fingerprint(self) -> dict[str, Any]:
        """What must be the same for a run to be continued."""
        model = self._frozen or self.finetuned
        # Where a model or vectors lie changes no number; which ones they are, their hashes tell.
        where: Any = {
            "model": {"model": True, "cache": {"folder", "max_gigabytes"}},
            "words": {"vectors": {"path", "model"}},
            "character_labels": {"tokenizer_from"},
        }
        vocabulary = canonical_json(self.vocabulary.as_json()).encode()
        return {
            "settings": self.config.model_dump(mode="json", exclude=where),
            "model": model.model_hash if model else None,
            "vocabulary": hashlib.sha256(vocabulary).hexdigest(),
            "tokenizer": self._aligner.preparation.to_manifest() if self._aligner else None,
        }
