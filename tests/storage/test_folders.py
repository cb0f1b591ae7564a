"""Names that a file tells: plain and inside the folder, in every kind of folder there is."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from executors.jobs import forge_receipt
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reliability.victims import LEADING_OUT
from text.test_corpus import write_corpus

from polyseme.embedding.folder import ARTIFACT, VectorFolder
from polyseme.errors import CorpusError, VectorsError
from polyseme.executors.commit import read_receipt
from polyseme.storage.folders import is_inside, listed_files, write_manifest
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


@pytest.mark.parametrize("name", OUT)
def test_a_receipt_that_names_files_elsewhere_counts_as_missing(tmp_path: Path, name: str) -> None:
    (tmp_path / "receipts").mkdir()
    path = tmp_path / "receipts" / "part-00000.json"
    path.write_text(forge_receipt("part-00000", ["shards/part-00000.parquet"]), encoding="utf-8")
    assert read_receipt(tmp_path, "part-00000") is not None
    path.write_text(forge_receipt("part-00000", [name]), encoding="utf-8")
    assert read_receipt(tmp_path, "part-00000") is None


@pytest.mark.parametrize(
    "told", [None, {}, {"bytes": "1", "sha256": "0"}, {"bytes": 1, "sha256": 0}, {"bytes": 1}, 3]
)
def test_a_file_without_size_and_hash_is_not_believed(told: Any) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        listed_files({"files": {"x": told}})
