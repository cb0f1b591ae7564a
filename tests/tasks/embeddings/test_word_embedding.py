"""Static vectors as x."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from polyseme.config import build
from polyseme.data.batch import Batch
from polyseme.errors import InputError
from polyseme.model import Model
from polyseme.tasks.embeddings.features import Sentences
from polyseme.tasks.embeddings.word_embedding import (
    EmbeddingVocabulary,
    WordEmbedding,
    WordEmbeddingConfig,
)
from tasks.embeddings.making import WORDS
from tasks.embeddings.test_vector_files import VECTORS, text_of


def words_of(values: dict[str, Any], words: list[str]) -> WordEmbedding:
    torch.manual_seed(5)
    return WordEmbedding.new(build(WordEmbeddingConfig, values), words).eval()


def look_up(module: WordEmbedding, *words: str) -> torch.Tensor:
    """(T, D)"""
    with torch.no_grad():
        found: torch.Tensor = module(module.source(Sentences([list(words)])).gather(np.array([0])))
    return found[0]


@pytest.fixture
def file(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "vectors.txt"
    path.write_bytes(text_of({**VECTORS, "Play": [7, 7, 7]}))
    return {"vectors": {"kind": "file", "path": path}}


def test_a_word_has_the_vector_of_the_file(file: dict[str, Any]) -> None:
    found = look_up(words_of(file, ["play", "水", "nothing"]), "水", "play", "水")
    assert found.tolist() == [VECTORS["水"], VECTORS["play"], VECTORS["水"]]


def test_a_word_without_a_vector_takes_that_of_its_lower_case(file: dict[str, Any]) -> None:
    module = words_of(file, ["THE", "Play"])
    assert look_up(module, "THE", "Play").tolist() == [VECTORS["the"], [7, 7, 7]]
    strict = words_of({**file, "lower_case": False}, ["THE", "Play"])
    assert torch.equal(look_up(strict, "THE")[0], look_up(strict, "unheard-of")[0])


def test_unknown_words_share_one_vector_that_is_learned(file: dict[str, Any]) -> None:
    module = words_of(file, ["play", "the"])
    assert module.table is not None
    assert torch.allclose(look_up(module, "a", "b"), module.table.mean(dim=0).expand(2, 3))
    trained = [name for name, weight in module.named_parameters() if weight.requires_grad]
    assert trained == ["unknown"]
    assert [name for name, _ in module.named_parameters()] == ["table", "unknown"]


def test_unknown_words_have_a_vector_of_their_own_if_asked(file: dict[str, Any]) -> None:
    module = words_of({**file, "unknown": "own", "unk_dropout": 0.5}, ["play", "the"])
    first, other, again, known = look_up(module, "riverbank", "wharf", "riverbank", "play")
    assert torch.equal(first, again)
    assert not torch.isclose(first, other).any()
    assert known.tolist() == VECTORS["play"]
    torch.manual_seed(6)  # another run: the spelling alone decides
    assert torch.equal(look_up(module, "riverbank")[0], first)
    found = module.train()(module.source(Sentences([["play"] * 9])).gather(np.array([0])))
    found[0].sum().backward()
    assert module.unknown is not None
    assert module.unknown.grad is None or module.unknown.grad.isfinite().all()


def test_a_trained_table_moves_at_the_words_it_met(file: dict[str, Any]) -> None:
    module = words_of({**file, "trained": True}, ["play", "the", "水"])
    before = {word: look_up(module, word) for word in ("play", "the", "unheard-of")}
    batch = module.source(Sentences([["play"]])).gather(np.array([0]))
    module(batch).sum().backward()
    torch.optim.SGD(module.parameters(), lr=1.0).step()
    assert torch.equal(look_up(module, "play"), before["play"] - 1)
    assert torch.equal(look_up(module, "the"), before["the"])
    assert torch.equal(look_up(module, "unheard-of"), before["unheard-of"])


def test_unk_dropout_takes_words_for_unknown_in_training_only() -> None:
    values = {"vectors": {"kind": "new", "dim": 4}, "trained": True, "unk_dropout": 0.5}
    module = words_of(values, [f"w{n}" for n in range(200)])
    source = module.source(Sentences([[f"w{n}" for n in range(200)]]))
    assert module.unknown is not None
    is_unknown = (module(source.gather(np.array([0])))[0] == module.unknown).all(dim=-1)
    assert not is_unknown.any()
    module.train()
    is_unknown = (module(source.gather(np.array([0])))[0] == module.unknown).all(dim=-1)
    assert 60 < int(is_unknown.sum()) < 140


def test_a_word_never_met_is_unknown_and_not_a_random_vector() -> None:
    module = words_of({"vectors": {"kind": "new", "dim": 4}, "trained": True}, ["The", "cat"])
    assert module.vocabulary.words == ("The", "cat")
    assert torch.equal(look_up(module, "the"), look_up(module, "unheard-of"))
    assert torch.equal(look_up(module, "Cat"), look_up(module, "cat"))


@pytest.mark.parametrize("name", ["word2vec", "elmo", "gpt"])
def test_a_model_of_our_own_gives_its_layer_0(name: str, models: dict[str, Path]) -> None:
    module = words_of({"vectors": {"kind": "model", "model": models[name]}}, [*WORDS, "unseen"])
    model = Model.load(models[name])
    encoder = model.network.encoder
    batch: Batch = model.vocabulary.batch([[WORDS[3], "unseen", WORDS[0]]])
    with torch.no_grad():
        layer_0 = encoder(batch).hidden_states[0][0, 1:-1, : module.dim]
    found = look_up(module, WORDS[3], "unseen", WORDS[0])
    assert torch.allclose(found[[0, 2]], layer_0[[0, 2]], atol=1e-6)
    # Without characters, a model has nothing to tell of a word it never saw.
    assert ("unseen" in module.vocabulary.words) == (name == "elmo")


def test_a_model_that_knows_none_of_the_words_is_refused(models: dict[str, Path]) -> None:
    values = {"vectors": {"kind": "model", "model": models["word2vec"], "extra_words": 0}}
    with pytest.raises(InputError, match="No word of the data"):
        words_of(values, ["strange"])
    assert words_of(
        {"vectors": {**values["vectors"], "extra_words": 2}}, []
    ).vocabulary.words == tuple(WORDS[:2])


@pytest.mark.parametrize("vocabulary", ["unicode", "bytes"])
def test_characters_tell_words_apart_that_no_table_knows(vocabulary: str) -> None:
    values = {"characters": {"vocabulary": vocabulary}}
    module = words_of(values, ["flow", "水"])
    one, other, again = look_up(module, "wolf", "fowl", "wolf")
    assert torch.equal(one, again)
    assert not torch.allclose(one, other)
    assert module.dim == 50
    assert module.vocabulary == EmbeddingVocabulary(
        (), "flow水" if vocabulary == "unicode" else "", 0
    )


def test_what_is_kept_beside_the_weights_can_be_read_again(file: dict[str, Any]) -> None:
    vocabulary = words_of(file, ["play"]).vocabulary
    assert len(vocabulary.vectors_sha256) == 64
    assert EmbeddingVocabulary.from_json(vocabulary.as_json()) == vocabulary
