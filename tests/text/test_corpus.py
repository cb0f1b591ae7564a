"""A finished corpus opens; anything else is refused with the reason."""

import json
from pathlib import Path

import pytest

from polyseme.errors import CorpusError
from polyseme.storage.folders import MANIFEST
from polyseme.text.corpus import ARTIFACT, Corpus, words_of
from text.making import finish_corpus, make_config, stats_of


def write_corpus(folder: Path) -> Path:
    """The smallest thing that passes for a corpus: three files and a manifest that names them."""
    (folder / "shards").mkdir(parents=True)
    shard = "shards/part-00000.parquet"
    for name in (shard, "vocabulary.parquet"):
        (folder / name).write_bytes(name.encode())
    finish_corpus(folder, [shard], stats_of([3, 4]), make_config(meta=("date",)))
    return folder


def test_a_finished_corpus_opens_and_its_files_are_checked(tmp_path: Path) -> None:
    corpus = Corpus.open(write_corpus(tmp_path / "c"))
    assert corpus.read_stats["words"] == 7
    assert corpus.config == make_config(meta=("date",))
    assert corpus.shards == [tmp_path / "c" / "shards" / "part-00000.parquet"]
    assert words_of(corpus.shards[0]) == tmp_path / "c" / "words" / "part-00000.npy"
    assert corpus.vocabulary == tmp_path / "c" / "vocabulary.parquet"
    told: list[int] = []
    assert corpus.check_files(told.append) == []
    assert told == [1, 2, 3]
    corpus.shards[0].write_bytes(b"shards/part-00000.parquex")
    corpus.vocabulary.unlink()
    assert corpus.check_files() == ["shards/part-00000.parquet", "vocabulary.parquet"]


def test_an_unfinished_corpus_is_told_from_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="a corpus was expected"):
        Corpus.open(tmp_path)
    (tmp_path / "receipts").mkdir()
    with pytest.raises(CorpusError, match="that was interrupted"):
        Corpus.open(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"preparation": 3}', "\ufeff{}"])
def test_a_damaged_manifest_is_refused(tmp_path: Path, text: str) -> None:
    write_corpus(tmp_path / "c")
    (tmp_path / "c" / MANIFEST).write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match="damaged"):
        Corpus.open(tmp_path / "c")


def test_another_format_version_is_refused_with_both_numbers(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "c")
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    for version, told in ((99, "format 99"), (3, "format 3"), (None, "an older format")):
        other = {**manifest, "format": version}
        (folder / MANIFEST).write_text(json.dumps(other), encoding="utf-8")
        with pytest.raises(CorpusError, match=f"{told}, this version.* {ARTIFACT.version}"):
            Corpus.open(folder)


def test_counts_that_were_changed_are_refused(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "c")
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    manifest["inputs"]["a.txt"] = 21
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(CorpusError, match=r"damaged.*prepare command again"):
        Corpus.open(folder)
