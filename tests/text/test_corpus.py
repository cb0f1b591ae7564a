"""A finished corpus opens; anything else is refused with the reason."""

import json
from pathlib import Path
from typing import Any

import pytest

from polyseme.errors import CorpusError
from polyseme.files import sha256_of
from polyseme.text.corpus import MANIFEST, Corpus
from polyseme.text.prepare import FORMAT_VERSION, describe_preparation
from text.making import account_of, make_config


def write_corpus(folder: Path, **changes: Any) -> Path:
    """The smallest thing that passes for a corpus: two files and a manifest that names them."""
    (folder / "shards").mkdir(parents=True)
    files = {}
    for name in ("shards/part-00000.parquet", "vocabulary.parquet"):
        (folder / name).write_bytes(name.encode())
        files[name] = {"bytes": len(name), "sha256": sha256_of(folder / name)}
    manifest = {
        "preparation": describe_preparation(make_config()),
        "settings": make_config(meta=("date",)).model_dump(mode="json"),
        "inputs": {"a.txt": 20},
        "accounting": account_of([3, 4]),
        "files": files,
        **changes,
    }
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def test_a_finished_corpus_opens(tmp_path: Path) -> None:
    corpus = Corpus.open(write_corpus(tmp_path / "c"))
    assert corpus.accounting["words"] == 7
    assert corpus.config == make_config(meta=("date",))


def test_shards_are_told_from_other_files(tmp_path: Path) -> None:
    corpus = Corpus.open(write_corpus(tmp_path / "c"))
    assert corpus.shards == [tmp_path / "c" / "shards" / "part-00000.parquet"]
    assert corpus.vocabulary == tmp_path / "c" / "vocabulary.parquet"


def test_an_unfinished_corpus_is_told_from_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="a corpus was expected"):
        Corpus.open(tmp_path)
    (tmp_path / "receipts").mkdir()
    with pytest.raises(CorpusError, match="stopped before its end"):
        Corpus.open(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"preparation": 3}', "\ufeff{}"])
def test_a_damaged_manifest_is_refused(tmp_path: Path, text: str) -> None:
    write_corpus(tmp_path / "c")
    (tmp_path / "c" / MANIFEST).write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match="damaged"):
        Corpus.open(tmp_path / "c")


def test_another_format_version_is_refused_with_both_numbers(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "c", preparation={"format": 99})
    with pytest.raises(CorpusError, match=f"99.*{FORMAT_VERSION}"):
        Corpus.open(folder)


def test_intact_files_pass_the_check(tmp_path: Path) -> None:
    assert Corpus.open(write_corpus(tmp_path / "c")).check_files() == []


def test_a_changed_and_a_missing_file_are_named(tmp_path: Path) -> None:
    corpus = Corpus.open(write_corpus(tmp_path / "c"))
    corpus.shards[0].write_bytes(b"shards/part-00000.parquex")
    corpus.vocabulary.unlink()
    assert corpus.check_files() == ["shards/part-00000.parquet", "vocabulary.parquet"]


def test_every_file_checked_is_told(tmp_path: Path) -> None:
    told: list[int] = []
    Corpus.open(write_corpus(tmp_path / "c")).check_files(told.append)
    assert told == [1, 2]
