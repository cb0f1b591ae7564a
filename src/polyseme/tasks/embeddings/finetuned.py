"""A model that is fine-tuned with the task: its encoder is part of the task's module.

    in   `EncoderInput`   a batch of the model's own, special tokens and all
         `SubwordInput`   the same for an encoder of Hugging Face
    out  every layer of every word (L, B, T, D), special tokens dropped

What it reads is what it read in pretraining: `<S> words </S>`, from a state of zeros, a sentence
longer than any it was trained on in pieces. So the first step starts from the frozen vectors. A row
of several sentences is `<S> a </S> b </S>`, and vectors are those of every token: a task takes what
the last `</S>` has gathered (GPT, which reads forward) or the `<S>` (BERT's [CLS]); for similarity,
which has no order, it reads both orders and adds.

Layer 0 is what makes the word's own vector; layer k is the k-th that sees the sentence. A layer
near the input knows what holds for every task, so it should change less and later (Howard and
Ruder, 2018).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.func import functional_call

from polyseme.config import Settings
from polyseme.data.batch import BOS, EOS, Integers, Pairs, pad
from polyseme.embedding.embedder import Embedder
from polyseme.embedding.hf.folder import HfFolder, hf_name
from polyseme.embedding.hf.network import (
    HfNetwork,
    find_folder,
    load_network,
    load_tokenizer,
    windows_of,
)
from polyseme.encoders.encoder import Encoder
from polyseme.errors import ConfigError, InputError, ModelError
from polyseme.model import Model
from polyseme.storage.files import sha256_of
from polyseme.storage.folders import MANIFEST
from polyseme.storage.installed import model_folder
from polyseme.tasks.embeddings.features import EncoderInput, Sentences, SubwordInput
from polyseme.text.preprocessing import split_long
from polyseme.training.optimizer import ParamGroup


class LayerTrainingConfig(Settings):
    """Which layers learn, how fast, and when they begin."""

    layers: tuple[int, ...] | None = None
    """Layers that are trained, 0 being the words themselves; without it all are."""
    lr_scale: float = Field(0.1, gt=0)
    """Learning rate of the top layer, times the task's own."""
    layer_lr_decay: float = Field(0.4, gt=0, le=1)
    """Learning rate of each layer, times that of the layer above it. ULMFiT has 1 / 2.6."""
    unfreeze_after: int = Field(0, ge=0)
    """Step from which the top layer is trained; until then only the task's own parameters are."""
    unfreeze_every: int = Field(0, ge=0)
    """Steps until the next layer below is trained too (gradual unfreezing); 0: all at once."""


def layer_parameters(encoder: Encoder | HfNetwork) -> Iterator[tuple[int, str, nn.Parameter]]:
    """Each parameter with its layer and its name in the encoder."""
    for name, parameter in encoder.named_parameters():
        yield encoder.layer_of(name), name, parameter


