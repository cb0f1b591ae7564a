"""Labels at characters, vectors at words."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from embedding.bulk_cases import Case, make_case

from polyseme.config import build
from polyseme.errors import ModelError
from polyseme.storage.files import canonical_json
from polyseme.tasks.embeddings.character_labels import CharacterLabelsConfig, WordAligner
from polyseme.tasks.embeddings.embeddings import Embeddings, EmbeddingsConfig, load_model
from polyseme.tasks.embeddings.features import Sentences

CHARACTERS = [list("word1 word2"), list("word3")]


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A model whose words stand between spaces."""
    return make_case(tmp_path_factory.mktemp("characters"))


def embeddings_of(case: Case, cache: Path, kind: str) -> Embeddings:
    model: dict[str, Any] = {"kind": kind, "model": case.model}
    if kind == "frozen":
        model["cache"] = {"folder": cache}
    torch.manual_seed(5)
    values = {
        "character_labels": {"tokenizer_from": case.model, "dim": 5},
        "words": {"vectors": {"kind": "model", "model": case.model}},
        "model": model,
        "mix": {"dropout": 0},
    }
    return Embeddings.new(
        build(EmbeddingsConfig, values), {c for s in CHARACTERS for c in s}, device="cpu"
    ).eval()


def test_words_are_found_in_joined_characters(case: Case) -> None:
    aligner = WordAligner(CharacterLabelsConfig(tokenizer_from=case.model))
    alignment = aligner.align(Sentences(CHARACTERS))
    assert alignment.sentences.words == [["word1", "word2"], ["word3"]]
    # The space, in no word, goes with the one before it.
    assert alignment.word_of(np.array([0])).tolist() == [[0] * 6 + [1] * 5]
    assert alignment.word_of(np.array([1, 0]))[0].tolist() == [0] * 11


def test_models_and_vectors_may_be_moved(case: Case, tmp_path: Path) -> None:
    told = embeddings_of(case, tmp_path, "frozen").fingerprint()
    moved = replace(case, model=Path(shutil.copytree(case.model, tmp_path / "moved")))
    assert embeddings_of(moved, tmp_path, "frozen").fingerprint() == told
    assert str(case.model) not in canonical_json(told)
    assert told["tokenizer"]["settings"]["language"] == "en"


def test_a_sentence_of_spaces_is_its_own_words(case: Case) -> None:
    alignment = WordAligner(CharacterLabelsConfig(tokenizer_from=case.model)).align(
        Sentences([[" ", "\u3000"]])
    )
    assert alignment.sentences.words == [[" ", "\u3000"]]
    assert alignment.word_of(np.array([0])).tolist() == [[0, 1]]


@pytest.mark.parametrize("kind", ["frozen", "finetuned"])
def test_a_character_has_its_word_s_vectors_and_its_own(
    case: Case, tmp_path: Path, kind: str
) -> None:
    embeddings = embeddings_of(case, tmp_path, kind)
    without = build(EmbeddingsConfig, {**embeddings.config.model_dump(), "character_labels": None})
    words = Embeddings.new(without, device="cpu").eval()
    with torch.no_grad():
        inputs = embeddings(embeddings.prepare(CHARACTERS).gather([1, 0]))
        expected = words(words.prepare([["word1", "word2"], ["word3"]]).gather([1, 0]))
    assert inputs.mask.sum(dim=1).tolist() == [5, 11]
    own, taken = inputs.input.split([5, inputs.input.shape[-1] - 5], dim=-1)
    assert torch.allclose(taken[1, :6], expected.input[1, 0].expand(6, -1), atol=1e-5)
    assert torch.allclose(taken[1, 6:], expected.input[1, 1].expand(5, -1), atol=1e-5)
    assert torch.allclose(taken[0, :5], expected.input[0, 0].expand(5, -1), atol=1e-5)
    assert not inputs.input[0, 5:].any()
    assert torch.equal(own[1, 0], own[0, 0])  # both are a w
    assert not torch.allclose(own[1, 0], own[1, 1])


def test_a_share_of_a_batch_is_as_if_gathered_alone(case: Case, tmp_path: Path) -> None:
    for kind in ("frozen", "finetuned"):
        embeddings = embeddings_of(case, tmp_path, kind)
        dataset = embeddings.prepare(CHARACTERS)
        with torch.no_grad():
            part = embeddings(dataset.gather([0, 1]).select(torch.tensor([1])))
            alone = embeddings(dataset.gather([1]))
        assert torch.allclose(part.input, alone.input, atol=1e-5)


def test_what_is_kept_rebuilds_the_table_of_characters(case: Case, tmp_path: Path) -> None:
    embeddings = embeddings_of(case, tmp_path, "frozen")
    again = Embeddings.with_vocabulary(
        embeddings.config, embeddings.vocabulary, load_model(embeddings.config, "cpu")
    )
    again.load_state_dict(embeddings.state_dict())
    with torch.no_grad():
        inputs = [each.eval()(each.prepare(CHARACTERS).gather([0])) for each in (embeddings, again)]
    assert torch.equal(inputs[0].input, inputs[1].input)


def test_a_model_that_cannot_split_text_is_refused(models: dict[str, Path]) -> None:
    with pytest.raises(ModelError, match="tokenizer_from = 'en'"):
        WordAligner(CharacterLabelsConfig(tokenizer_from=models["elmo"]))
