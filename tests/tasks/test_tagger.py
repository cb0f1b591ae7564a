"""`prepare --annotate upos`: a task tags the words of a corpus, wherever its shards are made."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from command_line import polyseme

from polyseme.commands.prepare import PrepareConfig, PrepareResult, run
from polyseme.config import build
from polyseme.errors import ConfigError, ExecutorError, ModelError, PolysemeError
from polyseme.storage import installed
from polyseme.storage.files import sha256_of
from polyseme.storage.folders import MANIFEST
from polyseme.tasks.families.tagging import Tagged, TaggingConfig
from polyseme.tasks.prediction import TaskTagger
from polyseme.tasks.task import Task
from polyseme.text.corpus import Corpus
from tasks.making import config_of, save_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model("elmo", tmp_path_factory.mktemp("models") / "elmo")


def saved_task(
    model: Path, folder: Path, labels: Sequence[str] = "ABCD", scheme: str = "none"
) -> Path:
    """A task that has learned nothing yet."""
    torch.manual_seed(1)
    config = config_of("names, frozen", {"elmo": model}, folder / "cache")
    network = build(TaggingConfig, {**config.network.model_dump(), "scheme": scheme})
    config = config.model_copy(update={"network": network})
    words = tuple(f"w{label}" for label in labels)
    Task.new(config, [Tagged(words, tuple(labels))], words).save(folder)
    return folder


def prepare(texts: Path, out: Path, *, workers: int = 1, **told: Any) -> PrepareResult:
    corpus = {
        "language": "en",
        "segmenter": "whitespace",
        "layout": "lines",
        "annotate": ["upos"],
        "shard_bytes": 1 << 12,
    }
    values = {
        "inputs": [str(texts)],
        "out": out,
        "corpus": corpus | told.pop("corpus", {}),
        "executor": {"workers": workers},
    }
    return run(build(PrepareConfig, values | told))


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A few shards."""
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(3):
        lines = (f"the bank {number} of river {n} closes\n" * (n % 3 + 1) for n in range(60))
        (folder / f"{number}.txt").write_text("".join(lines), encoding="utf-8")
    return folder


def test_a_task_tags_the_same_with_one_worker_or_two(
    texts: Path, model: Path, tmp_path: Path
) -> None:
    task = saved_task(model, tmp_path / "task")
    one = prepare(texts, tmp_path / "one", upos_task=task)
    prepare(texts, tmp_path / "two", upos_task=task, workers=2)
    assert len(one.corpus.shards) > 1
    assert sha256_of(tmp_path / "one" / MANIFEST) == sha256_of(tmp_path / "two" / MANIFEST)
    table = pq.read_table(one.corpus.shards[0])
    words, found = table["words"].to_pylist(), table["upos"].to_pylist()
    assert [len(each) for each in found] == [len(each) for each in words]
    expected = Task.load(task).label(Tagged(tuple(each), ("",) * len(each)) for each in words)
    assert [each.as_json()["labels"] for each in expected] == found


def test_shards_are_made_again_by_another_task_only(
    texts: Path, model: Path, tmp_path: Path
) -> None:
    first = saved_task(model, tmp_path / "first")
    prepare(texts, tmp_path / "c", upos_task=first)
    found = prepare(texts, tmp_path / "c", upos_task=first)
    assert found.shards_found == len(found.corpus.shards)
    other = saved_task(model, tmp_path / "other", labels="ABCDE")
    assert prepare(texts, tmp_path / "c", upos_task=other).shards_found == 0


def test_a_corpus_says_which_task_tagged_it(texts: Path, model: Path, tmp_path: Path) -> None:
    """By its name and hash, and not by the folders it lay in: those are of one machine."""
    task = saved_task(model, tmp_path / "mine")
    prepare(texts, tmp_path / "c", upos_task=task)
    own = {"name": "mine", "sha256": TaskTagger.open(task).task_hash}
    assert Corpus.open(tmp_path / "c").annotators == {"upos": own}
    shown = polyseme("inspect", tmp_path / "c")
    assert f"mine {own['sha256'][:12]}" in " ".join(shown.stdout.split())
    told = json.loads(polyseme("inspect", tmp_path / "c", "--json").stdout)
    assert told["annotators"] == {"upos": own}


def test_a_task_that_was_changed_since_is_refused(model: Path, tmp_path: Path) -> None:
    tagger = TaskTagger.open(saved_task(model, tmp_path / "task"))
    with pytest.raises(ExecutorError, match="another task"):
        TaskTagger(tagger.task, "0" * 64, tagger.name).load()


def test_a_task_that_tags_no_words_is_refused(texts: Path, model: Path, tmp_path: Path) -> None:
    task = saved_task(model, tmp_path / "names", labels=("B-A", "O"), scheme="bio")
    with pytest.raises(ConfigError, match='scheme = "none"'):
        prepare(texts, tmp_path / "c", upos_task=task)


def test_a_task_that_nobody_asked_for_is_refused(texts: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is for --annotate upos"):
        prepare(texts, tmp_path / "c", upos_task=tmp_path, corpus={"annotate": ["lemma"]})


def test_what_is_not_installed_is_told_with_the_command_that_brings_it(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "locate", lambda _: None)
    with pytest.raises(ModelError, match=r"pip install \S*packages/en-upos"):
        prepare(texts, tmp_path / "c")
    with pytest.raises(PolysemeError, match=r"pip install \S*packages/en-upos"):
        Task.load("en-upos")


def test_english_words_have_the_part_of_speech_they_have_in_their_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("I left my left glove on the bank .", encoding="utf-8")
    found = prepare(tmp_path / "a.txt", tmp_path / "c", corpus={"held_out": 0})
    [tags] = pq.read_table(found.corpus.shards[0])["upos"].to_pylist()
    assert tags == ["PRON", "VERB", "PRON", "ADJ", "NOUN", "ADP", "DET", "NOUN", "PUNCT"]
