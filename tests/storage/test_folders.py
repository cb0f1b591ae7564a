"""Names that a file tells: plain and inside the folder, in every kind of folder there is.

A folder of another kind than the one wanted is named as what it is, with the next command.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reliability.victims import LEADING_OUT
from tasks.cases import TaskCase, make_task
from text.test_corpus import write_corpus

from polyseme.embedding.folder import ARTIFACT, VectorFolder
from polyseme.errors import CorpusError, ModelError, PolysemeError, StorageError, VectorsError
from polyseme.storage.files import make_output
from polyseme.storage.folders import check_holds, is_inside, listed_files, write_manifest
from polyseme.text.corpus import Corpus

OUT = [name.format(v="/victims", n="x") for name in LEADING_OUT]


@pytest.mark.parametrize(
    "name",
    ["manifest.json", "shards/part-00000.parquet", "vectors/part-00000-0001.hdf5", "a/b_c/d.e-f"],
)
def test_names_of_our_own_are_inside(name: str) -> None:
    assert is_inside(name)


@pytest.mark.parametrize("name", [*OUT, None, 3, "x" * 200, "a/b/c/d/e", "a/.hidden", "c:x"])
def test_names_that_lead_out_or_seem_to_are_not(name: object) -> None:
    assert not is_inside(name)


@settings(max_examples=500, deadline=None)
@example("shards/..")
@given(st.one_of(st.text(max_size=30), st.text("./\\a-_~\uff0e\u2215", max_size=12)))
def test_whatever_is_inside_stays_there(name: str) -> None:
    if is_inside(name):
        path = os.path.normpath(os.path.join("/folder", name))  # noqa: PTH118
        assert path == f"/folder/{name}"
        assert name.isascii()


@pytest.mark.parametrize("name", OUT)
def test_a_corpus_that_names_files_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    folder = write_corpus(tmp_path / "c")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"][name] = {"bytes": 1, "sha256": "0"}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(CorpusError, match="not a plain name inside its folder"):
        Corpus.open(folder)


@pytest.mark.parametrize("name", OUT)
def test_vectors_that_name_files_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    values: dict[str, Any] = {key: {} for key in ARTIFACT.metadata_keys}
    values |= {"model": "", "columns": [], "dim": 1, "explained_variance_ratio": []}
    names = ("sentences", "sentences_embedded", "words_read", "unread_words", "vectors")
    values["counts"] = dict.fromkeys(names, 1)
    write_manifest(tmp_path, ARTIFACT, {name: {"bytes": 1, "sha256": "0"}}, **values)
    with pytest.raises(VectorsError, match="not a plain name inside its folder"):
        VectorFolder.open(tmp_path)


@pytest.mark.parametrize(
    "told", [None, {}, {"bytes": "1", "sha256": "0"}, {"bytes": 1, "sha256": 0}, {"bytes": 1}, 3]
)
def test_a_file_without_size_and_hash_is_not_believed(told: Any) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        listed_files({"files": {"x": told}})


ROOT = Path(__file__).parents[1]


def told(folder: Path, wanted: str) -> str:
    with pytest.raises(ModelError) as caught:
        check_holds(folder, wanted, "polyseme make IT", ModelError)
    return str(caught.value)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> TaskCase:
    return make_task(tmp_path_factory.mktemp("kinds"))


def test_what_is_not_there_is_said_with_the_command_that_makes_it(tmp_path: Path) -> None:
    folder = tmp_path / "my corpus"
    assert told(folder, "corpus") == (
        f"There is no folder '{folder}'; a corpus was expected there. "
        f"Make a corpus with: polyseme make IT --out '{folder}'"
    )


def test_an_empty_folder_and_one_of_other_things_are_called_so(tmp_path: Path) -> None:
    assert "holds nothing; a folder of vectors was expected" in told(tmp_path, "vectors")
    (tmp_path / "photo.jpg").touch()
    assert "holds other things (photo.jpg)" in told(tmp_path, "model")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("checkpoints", "a training run that was interrupted"),
        ("seed-1", "a training run that was interrupted"),
        ("receipts", "a run of prepare, embed or index that was interrupted"),
    ],
)
def test_a_stopped_run_is_called_one(tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / name).mkdir()
    assert f"holds {what}" in told(tmp_path, "model")
    assert "the same command resumes it" in told(tmp_path, "model")


def test_a_folder_of_texts_is_what_a_corpus_is_made_from_and_never_where_to(tmp_path: Path) -> None:
    texts = tmp_path / "my novels"
    texts.mkdir()
    (texts / "emma.txt").write_text("Emma Woodhouse.")
    made_by = "polyseme prepare TEXTS --language CODE"
    for named in (texts, texts / "emma.txt"):
        with pytest.raises(CorpusError) as caught:
            check_holds(named, "corpus", made_by, CorpusError)
        assert str(caught.value).endswith(
            f"Make a corpus with: polyseme prepare '{named}' --language CODE --out corpus/NEW"
        )


def test_a_name_that_is_nearly_that_of_a_folder_beside_it_is_answered_with_it(
    case: TaskCase,
) -> None:
    model = case.model
    wrong = model.with_name(model.name + "x")
    assert told(wrong, "model").endswith(f"Did you mean {model}?")
    assert "Did you mean" not in told(wrong, "corpus")
    assert "Did you mean" not in told(model.with_name("quite-different"), "model")


def test_a_folder_of_another_kind_is_followed_by_the_command_that_makes_the_wanted(
    case: TaskCase,
) -> None:
    corpus = case.folder / "made" / "corpus"
    assert told(corpus, "model") == (
        f"{corpus} holds a corpus, not a model. "
        f"Make a model with: polyseme make IT --out models/NEW"
    )
    with pytest.raises(CorpusError) as caught:
        check_holds(case.model, "corpus", "polyseme prepare TEXTS --language CODE", CorpusError)
    assert "order" not in str(caught.value)  # who asks may have named one thing only
    assert str(case.model) not in str(caught.value).partition("with:")[2]


def test_each_kind_is_told_from_the_others(case: TaskCase, tmp_path: Path) -> None:
    corpus = case.folder / "made" / "corpus"
    assert "holds a corpus, not a model" in told(corpus, "model")
    assert "holds a model, not a corpus" in told(case.model, "corpus")
    assert "holds a model, not a task" in told(case.model, "task")
    assert "holds a model, not a folder of vectors" in told(case.model, "vectors")
    check_holds(corpus, "corpus", "", CorpusError)
    check_holds(case.model, "model", "", ModelError)


def test_a_damaged_manifest_is_left_to_whoever_opens_it(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{")
    for wanted in ("corpus", "model", "task", "vectors"):
        check_holds(tmp_path, wanted, "", VectorsError)


def test_an_output_that_is_a_file_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(StorageError, match="is a file; --out names a folder"):
        make_output(tmp_path / "out")
    make_output(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    assert issubclass(StorageError, PolysemeError)
