"""Old weights to a model and back: once through the command line, the rest by calling the verb."""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import polyseme
from legacy.published import GOLDEN, MANYLANGS, SETS, read_arrays
from legacy.stateful import embed_stateful

from polyseme.commands import score
from polyseme.commands.convert import ConvertResult, ImportConfig, import_
from polyseme.config import build
from polyseme.embedding.embedder import Embedder
from polyseme.errors import ConfigError, ModelError
from polyseme.model import Model
from polyseme.storage.files import sha256_of
from polyseme.text.preprocessing import TextPreprocessor

OLD = GOLDEN / "allennlp"
WEIGHTS = OLD / "lm_weights.hdf5"


def run(old: Path | str, new: Path, **settings: Any) -> ConvertResult:
    values = {"weights": old, "out": new, **settings}
    return import_(build(ImportConfig, values))


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = Path(tmp_path_factory.mktemp("convert")) / "elmo"
    shown = polyseme(
        "convert", "import", WEIGHTS, "--out", out, "--language", "en", "--licence", "Apache-2.0"
    ).stdout
    for line in ("bilm-tf / AllenNLP", "105,120", "softmax is not in the file", "polyseme embed"):
        assert line in shown
    return out


def test_the_card_and_the_manifest_tell_where_the_weights_came_from(converted: Path) -> None:
    card = (converted / "README.md").read_text(encoding="utf-8")
    assert sha256_of(WEIGHTS) in card
    assert sha256_of(OLD / "options.json") in card
    assert "Licence: Apache-2.0" in card
    metadata = json.loads((converted / "manifest.json").read_text(encoding="utf-8"))["metadata"]
    assert metadata["files"]["lm_weights.hdf5"]["sha256"] == sha256_of(WEIGHTS)


def test_a_converted_model_embeds_raw_text_of_its_language(converted: Path) -> None:
    embedder = Embedder.load(converted, device="cpu")
    [sentence] = embedder.embed("She plays the piano.")
    assert sentence.words == ("She", "plays", "the", "piano", ".")
    [expected], _ = embed_stateful(Model.load(converted), [sentence.words])
    assert np.allclose(sentence.vectors, expected, atol=1e-5)


def test_there_and_back_gives_the_same_arrays(converted: Path, tmp_path: Path) -> None:
    out = tmp_path / "back"
    polyseme("convert", "export", converted, "--out", out)
    found, expected = read_arrays(out / "model.hdf5"), SETS["allennlp"].arrays
    assert {name: array.tobytes() for name, array in found.items()} == {
        name: array.tobytes() for name, array in expected.items()
    }
    told = (OLD / "options.json").read_text(encoding="utf-8")
    assert json.loads((out / "options.json").read_text(encoding="utf-8")) == json.loads(told)
    again = tmp_path / "again"
    run(out, again, language="en", licence="Apache-2.0")
    assert sha256_of(again / "model.safetensors") == sha256_of(converted / "model.safetensors")


def test_a_zip_of_simple_elmo_is_read_with_its_words(converted: Path, tmp_path: Path) -> None:
    archive = tmp_path / "elmo.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.write(WEIGHTS, "model.hdf5")
        opened.write(OLD / "options.json", "options.json")
        opened.writestr("vocab.txt", "<S>\n</S>\n<UNK>\nthe\n水\nthe\n!!!MAXTERMID\n")
        opened.writestr("README", "of no use here")
    run(archive, tmp_path / "m")
    model = Model.load(tmp_path / "m")
    assert model.vocabulary.words.to_pylist() == ["the", "水"]
    assert list(model.metadata["files"]) == ["elmo.zip"]
    assert sha256_of(tmp_path / "m" / "model.safetensors") == sha256_of(
        converted / "model.safetensors"
    )
    assert {path.name for path in (tmp_path / "m").iterdir()} == {
        *("README.md", "config.toml", "manifest.json", "model.safetensors", "vocabulary.parquet")
    }


def test_a_zip_of_elmo_for_many_langs_is_read(tmp_path: Path) -> None:
    """Of its folder: tests/legacy/test_manylangs.py."""
    old = Path(shutil.make_archive(str(tmp_path / "179"), "zip", MANYLANGS / "model"))
    result = run(old, tmp_path / "m")
    assert result.kind == "ELMoForManyLangs"
    assert "--language" in " ".join(result.notes)
    model = Model.load(tmp_path / "m")
    assert len(model.vocabulary.words) == 11
    [vectors], _ = embed_stateful(model, [["今天", "天气"]])
    assert vectors.shape == (3, 2, 32)
    assert (tmp_path / "m" / "characters.parquet").is_file()


def test_without_a_language_raw_text_is_refused_with_the_way_out(tmp_path: Path) -> None:
    run(OLD, tmp_path / "m")
    embedder = Embedder.load(tmp_path / "m", device="cpu")
    assert embedder.embed([["She", "plays"]])[0].vectors.shape == (3, 2, 32)
    with pytest.raises(ModelError, match="lists of words"):
        embedder.embed("She plays.")


def test_words_are_found_by_the_segmenter_asked_for(tmp_path: Path) -> None:
    run(OLD, tmp_path / "m", language="zh", segmenter="characters")
    preprocess = TextPreprocessor.of_model(Model.load(tmp_path / "m").preparation)
    assert preprocess("今天好").words.words == ["今", "天", "好"]


def test_a_folder_with_other_things_is_not_written_to(converted: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("", encoding="utf-8")
    shown = polyseme("convert", "import", OLD, "--out", tmp_path, code=65).stderr
    assert "thesis.tex" in shown
    with pytest.raises(ModelError, match="holds other things"):
        run(OLD, converted)


@pytest.mark.parametrize(
    ("old", "settings", "told"),
    [
        ("nowhere", {}, "There is no nowhere"),
        (GOLDEN, {}, "Name the file itself"),
        (WEIGHTS, {"options": MANYLANGS / "model" / "tiny.json"}, "lstm is required"),
        (WEIGHTS, {"segmenter": "spacy"}, "add --language"),
        (WEIGHTS, {"language": "xx-no"}, "xx-no"),
    ],
    ids=str,
)
def test_a_mistake_is_answered_with_what_to_do(
    old: Path | str, settings: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises((ModelError, ConfigError), match=told):
        run(old, tmp_path / "m", **settings)
    assert not (tmp_path / "m").exists()


def test_a_model_that_predicts_nothing_says_so_when_asked(converted: Path) -> None:
    with pytest.raises(ModelError, match="predicts 'encoder_only'"):
        score.run(score.ScoreConfig(model=str(converted), inputs=("She plays.",)))


def test_a_file_that_is_no_weights_is_refused(tmp_path: Path) -> None:
    shutil.copy(OLD / "options.json", tmp_path)
    (tmp_path / "model.hdf5").write_bytes(b"not HDF5 at all" * 100)
    with pytest.raises(ModelError, match="refused"):
        run(tmp_path, tmp_path / "m")
