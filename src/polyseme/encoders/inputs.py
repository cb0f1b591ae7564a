"""Layer 0: a vector for each distinct word of a batch, from its id, its characters, or both.

    in   ids (U,), characters (U, C)   distinct words
    out  vectors (U, D)

A word that occurs a hundred times is looked up and spelt out once.
"""

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from polyseme.batches.marks import PADDING
from polyseme.config import Settings
from polyseme.encoders import exact as exactly
from polyseme.encoders.characters import CharacterEncoder, CharactersConfig


class LookupInputConfig(Settings):
    """One learned vector for each word of the vocabulary; all others share one."""

    kind: Literal["lookup"] = "lookup"
    width: int = Field(300, ge=1, le=65_536)
    """Dimension of the embedding table."""


class CharacterInputConfig(CharactersConfig):
    """Words from their characters alone, so that every spelling has a vector of its own."""

    kind: Literal["characters"] = "characters"


class FusedInputConfig(Settings):
    """The table's vector and the characters' vector, one after the other."""

    kind: Literal["fused"] = "fused"
    lookup: int = Field(200, ge=1, le=65_536)
    """Dimension of the embedding table."""
    characters: CharactersConfig = CharactersConfig(width=100)
    """The part from characters."""


InputConfig = Annotated[
    LookupInputConfig | CharacterInputConfig | FusedInputConfig, Field(discriminator="kind")
]


class Inputs(nn.Module):
    """Distinct words in, layer 0 out. Projects to the encoder's width if need be."""

    def __init__(self, config: InputConfig, *, vocabulary: int, alphabet: int, width: int) -> None:
        super().__init__()
        characters: CharactersConfig | None
        match config:
            case LookupInputConfig():
                lookup, characters = config.width, None
            case CharacterInputConfig():
                lookup, characters = 0, config
            case FusedInputConfig():
                lookup, characters = config.lookup, config.characters
        self.table = nn.Embedding(vocabulary, lookup, padding_idx=PADDING) if lookup else None
        self.characters = CharacterEncoder(characters, alphabet=alphabet) if characters else None
        if self.table is not None:
            nn.init.normal_(self.table.weight, std=lookup**-0.5)
        found = lookup + (characters.width if characters else 0)
        self.projection = nn.Linear(found, width) if found != width else None

    def forward(self, ids: Tensor, characters: Tensor, *, exact: bool = False) -> Tensor:
        """Distinct words, ids (U,) and characters (U, C) -> (U, D)."""
        parts = []
        if self.table is not None:
            parts.append(self.table(ids))
        if self.characters is not None:
            parts.append(self.characters(characters, exact=exact))
        vectors = torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0]
        if self.projection is None:
            return vectors
        if exact:
            return exactly.linear(vectors, self.projection.weight, self.projection.bias)
        projected: Tensor = self.projection(vectors)
        return projected
