"""A folder of ELMoForManyLangs as a model of ours.

    in   config.json (and the architecture it names), char.dic, word.dic, token_embedder.pkl,
         encoder.pkl
    out  an `OldModel`: words and Unicode characters in, two LSTM stacks, nothing predicted

Its ids are not ours, so rows of both tables are put in our order. In that program a word begins
with the id of `<eow>` and ends with that of `<bow>`: a slip, kept because all its models were
trained so. Here the row our begin reads is therefore the one it calls `<eow>`, and the other way.

Not the same is only a text that itself holds the names of special tokens (`<bos>` and the like), or
a word of more characters than are read: that program looks up its beginning among the words, we the
word.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
from pydantic import Field

from polyseme.data.vocabulary import Vocabulary
from polyseme.errors import ModelError
from polyseme.legacy.old_model import (
    TORCH_GATES,
    WIDEST,
    FilterOptions,
    LstmOptions,
    OldModel,
    OptionsPart,
    Shapes,
    check_tensors,
    parse,
    read_json,
    settings_of,
    to_our_gates,
    unknown_keys,
    vocabulary_of,
)
from polyseme.legacy.weight_files import Floats
from polyseme.limits import read_text
from polyseme.model import ModelConfig

KIND = "ELMoForManyLangs"
_DIRECTIONS = ("forward", "backward")

CONFIG = "config.json"
CHARACTER_TOKENS = ("<pad>", "<eow>", "<bow>", "<bos>", "<eos>", "<oov>", "<oov>")
"""The characters whose rows our padding, begin, end, BOS, EOS, MASK and UNK read."""
WORD_TOKENS = ("<pad>", "<bos>", "<eos>", "<oov>", "<oov>")
"""The words whose rows our PAD, BOS, EOS, UNK and MASK read."""
_IDEOGRAPHIC_SPACE = "\u3000"
LARGEST_DICTIONARY = 32 << 20
"""Bytes of word.dic and char.dic; those of published models have up to 12 MB."""
_PUBLISHED = {
    "encoder": {
        "name": "elmo",
        "projection_dim": 512,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 4096,
        "n_layers": 2,
    },
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "n_highway": 2,
        "word_dim": 100,
        "char_dim": 50,
        "max_characters_per_token": 50,
    },
}
# The program came with these two, which are the same; models name them but do not hold them.
_PACKAGED = {
    "cnn_50_100_512_4096_sample.json": _PUBLISHED,
    "cnn_0_100_512_4096_sample.json": _PUBLISHED,
}


class NamedLstmOptions(LstmOptions):
    """`encoder` of ELMoForManyLangs."""

    name: str
    """Which encoder."""


class WordOptions(FilterOptions):
    """`token_embedder` of ELMoForManyLangs: a table of words beside the characters."""

    name: str
    """Which way of reading characters."""
    word_dim: int = Field(ge=0, le=WIDEST)
    """Dimension of the embedding table; 0 without one."""
    char_dim: int = Field(ge=0, le=WIDEST)
    """Dimension of a character's vector; 0 where none are read."""


class ManyLangsOptions(OptionsPart):
    """An architecture file of ELMoForManyLangs."""

    encoder: NamedLstmOptions
    """The layers with context."""
    token_embedder: WordOptions
    """From the word to layer 0."""


@dataclass(frozen=True)
class Dictionary:
    """What has a row in a table of theirs."""

    entries: list[str]
    """All but the special tokens, in the order of their rows."""
    rows: list[int]
    """Row of each special token of ours, then of each entry: their table put in our order."""
    size: int
    """How many rows their table has."""


def read_manylangs(
    options: ManyLangsOptions,
    dictionaries: Mapping[str, Dictionary],
    *,
    embedder: Mapping[str, Floats],
    encoder: Mapping[str, Floats],
    folder: Path,
) -> OldModel:
    """The model these parts, read from `folder`, are."""
    _check_kind(options, folder)
    words, characters = dictionaries.get("word"), dictionaries.get("char")
    check_tensors(embedder, embedder_shapes(options, words, characters), folder)
    check_tensors(encoder, encoder_shapes(options), folder)
    vocabulary = vocabulary_of(
        words.entries if words else [],
        kind="unicode" if characters else "none",
        max_characters=options.token_embedder.max_characters_per_token,
        characters="".join(characters.entries) if characters else "",
    )
    weights = dict(_input_weights(options, embedder, words, characters))
    for layer in range(options.encoder.n_layers):
        weights |= _layer_weights(encoder, layer)
    return OldModel(
        kind=KIND,
        config=parse(ModelConfig, _settings(options, vocabulary), folder),
        vocabulary=vocabulary,
        weights=weights,
        notes=tuple(_notes(options)),
    )