def lowest_unfrozen(step: int, config: LayerTrainingConfig, num_layers: int) -> int:
    """The lowest layer that is trained at a step, counted from 0; `num_layers` if none does."""
    if step < config.unfreeze_after:
        return num_layers
    if config.unfreeze_every == 0:
        return 0
    return max(0, num_layers - 1 - (step - config.unfreeze_after) // config.unfreeze_every)


def check_layers(config: LayerTrainingConfig, num_layers: int) -> frozenset[int]:
    """The layers that are ever trained."""
    chosen = frozenset(range(num_layers) if config.layers is None else config.layers)
    if not chosen or not chosen <= frozenset(range(num_layers)):
        raise ConfigError(
            f"layers = {sorted(chosen)} cannot be trained: the model has layers 0 to "
            f"{num_layers - 1}. To train none, use kind = 'frozen'."
        )
    return chosen


SentenceRows = Iterable[Sequence[Sequence[str]]]
_Codes = npt.NDArray[np.int32]


class SentenceSource:
    """The words of a data set, looked up in a model's vocabulary."""

    def __init__(self, model: Model, sentences: Sentences, *, longest: int) -> None:
        if longest < 1:
            raise ModelError(
                f"This model reads {longest} words at a time, special tokens not counted."
            )
        self._sentences, self._longest = sentences, longest
        self._table = model.vocabulary.table_of(sentences.distinct)

    def gather(self, chosen: Integers) -> EncoderInput:
        """The batch the encoder reads, and where the words stand in it."""
        lengths = self._sentences.lengths[chosen]
        spans = [split_long(0, int(length), self._longest) for length in lengths]
        starts = np.array(
            [
                start + begin
                for start, pieces in zip(self._sentences.starts[chosen], spans, strict=True)
                for begin, _ in pieces
            ]
        )
        sizes = np.array([end - begin for pieces in spans for begin, end in pieces])
        matrix = np.pad(pad(self._sentences.rows, starts, sizes), ((0, 0), (1, 1)))
        matrix[:, 0] = BOS
        matrix[np.arange(len(sizes)), sizes + 1] = EOS
        places = np.zeros((len(chosen), int(lengths.max())), np.int64)
        piece = 0
        for row, pieces in enumerate(spans):
            for begin, end in pieces:
                places[row, begin:end] = piece * matrix.shape[1] + 1 + np.arange(end - begin)
                piece += 1
            places[row, lengths[row] :] = places[row, 0]  # no other sentence's word
        return EncoderInput(self._table.batch(matrix, sizes + 2), torch.from_numpy(places))


class SequenceSource:
    """A data set whose rows are several sentences each, as one model reads them."""

    def __init__(self, model: Model, rows: SentenceRows, *, longest: int) -> None:
        given = [list(row) for row in rows]
        for number, row in enumerate(given):
            # Special tokens take places too: BOS, and an EOS behind each sentence, where a
            # sentence alone has two in all.
            if not 1 <= len(row) < longest:
                raise InputError(f"Row {number} has {len(row)} sentences; 1 or more are joined.")
        sentences = Sentences(chain.from_iterable(given))
        self._table = model.vocabulary.table_of(sentences.distinct)
        self.num_truncated = 0
        """Words at the ends of sentences that are not read, since their row is too long."""
        numbers = iter(range(len(sentences)))
        parts = []
        for row in given:
            own = [next(numbers) for _ in row]
            most = truncate([int(sentences.lengths[n]) for n in own], longest + 1 - len(own))
            self.num_truncated += int(sentences.lengths[own].sum()) - sum(most)
            begins = sentences.starts[own]
            parts.append([sentences.rows[b : b + m] for b, m in zip(begins, most, strict=True)])
        self._flat = np.concatenate([_join(row) for row in parts])
        self._segments = np.concatenate([_segments(row) for row in parts])
        self.lengths: Integers = np.array([1 + sum(len(p) + 1 for p in row) for row in parts])
        """Places in each row, special tokens counted."""
        self._starts = np.cumsum(self.lengths) - self.lengths

    def gather(self, chosen: Integers) -> EncoderInput:
        """The batch the encoder reads; every place of it is handed on."""
        starts, lengths = self._starts[chosen], self.lengths[chosen]
        matrix = pad(self._flat, starts, lengths)
        segments = pad(self._segments, starts, lengths).astype(np.int64)
        batch = self._table.batch(matrix, lengths, Pairs(segments, np.zeros(len(chosen), np.int64)))
        places = torch.arange(matrix.size).view(matrix.shape)
        return EncoderInput(batch, places)


def truncate(lengths: Sequence[int], most: int) -> list[int]:
    """How much of each sentence is kept so that all fit: the longest gives way first (BERT)."""
    kept = list(lengths)
    while sum(kept) > most:
        longest = max(kept)
        second = max((length for length in kept if length < longest), default=0)
        among = [n for n, length in enumerate(kept) if length == longest]
        # All of the longest down to the next, or by what is too much, shared among them.
        surplus = min(sum(kept) - most, (longest - max(second, 1)) * len(among))
        for place, n in enumerate(among):
            kept[n] -= surplus // len(among) + (place < surplus % len(among))
    return kept


def _join(row: Sequence[_Codes]) -> _Codes:
    end = np.array([EOS], np.int32)
    return np.concatenate([np.array([BOS], np.int32), *chain.from_iterable((p, end) for p in row)])


def _segments(row: Sequence[_Codes]) -> _Codes:
    """0 in the first sentence and its special tokens, 1 in all others."""
    first = 2 + len(row[0])
    rest = sum(len(part) + 1 for part in row[1:])
    return np.repeat(np.array([0, 1], np.int32), [first, rest])


class SubwordSource:
    """The words of a data set, as the tokens of an encoder of Hugging Face."""

    def __init__(self, reader: "HfReader", sentences: Sentences) -> None:
        self._reader = reader
        self._subwords = reader.tokenize(sentences.words)

    def gather(self, chosen: Integers) -> SubwordInput:
        """The rows the encoder reads, and where the tokens of each word stand in them."""
        some = [self._subwords[number] for number in chosen]
        most = self._reader.tokenize.max_tokens
        windows = [(n, w) for n, each in enumerate(some) for w in windows_of(each.counts, most)]
        ids, mask = self._reader.padded([some[n].row(window) for n, window in windows])
        nth = np.arange(max(int(each.counts.max()) for each in some))
        places = np.zeros((len(some), max(len(each.counts) for each in some), len(nth)), np.int64)
        for row, (number, (begin, _, first, last)) in enumerate(windows):
            each, counts = some[number], some[number].counts[first:last]
            inside = len(each.before) + int(each.counts[begin:first].sum())
            starts = 1 + row * ids.shape[1] + inside + np.cumsum(counts) - counts
            found = np.where(nth < counts[:, None], starts[:, None] + nth, 0)
            places[number, first:last] = found
        return SubwordInput(ids, mask, None, torch.from_numpy(places))


class SubwordSequences:
    """A data set whose rows are a sentence or two each, with the encoder's special tokens."""

    def __init__(self, reader: "HfReader", rows: SentenceRows) -> None:
        self._reader, self.num_truncated = reader, 0
        self._rows = []
        for number, row in enumerate(rows):
            if not 1 <= len(row) <= 2:
                raise InputError(f"Row {number} has {len(row)} sentences; 1 or 2 are joined.")
            counts = [np.cumsum(each.counts) for each in reader.tokenize(row)]
            tokenize = reader.tokenize
            most = tokenize.max_tokens if len(row) == 1 else tokenize.max_of_pair
            room = truncate([int(each[-1]) for each in counts], most)
            kept = [
                words[: int(np.searchsorted(ends, most, side="right"))]
                for words, ends, most in zip(row, counts, room, strict=True)
            ]
            self.num_truncated += sum(map(len, row)) - sum(map(len, kept))
            self._rows.append(tokenize.sequence(kept))
        self.lengths: Integers = np.array([len(ids) for ids, _ in self._rows])
        """Tokens in each row, special tokens counted."""

    def gather(self, chosen: Integers) -> SubwordInput:
        """The rows the encoder reads; every token is handed on."""
        ids, mask = self._reader.padded([self._rows[number][0] for number in chosen])
        segments, _ = self._reader.padded([self._rows[number][1] for number in chosen], fill=0)
        places = (1 + torch.arange(ids.numel()).view(ids.shape)) * mask
        return SubwordInput(ids, mask, segments, places[..., None])


InputSource: TypeAlias = SentenceSource | SubwordSource
RowSource: TypeAlias = SequenceSource | SubwordSequences


class ModelReader:
    """Sentences, as a model of ours reads them."""

    def __init__(self, folder: Path) -> None:
        self.model = Model.load(folder)
        self.model_hash = sha256_of(folder / MANIFEST)
        self.encoder = self.model.network.encoder
        self.num_layers, self.dim = self.encoder.config.num_layers, self.encoder.config.output_dim
        self._longest = Embedder(self.model, device="cpu").max_length

    def source(self, sentences: Sentences) -> SentenceSource:
        """A data set of sentences."""
        return SentenceSource(self.model, sentences, longest=self._longest)

    def sequences(self, rows: SentenceRows) -> SequenceSource:
        """A data set whose rows are several sentences each, EOS between them."""
        return SequenceSource(self.model, rows, longest=self._longest)


class HfReader:
    """Sentences, as an encoder of Hugging Face reads them: its own tokens, padded."""

    def __init__(self, name: str) -> None:
        folder = HfFolder.open(find_folder(name))
        self.model_hash = folder.fingerprint("mean")
        self.encoder = load_network(folder, device="cpu")
        self.num_layers, self.dim = self.encoder.num_layers, self.encoder.dim
        self.tokenize = load_tokenizer(folder, self.encoder)

    def source(self, sentences: Sentences) -> SubwordSource:
        """A data set of sentences."""
        return SubwordSource(self, sentences)

    def sequences(self, rows: SentenceRows) -> SubwordSequences:
        """A data set whose rows are one or two sentences each."""
        return SubwordSequences(self, rows)

    def padded(
        self, rows: Sequence[Sequence[int]], fill: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """(R, S) the rows, padded to the longest; and 1 where they are."""
        longest = max(1, *map(len, rows))
        ids = torch.full((len(rows), longest), self.encoder.padding_id if fill is None else fill)
        mask = torch.zeros_like(ids)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = torch.tensor(row, dtype=torch.int64)
            mask[number, : max(1, len(row))] = 1  # attention to nothing at all is no number
        return ids, mask


class FineTunedConfig(LayerTrainingConfig):
    """The layers of a model that is fine-tuned with the task."""

    kind: Literal["finetuned"] = "finetuned"
    model: Path
    """Folder of the model to begin with; hf:FOLDER for a Hugging Face encoder. It is not
    changed."""


class FineTuned(nn.Module):
    """The encoder, as a part of the task."""

    def __init__(self, config: FineTunedConfig, reader: ModelReader | HfReader) -> None:
        super().__init__()
        self.config, self._reader = config, reader
        self.model_hash, self.encoder = reader.model_hash, reader.encoder
        self.num_layers, self.dim = reader.num_layers, reader.dim
        """Vectors for each word, and the dimension of each."""
        self._chosen = check_layers(config, self.num_layers)
        self._layers: dict[str, int] = {}
        for layer, name, parameter in layer_parameters(self.encoder):
            parameter.requires_grad_(layer in self._chosen)
            self._layers[name] = layer

    @classmethod
    def load(cls, config: FineTunedConfig) -> "FineTuned":
        """The model in the folder that the settings name."""
        hf = hf_name(config.model)
        return cls(config, ModelReader(model_folder(config.model)) if hf is None else HfReader(hf))

    @property
    def model(self) -> Model:
        """A model of ours with the weights as they are now, to be saved by itself."""
        assert isinstance(self._reader, ModelReader), "an encoder of Hugging Face"
        own = self._reader.model
        return replace(own, metadata={**own.metadata, "fine_tuned_from": self.model_hash})

    def param_groups(self) -> dict[str, ParamGroup]:
        """How each parameter that is ever trained is to be trained, by its name in this module."""
        top, config = self.num_layers - 1, self.config
        return {
            f"encoder.{name}": ParamGroup(
                config.lr_scale * config.layer_lr_decay ** (top - layer),
                "word_embedding" not in name,
            )
            for name, layer in self._layers.items()
            if layer in self._chosen
        }

    def source(self, sentences: Sentences) -> InputSource:
        """A data set as this model reads it."""
        return self._reader.source(sentences)

    def sequences(self, rows: SentenceRows) -> RowSource:
        """A data set whose rows are several sentences each, as one sequence."""
        return self._reader.sequences(rows)

    def forward(
        self, encoder_input: EncoderInput | SubwordInput, *, step: int | None = None
    ) -> Tensor:
        """(L, B, T, D); what stands where there is no word means nothing.

        `step`: the number of the training step, from 0, on which it depends which layers learn.
        """
        frozen = {} if step is None else self._frozen_weights(step)
        # Detached for this one call, without requires_grad: which layers are frozen is an argument
        # and no state, so that a run that is continued cannot have it wrong.
        return encoder_input.read(lambda *given: functional_call(self.encoder, frozen, given))

    def _frozen_weights(self, step: int) -> dict[str, Tensor]:
        """The weights of layers that are still frozen."""
        lowest = lowest_unfrozen(step, self.config, self.num_layers)
        weights = dict(self.encoder.named_parameters())
        return {n: weights[n].detach() for n, layer in self._layers.items() if layer < lowest}
