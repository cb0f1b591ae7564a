"""Folders of ELMoForManyLangs: the numbers of that program, and only what it would read."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from legacy.published import (
    MANYLANGS,
    TOLERANCE,
    changed,
    each_mistake,
    furthest,
    read_manylangs_fixture,
)
from legacy.stateful import embed_stateful
from polyseme.data.batch import FIRST_WORD
from polyseme.errors import ModelError
from polyseme.legacy.manylangs import (
    CHARACTER_TOKENS,
    WORD_TOKENS,
    Dictionary,
    ManyLangsOptions,
    embedder_shapes,
    encoder_shapes,
    read_architecture,
    read_dictionary,
    read_manylangs,
)
from polyseme.legacy.old_model import parse
from polyseme.legacy.opening import read_old
from polyseme.legacy.weight_files import Floats
from polyseme.model import Model

HERE = Path("somewhere")
CHARACTERS = ["a", "水", "<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>", "c", "t"]
WORDS = ["<oov>", "<bos>", "<eos>", "<pad>", "cat", "水"]
SENTENCE = ["cat", "unseen", "水", "水a"]
ARCHITECTURE: dict[str, Any] = {
    "encoder": {
        "name": "elmo",
        "projection_dim": 5,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 7,
        "n_layers": 2,
    },
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": [[1, 2], [3, 2]],
        "n_highway": 1,
        "word_dim": 3,
        "char_dim": 2,
        "max_characters_per_token": 50,
    },
    "classifier": {"name": "sampled_softmax", "n_samples": 8192},
    "dropout": 0.1,
}


def architecture(encoder: Any = None, **changes: Any) -> ManyLangsOptions:
    values = json.loads(json.dumps(ARCHITECTURE))
    values["encoder"] |= encoder or {}
    values["token_embedder"] |= changes
    return parse(ManyLangsOptions, values, HERE)


def written(folder: Path, entries: list[str], name: str = "some.dic") -> Path:
    path = folder / name
    lines = [f"{entry}\t{number}\n" for number, entry in enumerate(entries)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def dictionaries(folder: Path, options: ManyLangsOptions) -> dict[str, Dictionary]:
    found = {}
    if options.token_embedder.word_dim:
        found["word"] = read_dictionary(written(folder, WORDS), WORD_TOKENS, single=False)
    if options.token_embedder.char_dim:
        found["char"] = read_dictionary(written(folder, CHARACTERS), CHARACTER_TOKENS, single=True)
    return found


def random_tensors(shapes: dict[str, tuple[int, ...]]) -> dict[str, Floats]:
    random = np.random.default_rng(4)
    return {name: random.normal(size=shape).astype("f4") for name, shape in shapes.items()}


def layers(model: Model) -> Any:
    with torch.inference_mode():
        return model.network.encoder(model.vocabulary.batch([SENTENCE])).layers.numpy()


def gap(model: Model) -> float:
    """How far two calls, the second going on from the first, are from that program's."""
    sentences = json.loads((MANYLANGS / "sentences.json").read_text(encoding="utf-8"))
    expected = np.load(MANYLANGS / "expected.npz")
    state, gaps = None, []
    for call in ("first", "second"):
        found, state = embed_stateful(model, sentences, state)
        gaps += [furthest(each, expected[f"{call}_{n}"]) for n, each in enumerate(found)]
    assert len(gaps) == 6
    return max(gaps)


def test_both_calls_give_the_numbers_of_the_program() -> None:
    assert gap(read_manylangs_fixture()) <= TOLERANCE


@each_mistake
def test_a_mistake_in_reading_would_be_seen(mistake: Any) -> None:
    assert gap(mistake(read_manylangs_fixture())) > 1e-3


def _swap_begin_and_end(weights: dict[str, torch.Tensor]) -> None:
    embedding = weights["encoder.inputs.characters.char_embedding.weight"]
    embedding[[1, 2]] = embedding[[2, 1]]


def _turn_word_and_characters(weights: dict[str, torch.Tensor]) -> None:
    projection = weights["encoder.inputs.projection.weight"]
    projection.copy_(projection.roll(-10, dims=1))  # the table is 10 numbers wide


@pytest.mark.parametrize("change", [_swap_begin_and_end, _turn_word_and_characters])
def test_a_word_that_begins_and_ends_as_one_would_think_is_seen(change: Any) -> None:
    assert gap(changed(read_manylangs_fixture(), change)) > 1e-2


def test_rows_of_words_and_characters_are_those_of_their_dictionaries(tmp_path: Path) -> None:
    options = architecture()
    found = dictionaries(tmp_path, options)
    embedder = random_tensors(embedder_shapes(options, found.get("word"), found.get("char")))
    encoder = random_tensors(encoder_shapes(options))
    old = read_manylangs(options, found, embedder=embedder, encoder=encoder, folder=HERE)
    words = old.vocabulary.words.to_pylist()
    assert words == ["cat", "水"]
    table = old.weights["encoder.inputs.word_embedding.weight"]
    theirs = "word_emb_layer.embedding.weight"
    for number, word in enumerate(words, start=FIRST_WORD):
        assert np.array_equal(table[number], embedder[theirs][WORDS.index(word)])
    char_ids = old.vocabulary.char_ids_of(old.vocabulary.words)[1]  # 水
    rows = old.weights["encoder.inputs.characters.char_embedding.weight"]
    for index, entry in enumerate(["<eow>", "水", "<bow>", "<pad>"]):
        expected = embedder["char_emb_layer.embedding.weight"][CHARACTERS.index(entry)]
        assert np.array_equal(rows[char_ids[index] - 1], expected), entry


