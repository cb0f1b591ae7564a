"""One model, one folder: what fits together, and what a folder must be to be believed."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from laws.cases import CASES, Case, make
from pretraining.making import rule_corpus, rule_text, tiny_model
from safetensors.torch import load_file, save_file

from polyseme.commands import prepare
from polyseme.config import build
from polyseme.errors import ConfigError, ModelError
from polyseme.model import Model, ModelConfig, count_parameters
from polyseme.storage.files import describe_file
from polyseme.text.preprocessing import Preparation
from polyseme.text.settings import CorpusConfig

CASE = make("lstm", "separate", "bidirectional", "word+characters", "tied")
WORD = {"kind": "word", "dim": 8}
CHARACTERS = {"kind": "characters", "dim": 8, "filters": [{"width": 5, "num_filters": 3}]}
LSTM = {"kind": "lstm", "proj_size": 8}
NONE = {"kind": "none", "dim": 8}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    CASE.model().save(tmp_path, card="A test.")
    return tmp_path


def misfit(
    objective: dict[str, Any],
    *,
    reading: dict[str, Any] = WORD,
    contextualizer: dict[str, Any] = LSTM,
    vocabulary: dict[str, Any] | None = None,
    **encoder: Any,
) -> dict[str, Any]:
    told = {"input": reading, "contextualizer": contextualizer, **encoder}
    return {"encoder": told, "objective": objective, "vocabulary": vocabulary or {}}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            misfit({"kind": "bidirectional"}, direction="joint"),
            "'bidirectional' needs .*'separate'",
        ),
        (misfit({"kind": "causal"}, direction="separate"), "must not have been seen"),
        (misfit({"kind": "masked"}, direction="forward"), "predicted from both its sides"),
        (
            misfit({"kind": "word2vec"}, direction="separate", contextualizer=NONE),
            "direction 'forward'",
        ),
        (misfit({"kind": "word2vec"}, direction="forward"), r"contextualizer\.kind = 'none'"),
        (
            misfit({"kind": "masked"}, direction="joint", contextualizer=NONE),
            "encoder with context",
        ),
        (misfit({"kind": "bidirectional"}, contextualizer=NONE), "the same in both directions"),
        (
            misfit(
                {"kind": "bidirectional"}, reading=CHARACTERS, vocabulary={"characters": "none"}
            ),
            "reads characters",
        ),
        (
            misfit({"kind": "bidirectional"}, reading=CHARACTERS, vocabulary={"max_characters": 4}),
            "filter 5 characters wide needs at least as many",
        ),
        (
            misfit(
                {"kind": "bidirectional", "softmax": {"kind": "full", "tied": True}},
                reading=CHARACTERS,
            ),
            "the input has 0, the encoder 8",
        ),
        (misfit({"kind": "bidirectional"}, segments=True), "pairs of sentences"),
        (
            misfit({"kind": "masked", "next_sentence": False}, direction="joint", segments=True),
            "pairs of sentences",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused_in_words(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build(ModelConfig, values)


def test_the_laws_run_over_every_objective_and_context() -> None:
    kinds = {
        (case.config.encoder.contextualizer.kind, case.config.objective.kind) for case in CASES
    }
    contexts, objectives = (
        ("feedforward", "lstm", "transformer"),
        ("bidirectional", "causal", "masked"),
    )
    expected = {(context, objective) for context in contexts for objective in objectives}
    assert kinds == expected | {("none", "causal"), ("none", "word2vec")}


def test_how_text_was_prepared_and_what_is_known_of_it_travel_along(folder: Path) -> None:
    model, preparation = CASE.model(), Preparation.of(CorpusConfig(language="en"))
    told = Model(model.config, model.vocabulary, model.network, preparation, {"steps": 3})
    told.save(folder, card="# A card")
    loaded = Model.load(folder)
    assert loaded.preparation == preparation
    assert loaded.metadata == {"steps": 3}
    assert (folder / "README.md").read_text(encoding="utf-8") == "# A card"


def test_the_same_model_is_saved_as_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        CASE.model().save(tmp_path / name, card="A test.")
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_nothing_unfinished_is_left_in_the_folder(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        "characters.parquet",
        "config.toml",
        "manifest.json",
        "model.safetensors",
        "vocabulary.parquet",
    ]


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float16, 1e-3), (torch.bfloat16, 8e-3)])
def test_weights_saved_in_half_the_bits_load_as_floats(
    tmp_path: Path, dtype: torch.dtype, bound: float
) -> None:
    model = CASE.model()
    model.save(tmp_path, card="A test.", dtype=dtype)
    loaded = Model.load(tmp_path).network.state_dict()
    for name, weight in model.network.state_dict().items():
        assert loaded[name].dtype == torch.float32
        assert torch.allclose(loaded[name], weight, rtol=bound, atol=1e-6)
    found = Model.load(tmp_path).network.log_probabilities(CASE.targets(model))
    assert all(bool(torch.isfinite(part).all()) for part in found.values())


def test_a_loaded_model_is_ready_for_use_and_can_go_on_learning(folder: Path) -> None:
    network = Model.load(folder).network
    assert not network.training
    assert all(weight.requires_grad for weight in network.parameters())
    assert count_parameters(network) == sum(w.numel() for w in network.state_dict().values())


@pytest.mark.parametrize(
    "name",
    ["README.md", "characters.parquet", "config.toml", "model.safetensors", "vocabulary.parquet"],
)
@pytest.mark.parametrize("harm", ["missing", "shortened", "longer"])
def test_a_file_that_is_not_as_it_was_written_is_refused(
    folder: Path, name: str, harm: str
) -> None:
    path = folder / name
    whole = path.read_bytes()
    if harm == "missing":
        path.unlink()
    else:
        path.write_bytes(whole[:-1] if harm == "shortened" else whole + b" ")
    with pytest.raises(ModelError, match=f"{name} is missing or not as it was written"):
        Model.load(folder)


def test_one_bit_flipped_anywhere_in_the_weights_is_noticed(folder: Path) -> None:
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    for place in [0, 9, *range(100, len(whole), len(whole) // 25), len(whole) - 1]:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << (place % 8)
        path.write_bytes(flipped)
        with pytest.raises(ModelError, match=r"model\.safetensors"):
            Model.load(folder)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"format": 1}',
        '{"format": 1, "files": {}}',
        '{"format": 1, "files": {"model.safetensors": 3}}',
        "\udcff",
    ],
)
def test_a_damaged_manifest_is_refused(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ModelError, match=r"manifest\.json|has model format 1"):
        Model.load(folder)


def change(folder: Path, **values: Any) -> None:
    """Write other values into the manifest, and the hashes that are right for the files."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for name, told in manifest["files"].items():
        told.update(describe_file(folder / name))
    (folder / "manifest.json").write_text(json.dumps({**manifest, **values}), encoding="utf-8")


