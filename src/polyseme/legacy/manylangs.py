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
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.data.vocabulary import Vocabulary
from polyseme.errors import ModelError
from polyseme.legacy.contents import Floats
from polyseme.legacy.manylangs_files import Dictionary
from polyseme.legacy.old import OldModel, settings_of, vocabulary_of
from polyseme.legacy.options import ManyLangsOptions, parse, unknown_keys
from polyseme.legacy.tensors import TORCH_GATES, Shapes, check_tensors, to_our_gates
from polyseme.model import ModelConfig

KIND = "ELMoForManyLangs"
_DIRECTIONS = ("forward", "backward")


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