@pytest.mark.parametrize("absent", ["word", "char"])
def test_a_model_of_one_part_is_one_of_both_whose_other_part_counts_for_nothing(
    absent: str, tmp_path: Path
) -> None:
    both, alone = architecture(), architecture(**{f"{absent}_dim": 0})
    found = dictionaries(tmp_path, both)
    embedder = random_tensors(embedder_shapes(both, found["word"], found["char"]))
    encoder = random_tensors(encoder_shapes(both))
    projection = embedder["projection.weight"]
    dead = projection[:, :3] if absent == "word" else projection[:, 3:]
    live = projection[:, 3:] if absent == "word" else projection[:, :3]
    dead[:] = 0
    expected = read_manylangs(both, found, embedder=embedder, encoder=encoder, folder=HERE)
    kept = {key: each for key, each in found.items() if key != absent}
    names = embedder_shapes(alone, kept.get("word"), kept.get("char"))
    smaller = {name: embedder[name] for name in names} | {"projection.weight": live}
    old = read_manylangs(alone, kept, embedder=smaller, encoder=encoder, folder=HERE)
    assert np.allclose(layers(old.model(None, {})), layers(expected.model(None, {})), atol=1e-6)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (architecture(encoder={"name": "lstm"}), "encoder 'lstm'. Only 'elmo'"),
        (architecture(name="lstm"), "characters with 'lstm'. Only 'cnn'"),
        (architecture(word_dim=0, char_dim=0), "neither words nor characters"),
        (architecture(word_dim=1), "projects 5 dimensions to as many"),
    ],
)
def test_what_is_not_known_is_refused_with_the_reason(options: ManyLangsOptions, told: str) -> None:
    with pytest.raises(ModelError, match=told):
        read_manylangs(options, {}, embedder={}, encoder={}, folder=HERE)


def test_a_tensor_that_does_not_fit_is_named_with_both_shapes(tmp_path: Path) -> None:
    options = architecture()
    found = dictionaries(tmp_path, options)
    embedder = random_tensors(embedder_shapes(options, found["word"], found["char"]))
    encoder = random_tensors(encoder_shapes(options))
    embedder["char_emb_layer.embedding.weight"] = np.zeros((9, 2), "f4")
    with pytest.raises(ModelError, match=r"char_emb_layer.*\(9, 2\), expected \(10, 2\)"):
        read_manylangs(options, found, embedder=embedder, encoder=encoder, folder=HERE)


def test_a_line_with_a_number_alone_is_the_ideographic_space(tmp_path: Path) -> None:
    entries = [*CHARACTERS, "\u3000"]
    found = read_dictionary(written(tmp_path, entries), CHARACTER_TOKENS, single=True)
    assert found.entries == ["a", "水", "c", "t", "\u3000"]
    assert found.rows[-1] == len(entries) - 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a\t0\n", "lacks <bos>"),
        ("a\tb\n", "damaged"),
        ("a\t1\tb\n", "damaged"),
        ("a\t0\nb\t0\n" + "".join(f"{token}\t{n}\n" for n, token in enumerate(WORDS)), "twice"),
        ("".join(f"{token}\t{n - 1}\n" for n, token in enumerate(WORDS)), "below 0"),
    ],
)
def test_a_damaged_dictionary_is_refused(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "word.dic"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ModelError, match=told):
        read_dictionary(path, WORD_TOKENS, single=False)


def _folder_naming(folder: Path, config_path: Any) -> Path:
    inner = folder / "model"
    inner.mkdir(exist_ok=True)
    text = json.dumps({"config_path": config_path})
    (inner / "config.json").write_text(text, encoding="utf-8")
    return inner


@pytest.mark.parametrize(
    "named", ["tiny.json", "/Users/someone/configs/tiny.json", "C:\\x\\tiny.json", "../tiny.json"]
)
def test_the_architecture_is_found_in_the_folder_by_its_name(named: str, tmp_path: Path) -> None:
    folder = _folder_naming(tmp_path, named)
    (folder / "tiny.json").write_text(json.dumps(ARCHITECTURE), encoding="utf-8")
    (tmp_path / "tiny.json").write_text("{}", encoding="utf-8")  # outside: must not be read
    assert read_architecture(folder) == architecture()


def test_a_path_within_the_folder_comes_first(tmp_path: Path) -> None:
    folder = _folder_naming(tmp_path, "configs/tiny.json")
    (folder / "configs").mkdir()
    (folder / "configs" / "tiny.json").write_text(json.dumps(ARCHITECTURE), encoding="utf-8")
    (folder / "tiny.json").write_text("{}", encoding="utf-8")
    assert read_architecture(folder) == architecture()


def test_the_published_architecture_need_not_be_in_the_folder(tmp_path: Path) -> None:
    folder = _folder_naming(tmp_path, "/Users/x/configs/cnn_50_100_512_4096_sample.json")
    options = read_architecture(folder)
    # Two stacks of two layers: 3 matrices of 4096 x 512 x (4 + 4 + 1) numbers in all, and a bias.
    found = sum(map(math.prod, encoder_shapes(options).values()))
    assert found == 4 * (9 * 4096 * 512 + 4 * 4096)
    assert options.token_embedder.features == 2048


@pytest.mark.parametrize(("named", "told"), [("other.json", "Put other.json there"), (None, "no")])
def test_an_architecture_that_is_nowhere_is_asked_for(
    named: Any, told: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=told):
        read_architecture(_folder_naming(tmp_path, named))


def test_a_folder_without_its_words_is_refused(tmp_path: Path) -> None:
    shutil.copytree(MANYLANGS / "model", tmp_path / "model")
    (tmp_path / "model" / "word.dic").unlink()
    with pytest.raises(ModelError, match=r"no .*word\.dic"):
        read_old(tmp_path / "model", scratch=tmp_path)