def test_a_folder_without_a_manifest_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"a model was expected.*polyseme pretrain"):
        Model.load(tmp_path)


def test_another_format_is_refused_with_both_numbers(folder: Path) -> None:
    change(folder, format=99)
    with pytest.raises(
        ModelError, match="model format 99, this version of Polyseme reads format 2"
    ):
        Model.load(folder)


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "folder/file"])
def test_a_manifest_cannot_name_files_of_other_folders(folder: Path, name: str) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    change(folder, files={**manifest["files"], name: {"sha256": "0", "bytes": 1}})
    with pytest.raises(ModelError, match=r"not a file of a model|inside its folder"):
        Model.load(folder)


def test_weights_of_another_model_are_refused_though_their_hash_fits(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    name = "objective.softmax.bias"
    save_file({**weights, name: weights[name][:-1].clone()}, folder / "model.safetensors")
    change(folder)
    with pytest.raises(ModelError, match=f"do not fit its settings.*{name}"):
        Model.load(folder)


def test_a_model_saved_over_another_replaces_it_whole(folder: Path) -> None:
    other: Case = make("none", "forward", "causal", "word", "full")
    other.model().save(folder, card="Another.")
    loaded = Model.load(folder)
    assert loaded.config == other.config
    assert not (folder / "characters.parquet").exists()


def test_a_model_keeps_what_it_knows_of_another_corpus_and_its_words(tmp_path: Path) -> None:
    """The other corpus is tokenized differently, so without --vocabulary corpus it is refused."""
    text = tmp_path / "text.txt"
    text.write_text(rule_text().replace("cat", "wolf").replace(" .", "."), encoding="utf-8")
    settings = {"language": "en", "segmenter": "whitespace", "layout": "lines", "held_out": 0.2}
    values = {"inputs": [str(text)], "out": tmp_path / "other", "corpus": settings}
    other = prepare.run(build(prepare.PrepareConfig, values)).corpus
    own = tiny_model(
        rule_corpus(tmp_path / "own"),
        encoder={
            "input": {
                "kind": "word+characters",
                "word_dim": 16,
                "characters": {"filters": [{"width": 1, "num_filters": 4}], "dim": 8},
            },
            "contextualizer": {"kind": "lstm", "proj_size": 16, "hidden_size": 24},
            "direction": "separate",
        },
    )
    new = own.with_words_of(other)
    assert new.preparation == other.preparation
    before, after = own.network.state_dict(), new.network.state_dict()
    word, character = "encoder.inputs.word_embedding.weight", "char_embedding.weight"
    for name in ("dog", "barks", "<UNK>"):
        here, there = (int(model.vocabulary.ids_of(pa.array([name]))[0]) for model in (new, own))
        assert torch.equal(after[word][here], before[word][there])
    assert "wolf" not in own.vocabulary.words.to_pylist()
    (name,) = [each for each in after if each.endswith(character)]
    for letter in "dog":
        one, two = (
            int(model.vocabulary.char_ids_of(pa.array([letter]))[0, 1]) for model in (new, own)
        )
        assert torch.equal(after[name][one - 1], before[name][two - 1])
    same = [
        each for each in after if "word" not in each and "char" not in each and "soft" not in each
    ]
    assert same
    assert all(torch.equal(after[each], before[each]) for each in same)
