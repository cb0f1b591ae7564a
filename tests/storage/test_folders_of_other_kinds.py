"""A folder of another kind than the one wanted is named as what it is, with the next command."""

from pathlib import Path

import pytest
from tasks.cases import TaskCase, make_task

from polyseme.errors import CorpusError, ModelError, PolysemeError, StorageError, VectorsError
from polyseme.storage.files import make_output
from polyseme.storage.folders import check_holds

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
    for given in (texts, texts / "emma.txt"):
        with pytest.raises(CorpusError) as caught:
            check_holds(given, "corpus", made_by, CorpusError)
        assert str(caught.value).endswith(
            f"Make a corpus with: polyseme prepare '{given}' --language CODE --out corpus/NEW"
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