def _check_kind(options: ManyLangsOptions, folder: Path) -> None:
    encoder, embedder = options.encoder, options.token_embedder
    if encoder.name.lower() != "elmo":
        raise ModelError(
            f"{folder} has the encoder '{encoder.name}'. Only 'elmo' is known here: the other is "
            "torch's own LSTM without projection and clips, which no released model has."
        )
    if embedder.char_dim and embedder.name.lower() != "cnn":
        raise ModelError(
            f"{folder} reads characters with '{embedder.name}'. Only 'cnn' is known here: filters "
            "over characters, as all released models have them."
        )
    if not embedder.char_dim and not embedder.word_dim:
        raise ModelError(f"{folder} reads neither words nor characters: both dimensions are 0.")
    if embedder.word_dim and _input_dim(options) == encoder.projection_dim:
        raise ModelError(
            f"{folder} projects {_input_dim(options)} dimensions to as many, which "
            "our models cannot: there, equal dimensions need no projection."
        )


def _input_dim(options: ManyLangsOptions) -> int:
    embedder = options.token_embedder
    return embedder.word_dim + (embedder.features if embedder.char_dim else 0)


def _settings(options: ManyLangsOptions, vocabulary: Vocabulary) -> dict[str, Any]:
    embedder, proj_size = options.token_embedder, options.encoder.projection_dim
    input_config: dict[str, Any]
    if not embedder.char_dim:
        input_config = {"kind": "word", "dim": embedder.word_dim}
    elif not embedder.word_dim:
        alone = embedder.characters(char_dim=embedder.char_dim, projected_to=proj_size)
        input_config = {"kind": "characters", **alone}
    else:
        # The projection is over both parts, so it stands after them, not within the characters.
        beside = embedder.characters(char_dim=embedder.char_dim, projected_to=None)
        input_config = {
            "kind": "word+characters",
            "word_dim": embedder.word_dim,
            "characters": beside,
        }
    contextualizer = options.encoder.contextualizer(projected=True, residual=True)
    return settings_of(vocabulary.config, input_config, contextualizer)


def embedder_shapes(
    options: ManyLangsOptions, words: Dictionary | None, characters: Dictionary | None
) -> Shapes:
    """What `token_embedder.pkl` holds."""
    embedder, proj_size = options.token_embedder, options.encoder.projection_dim
    shapes: Shapes = {}
    if words:
        shapes["word_emb_layer.embedding.weight"] = (words.size, embedder.word_dim)
    if characters:
        shapes["char_emb_layer.embedding.weight"] = (characters.size, embedder.char_dim)
        for number, (reach, filters) in enumerate(embedder.filters):
            shapes[f"convolutions.{number}.weight"] = (filters, embedder.char_dim, reach)
            shapes[f"convolutions.{number}.bias"] = (filters,)
        features = embedder.features
        for number in range(embedder.n_highway):
            shapes[f"highways._layers.{number}.weight"] = (2 * features, features)
            shapes[f"highways._layers.{number}.bias"] = (2 * features,)
    return shapes | {
        "projection.weight": (proj_size, _input_dim(options)),
        "projection.bias": (proj_size,),
    }


def encoder_shapes(options: ManyLangsOptions) -> Shapes:
    """What `encoder.pkl` holds."""
    proj_size, hidden_size = options.encoder.projection_dim, options.encoder.dim
    shapes: Shapes = {}
    for layer in range(options.encoder.n_layers):
        for direction in _DIRECTIONS:
            name = f"{direction}_layer_{layer}"
            shapes[f"{name}.input_linearity.weight"] = (4 * hidden_size, proj_size)
            shapes[f"{name}.state_linearity.weight"] = (4 * hidden_size, proj_size)
            shapes[f"{name}.state_linearity.bias"] = (4 * hidden_size,)
            shapes[f"{name}.state_projection.weight"] = (proj_size, hidden_size)
    return shapes


