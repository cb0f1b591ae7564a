"""What holds for every kind of embeddings.

Labels at characters, vectors at words.
"""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from embedding.bulk_cases import Case, make_case
from safetensors.torch import load, save
from torch import Tensor

from polyseme.config import build
from polyseme.errors import ConfigError, InputError, ModelError
from polyseme.storage.files import canonical_json
from polyseme.tasks.embeddings.embeddings import (
    CharacterLabelsConfig,
    Embeddings,
    EmbeddingsConfig,
    WordAligner,
    load_model,
)
from polyseme.tasks.embeddings.features import LayerMix, Sentences, TaskInputs
from polyseme.tasks.embeddings.word_embedding import EmbeddingVocabulary
from tasks.embeddings.making import EMBEDDINGS, SENTENCES, embed_one, embeddings_of

Models = dict[str, Path]
every_kind = pytest.mark.parametrize("values", EMBEDDINGS.values(), ids=EMBEDDINGS)
ALL = [*SENTENCES, ["new", "Ban", "words"]]


def parts(inputs: TaskInputs) -> dict[str, Tensor]:
    named = {
        "input": inputs.input,
        "after_first_layer": inputs.after_first_layer,
        "output": inputs.output,
    }
    return {name: part for name, part in named.items() if part is not None}


def embed_all(embeddings: Embeddings, numbers: list[int] | None = None) -> TaskInputs:
    with torch.no_grad():
        inputs: TaskInputs = embeddings(
            embeddings.prepare(ALL).gather(numbers or list(range(len(ALL))))
        )
    return inputs


