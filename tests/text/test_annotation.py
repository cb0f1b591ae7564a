"""Lemmas are added where texts have none, and those that were given are kept."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from corpora import prepared

from polyseme.errors import ConfigError
from polyseme.text.corpus import Corpus


def lemmas(corpus: Corpus) -> list[list[str | None]]:
    return [values for path in corpus.shards for values in pq.read_table(path)["lemma"].to_pylist()]


def test_lemmas_are_added_and_can_be_asked_for(tmp_path: Path) -> None:
    import polyseme

    (tmp_path / "a.txt").write_text("Mice were running. The banks closed.", encoding="utf-8")
    corpus = prepared(tmp_path / "a.txt", tmp_path / "c", annotate=("lemma",))
    assert lemmas(corpus) == [["mouse", "be", "run", "."], ["the", "bank", "close", "."]]
    found = polyseme.query(corpus, '[lemma="be"] [lemma="run"] | [lemma="bank"]')
    assert [use.form for use in found] == ["were running", "banks"]


def test_given_lemmas_are_kept(tmp_path: Path) -> None:
    text = "<text id='a'>\n<s>\nwere\tWAR\nran\t_\n</s>\n</text>\n".replace("'", '"')
    (tmp_path / "a.vrt").write_text(text, encoding="utf-8")
    given: dict[str, Any] = {"word_attributes": ("lemma",), "segmenter": "whitespace"}
    corpus = prepared(tmp_path / "a.vrt", tmp_path / "c", annotate=("lemma",), **given)
    assert lemmas(corpus) == [["WAR", None]]


def test_a_language_without_lemmas_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("走。", encoding="utf-8")
    with pytest.raises(ConfigError, match="no lemmas for --language zh"):
        prepared(tmp_path / "a.txt", tmp_path / "c", language="zh", annotate=("lemma",))