def _input_weights(
    options: ManyLangsOptions,
    tensors: Mapping[str, Floats],
    words: Dictionary | None,
    characters: Dictionary | None,
) -> Iterator[tuple[str, Floats]]:
    ours = "encoder.inputs"
    projection = f"{ours}.projection" if words else f"{ours}.characters.projection"
    for part in ("weight", "bias"):
        yield f"{projection}.{part}", tensors[f"projection.{part}"]
    if words:
        embedding = tensors["word_emb_layer.embedding.weight"][words.rows]
        yield f"{ours}.word_embedding.weight", embedding
    if not characters:
        return
    embedding = tensors["char_emb_layer.embedding.weight"][characters.rows]
    yield f"{ours}.characters.char_embedding.weight", embedding
    for part in ("weight", "bias"):
        for number in range(len(options.token_embedder.filters)):
            theirs = tensors[f"convolutions.{number}.{part}"]
            yield f"{ours}.characters.filters.{number}.{part}", theirs
        for number in range(options.token_embedder.n_highway):
            theirs = tensors[f"highways._layers.{number}.{part}"]
            yield f"{ours}.characters.highways.{number}.linear.{part}", theirs


def _layer_weights(tensors: Mapping[str, Floats], layer: int) -> dict[str, Floats]:
    """Both directions stacked. Theirs are transposed; their forget bias is in the bias already."""

    def both(part: str) -> Floats:
        each = [tensors[f"{direction}_layer_{layer}.{part}"].T for direction in _DIRECTIONS]
        return np.ascontiguousarray(np.stack(each))

    ours = f"encoder.contextualizer.layers.{layer}"
    gated = {"weight_ih": "input_linearity.weight", "weight_hh": "state_linearity.weight"}
    gated["bias"] = "state_linearity.bias"
    weights = {f"{ours}.{to}": to_our_gates(both(name), TORCH_GATES) for to, name in gated.items()}
    weights[f"{ours}.weight_hr"] = both("state_projection.weight")
    return weights


def _notes(options: ManyLangsOptions) -> Iterator[str]:
    yield "The softmax is not in the folder: the model can embed, not predict."
    unknown = list(unknown_keys(options))
    if unknown:
        yield f"Unknown options were ignored: {', '.join(unknown[:20])}."


# The architecture and the dictionaries


def architecture_file(folder: Path) -> tuple[Path, str]:
    """Where the architecture that `config.json` names would be, and how it was named.

    Released folders name a path on their maker's machine; of such a one only the last part counts.
    Nothing outside the folder is ever read.
    """
    named = read_json(folder / CONFIG).get("config_path")
    if not isinstance(named, str) or not PureWindowsPath(named).name:
        raise ModelError(f"{folder / CONFIG} names no architecture (config_path).")
    path = PurePosixPath(named)
    is_inside = not path.is_absolute() and ".." not in path.parts
    if is_inside and (folder / path).is_file():
        return folder / path, named
    return folder / PureWindowsPath(named).name, named


def read_architecture(folder: Path) -> ManyLangsOptions:
    """The architecture that `config.json` names: in the folder, or one that program came with."""
    path, named = architecture_file(folder)
    if path.is_file():
        return parse(ManyLangsOptions, read_json(path), path)
    if path.name in _PACKAGED:
        return parse(ManyLangsOptions, dict(_PACKAGED[path.name]), folder / CONFIG)
    raise ModelError(
        f"{folder / CONFIG} names the architecture {named}, which is not in the folder. Put "
        f"{path.name} there; it comes with the program, in configs/."
    )


def read_dictionary(path: Path, special_tokens: tuple[str, ...], *, single: bool) -> Dictionary:
    """A `.dic` file: what it numbers, with `special_tokens` first. If `single`, characters only."""
    ids = _numbered(path)
    missing = set(special_tokens) - ids.keys()
    if missing:
        raise ModelError(f"{path} lacks {', '.join(sorted(missing))}. Copy the folder again.")
    if min(ids.values()) < 0 or len(set(ids.values())) < len(ids):
        raise ModelError(f"{path} gives a number twice or one below 0. Copy the folder again.")
    by_row = sorted(ids.keys() - set(special_tokens), key=ids.__getitem__)
    # An entry of several characters is never met where one is looked up.
    entries = [entry for entry in by_row if len(entry) == 1] if single else by_row
    rows = [ids[name] for name in (*special_tokens, *entries)]
    return Dictionary(entries, rows, 1 + max(ids.values()))


def _numbered(path: Path) -> dict[str, int]:
    """Each entry with its number, read exactly as that program does."""
    if not path.is_file():
        raise ModelError(f"There is no {path}. Take the whole folder.")
    ids = {}
    try:
        for line in read_text(path, LARGEST_DICTIONARY).splitlines():
            fields = line.strip().split("\t")
            # Its strip also takes a space that is itself the entry: the ideographic one.
            entry, number = fields if len(fields) > 1 else (_IDEOGRAPHIC_SPACE, fields[0])
            ids[entry] = int(number)
    except ValueError as error:
        raise ModelError(f"{path} is damaged: {error}. Copy the folder again.") from error
    return ids