def train_a_little(embeddings: Embeddings, steps: int = 3) -> None:
    """Towards zero: every parameter that can move does."""
    dataset = embeddings.prepare(ALL)
    embeddings.train()
    optimizer = torch.optim.AdamW([p for p in embeddings.parameters() if p.requires_grad], lr=0.01)
    for step in range(steps):
        optimizer.zero_grad()
        inputs = embeddings(dataset.gather(range(len(ALL))), step=step)
        far = [(part - 1).square().mean() for part in parts(inputs).values()]
        (torch.stack(far).sum() + embeddings.penalty()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    embeddings.eval()


@every_kind
def test_vectors_stand_at_words_have_the_stated_dimensions_and_come_twice_the_same(
    values: Any, models: Models, tmp_path: Path
) -> None:
    embeddings = embeddings_of(values, models, tmp_path)
    inputs = embed_all(embeddings)
    dims = {name: dim for name, dim in embeddings.dims._asdict().items() if dim}
    assert {name: part.shape[-1] for name, part in parts(inputs).items()} == dims
    assert inputs.mask.sum(dim=1).tolist() == [len(words) for words in ALL]
    again = parts(embed_all(embeddings_of(values, models, tmp_path)))
    for name, part in parts(inputs).items():
        assert part.shape[:2] == inputs.mask.shape
        assert not part[~inputs.mask].any()
        assert part.isfinite().all()
        assert part[inputs.mask].any(dim=-1).all()
        assert torch.equal(part, again[name])


@every_kind
def test_order_and_selection_change_nothing(values: Any, models: Models, tmp_path: Path) -> None:
    embeddings = embeddings_of(values, models, tmp_path)
    here, there = embed_all(embeddings), embed_all(embeddings, [3, 0, 4, 1, 2])
    with torch.no_grad():
        whole = embeddings.prepare(ALL).gather(range(len(ALL)))
        some = embeddings(whole.select(torch.tensor([2, 0])))
    expected = embed_all(embeddings, [2, 0])
    assert torch.equal(some.mask, expected.mask)
    for name, part in parts(here).items():
        assert torch.allclose(part[[3, 0, 4, 1, 2]], parts(there)[name], atol=1e-5)
        assert torch.allclose(parts(some)[name], parts(expected)[name], atol=1e-5)


@every_kind
def test_inputs_do_not_depend_on_neighbours(values: Any, models: Models, tmp_path: Path) -> None:
    embeddings = embeddings_of(values, models, tmp_path)
    together = parts(embed_all(embeddings))
    for row, words in enumerate(ALL):
        alone = parts(embed_one(embeddings, words))
        for name, part in together.items():
            # Layers from the cache are rounded to float16; those worked out for one are not.
            assert torch.allclose(part[row, : len(words)], alone[name][0], atol=2e-3, rtol=2e-3)


@every_kind
def test_all_that_is_trained_has_a_param_group_and_is_saved(
    values: Any, models: Models, tmp_path: Path
) -> None:
    embeddings = embeddings_of(values, models, tmp_path)
    trained = {name for name, parameter in embeddings.named_parameters() if parameter.requires_grad}
    assert set(embeddings.param_groups()) == trained
    assert trained <= set(embeddings.state_dict())
    before = {name: weight.clone() for name, weight in embeddings.state_dict().items()}
    train_a_little(embeddings)
    moved = {
        name
        for name, weight in embeddings.state_dict().items()
        if not torch.equal(weight, before[name])
    }
    assert moved <= trained
    # Segments and places that no sentence has stay where they are.
    assert {name for name in trained - moved if "segments" not in name} == set()


@every_kind
def test_saved_then_loaded_gives_the_same(values: Any, models: Models, tmp_path: Path) -> None:
    embeddings = embeddings_of(values, models, tmp_path)
    train_a_little(embeddings)
    state = {name: weight.contiguous() for name, weight in embeddings.state_dict().items()}
    vocabulary = EmbeddingVocabulary.from_json(embeddings.vocabulary.as_json())
    again = Embeddings.with_vocabulary(
        embeddings.config, vocabulary, load_model(embeddings.config, "cpu")
    ).eval()
    again.load_state_dict(load(save(state)))
    for name, part in parts(embed_all(embeddings)).items():
        assert torch.equal(part, parts(embed_all(again))[name])
    assert again.fingerprint() == embeddings.fingerprint()


def with_file(path: Path, number: int) -> dict[str, Any]:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{ALL[0][0]} 1 2\n{ALL[0][1]} 3 {number}\n", encoding="utf-8")
    return {"words": {"vectors": {"kind": "file", "path": path}}}


def test_vectors_may_be_moved_and_are_told_from_others(models: Models, tmp_path: Path) -> None:
    here, there = tmp_path / "here.txt", tmp_path / "far" / "there.txt"
    first = embeddings_of(with_file(here, 4), models, tmp_path).fingerprint()
    assert embeddings_of(with_file(there, 4), models, tmp_path).fingerprint() == first
    assert embeddings_of(with_file(here, 5), models, tmp_path).fingerprint() != first
    assert str(tmp_path) not in canonical_json(first)


def test_the_penalty_is_that_of_all_mixes(models: Models, tmp_path: Path) -> None:
    embeddings = embeddings_of(
        EMBEDDINGS["frozen at both ends"], models, tmp_path, mix={"penalty": 0.5}
    )
    with torch.no_grad():
        for mix in embeddings.mixes.values():
            assert isinstance(mix, LayerMix)
            assert mix.logits is not None
            mix.logits.copy_(torch.tensor([1.0, 0.0, -1.0]))
    assert float(embeddings.penalty().detach()) == 2.0
    assert embeddings_of(EMBEDDINGS["table"], models, tmp_path).penalty() == 0


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "words, a model, or both"),
        (
            {"model": {"kind": "frozen", "model": "m"}, "insert_at": "output"},
            "leaves the input empty",
        ),
        ({"words": {}}, "vectors, characters, or both"),
        ({"words": {"vectors": {"kind": "new"}}}, "set trained = true"),
    ],
)
def test_settings_without_an_input_are_refused(values: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        build(EmbeddingsConfig, values)


def test_sentences_that_are_none_are_refused(models: Models, tmp_path: Path) -> None:
    embeddings = embeddings_of(EMBEDDINGS["table"], models, tmp_path)
    cases: list[tuple[Any, str]] = [
        ([], "no sentences"),
        ([["a"], []], "Sentence 1 has no words"),
        (["a text"], "a list of words was expected"),
        ([["\ud800"]], "half a character"),
    ]
    for sentences, said in cases:
        with pytest.raises(InputError, match=said):
            embeddings.prepare(sentences)
    with pytest.raises(InputError, match="not all among the 1"):
        embeddings.prepare([["a"]]).gather([1])


CHARACTERS = [list("word1 word2"), list("word3")]


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A model whose words stand between spaces."""
    return make_case(tmp_path_factory.mktemp("characters"))


def embeddings_for(case: Case, cache: Path, kind: str) -> Embeddings:
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
    told = embeddings_for(case, tmp_path, "frozen").fingerprint()
    moved = replace(case, model=Path(shutil.copytree(case.model, tmp_path / "moved")))
    assert embeddings_for(moved, tmp_path, "frozen").fingerprint() == told
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
    embeddings = embeddings_for(case, tmp_path, kind)
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


def test_what_is_kept_rebuilds_the_table_of_characters(case: Case, tmp_path: Path) -> None:
    embeddings = embeddings_for(case, tmp_path, "frozen")
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
