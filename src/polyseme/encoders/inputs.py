"""Layer 0: a vector for each distinct word of a batch, from its id, its characters, or both.

    in   ids (U,), char_ids (U, C)   distinct words; char id 0 only where there is no word
    out  vectors (U, D)

A word that occurs a hundred times is looked up, and built from its characters, once: convolutions,
max-pooling, highway layers and a projection, after Kim et al. (2016) in the form of the published
ELMo models. When no gradient is needed, filters of all widths are one multiplication: the narrower
are filled up with zeros, which costs a seventh more and saves cutting the words into windows again
for each width.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from polyseme.config import Settings
from polyseme.data.batch import PAD, padding_start

_ROWS = 128  # that one multiplication has, about


def max_pool(
    char_vectors: Tensor, filters: Sequence[nn.Conv1d], *, padded_from: int, dtype: torch.dtype
) -> Tensor:
    """From position `padded_from` on, every word has nothing but its last character.

    Among as many words with as many columns, a word's bits depend on that word alone.
    """
    words, positions, _ = char_vectors.shape
    widths = [each.kernel_size[0] for each in filters]
    widest = max(widths)
    weight = torch.cat([_flat(each, widest) for each in filters], dim=1).to(dtype)
    maxima = char_vectors.new_full((words, weight.shape[1]), -torch.inf, dtype=dtype)
    at_once = max(1, _ROWS // max(1, words))
    padded = functional.pad(char_vectors, (0, 0, 0, widest + at_once)).to(dtype)
    end = min(positions - min(widths), padded_from) + 1  # all windows from there on are alike
    for begin in range(0, end, at_once):
        # Always as many rows, or bits would change with the longest word.
        here = range(begin, begin + at_once)
        windows = torch.cat([padded[:, at : at + widest].reshape(words, -1) for at in here])
        found = (windows @ weight).view(at_once, words, -1)
        for at in range(begin, min(begin + at_once, end)):
            _raise(maxima, found[at - begin], filters, positions - at)
    return maxima + torch.cat([_bias(each) for each in filters])


def _raise(maxima: Tensor, found: Tensor, filters: Sequence[nn.Conv1d], left: int) -> None:
    """To what was found, where it is more. A filter wider than what is `left` has found nothing."""
    begin = 0
    if all(each.kernel_size[0] <= left for each in filters):
        torch.maximum(maxima, found, out=maxima)
        return
    for each in filters:
        part = slice(begin, begin + each.out_channels)
        if each.kernel_size[0] <= left:
            maxima[:, part] = torch.maximum(maxima[:, part], found[:, part])
        begin = part.stop


def _flat(filters: nn.Conv1d, widest: int) -> Tensor:
    """(widest * E, F)"""
    weight = filters.weight.permute(2, 1, 0).flatten(0, 1)
    return functional.pad(weight, (0, 0, 0, widest * filters.in_channels - len(weight)))


def _bias(filters: nn.Conv1d) -> Tensor:
    assert filters.bias is not None
    return filters.bias


class FilterConfig(Settings):
    """Filters of one width."""

    width: int = Field(ge=1, le=7)
    """Characters seen at a time."""
    num_filters: int = Field(ge=1, le=65_536)
    """How many filters of this width."""


_PUBLISHED = tuple(
    FilterConfig(width=width, num_filters=number)
    for width, number in ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
)


class CharactersConfig(Settings):
    """A convolution over characters."""

    char_dim: int = Field(16, ge=1, le=4_096)
    """Dimension of a character's vector."""
    filters: tuple[FilterConfig, ...] = Field(_PUBLISHED, min_length=1, max_length=64)
    """Filters by width."""
    activation: Literal["relu", "tanh"] = "relu"
    """Activation function after max-pooling."""
    num_highway_layers: int = Field(2, ge=0, le=64)
    """Highway layers between the filters and the projection."""
    dim: int = Field(512, ge=1, le=65_536)
    """Output dimension."""
    projected: bool = True
    """Whether a linear projection to `dim` follows the highway layers; without it `dim` must be the
    number of filters."""

    @model_validator(mode="after")
    def _dim_fits(self) -> "CharactersConfig":
        if not self.projected and self.dim != self.features:
            raise ValueError(
                f"without a projection dim is the number of filters, {self.features}, "
                f"not {self.dim}"
            )
        return self

    @property
    def features(self) -> int:
        """Filters of all widths."""
        return sum(filters.num_filters for filters in self.filters)

    @property
    def widest(self) -> int:
        """Characters that the widest filter sees."""
        return max(filters.width for filters in self.filters)


