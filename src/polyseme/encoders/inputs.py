"""Layer 0: a vector for each distinct word of a batch, from its id, its characters, or both.

    in   ids (U,), char_ids (U, C)   distinct words
    out  vectors (U, D)

A word that occurs a hundred times is looked up, and built from its characters, once.
"""

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.data.special_tokens import PAD
from polyseme.encoders.characters import CharacterEncoder, CharactersConfig


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