class CharacterEncoder(nn.Module):
    """Character ids in, vectors out."""

    def __init__(self, config: CharactersConfig, *, num_chars: int) -> None:
        super().__init__()
        # Id 0 is no character.
        self.char_embedding = nn.Embedding(num_chars - 1, config.char_dim)
        self.filters = nn.ModuleList(
            nn.Conv1d(config.char_dim, filters.num_filters, filters.width)
            for filters in config.filters
        )
        self.highways = nn.ModuleList(
            _Highway(config.features) for _ in range(config.num_highway_layers)
        )
        self.projection = nn.Linear(config.features, config.dim) if config.projected else None
        self.activation = functional.relu if config.activation == "relu" else torch.tanh

    def forward(self, char_ids: Tensor) -> Tensor:
        """(U, C) -> (U, D)"""
        char_vectors = self.char_embedding((char_ids - 1).clamp(min=0)) * (char_ids > 0)[..., None]
        if self.training or torch.is_grad_enabled():
            transposed = char_vectors.transpose(1, 2)  # (U, E, C)
            # Not amax: its gradient looks for all equal maxima, for a twentieth of a step.
            maxima = [filters(transposed).max(dim=-1).values for filters in self.filters]
            features = self.activation(torch.cat(maxima, dim=-1))  # (U, F)
        else:
            features = self.activation(self._max_pool(char_vectors, padding_start(char_ids)))
        for highway in self.highways:
            features = highway(features)
        return features if self.projection is None else _apply(self.projection, features)

    def _max_pool(self, char_vectors: Tensor, padded_from: int) -> Tensor:
        """(U, C, E) -> (U, F)"""
        kind = char_vectors.device.type
        is_mixed = torch.is_autocast_enabled(kind)
        dtype = torch.get_autocast_dtype(kind) if is_mixed else char_vectors.dtype
        filters = [each for each in self.filters if isinstance(each, nn.Conv1d)]
        return max_pool(char_vectors, filters, padded_from=padded_from, dtype=dtype).to(dtype)


def _apply(linear: nn.Linear, features: Tensor) -> Tensor:
    """(U, F) -> (U, D)"""
    is_plain = features.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    if torch.is_grad_enabled() or not is_plain or features.device.type != "cpu":
        result: Tensor = linear(features)
        return result
    # Few words and many weights: transposed, the words are copied for it and not the weights.
    return torch.addmm(linear.bias[:, None], linear.weight, features.t().contiguous()).t()


class _Highway(nn.Module):
    """Carries its input on where the gate is open, a transformed one where it is closed."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(dim, 2 * dim)
        # Srivastava et al. (2015): begin by carrying on. Here an open gate carries.
        nn.init.constant_(self.linear.bias[dim:], 1.0)

    def forward(self, features: Tensor) -> Tensor:
        """(U, F) -> (U, F)"""
        changed, gate = _apply(self.linear, features).chunk(2, dim=-1)
        return torch.lerp(functional.relu(changed), features, gate.sigmoid())


class WordInputConfig(Settings):
    """One learned vector for each word of the vocabulary; all others share one."""

    kind: Literal["word"] = "word"
    dim: int = Field(300, ge=1, le=65_536)
    """Dimension of the word embeddings."""


class CharacterInputConfig(CharactersConfig):
    """Words from their characters alone, so that every word has a vector of its own."""

    kind: Literal["characters"] = "characters"


class WordCharacterInputConfig(Settings):
    """The word's own embedding and the vector of its characters, concatenated."""

    kind: Literal["word+characters"] = "word+characters"
    word_dim: int = Field(200, ge=1, le=65_536)
    """Dimension of the word embeddings."""
    characters: CharactersConfig = CharactersConfig(dim=100)
    """The part from characters."""


InputConfig = Annotated[
    WordInputConfig | CharacterInputConfig | WordCharacterInputConfig, Field(discriminator="kind")
]


class TokenEmbedder(nn.Module):
    """Distinct words in, layer 0 out, projected to `dim` where it has another size."""

    def __init__(self, config: InputConfig, *, vocab_size: int, num_chars: int, dim: int) -> None:
        super().__init__()
        characters: CharactersConfig | None
        match config:
            case WordInputConfig():
                word_dim, characters = config.dim, None
            case CharacterInputConfig():
                word_dim, characters = 0, config
            case WordCharacterInputConfig():
                word_dim, characters = config.word_dim, config.characters
        self.word_embedding = (
            nn.Embedding(vocab_size, word_dim, padding_idx=PAD) if word_dim else None
        )
        self.characters = CharacterEncoder(characters, num_chars=num_chars) if characters else None
        if self.word_embedding is not None:
            nn.init.normal_(self.word_embedding.weight, std=word_dim**-0.5)
        total = word_dim + (characters.dim if characters else 0)
        self.projection = nn.Linear(total, dim) if total != dim else None

    def forward(self, ids: Tensor, char_ids: Tensor) -> Tensor:
        """Distinct words, ids (U,) and char_ids (U, C) -> (U, D)."""
        parts = []
        if self.word_embedding is not None:
            parts.append(self.word_embedding(ids))
        if self.characters is not None:
            parts.append(self.characters(char_ids))
        vectors = torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0]
        if self.projection is None:
            return vectors
        projected: Tensor = self.projection(vectors)
        return projected
