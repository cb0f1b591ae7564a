"""Lemmas are added where texts have none, and those that were given are kept."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from corpora import prepared

from polyseme.errors import ConfigError
from polyseme.text.annotation import _CLOSED, _UPOS, JiebaTagger
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


def parts_of_speech(corpus: Corpus) -> list[list[str | None]]:
    return [values for path in corpus.shards for values in pq.read_table(path)["upos"].to_pylist()]


def test_chinese_words_have_the_parts_of_speech_of_jieba(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("他的银行在北京，1998 年成立。", encoding="utf-8")
    corpus = prepared(tmp_path / "a.txt", tmp_path / "c", language="zh", annotate=("upos",))
    [words] = (pq.read_table(path)["words"].to_pylist()[0] for path in corpus.shards)
    [found] = parts_of_speech(corpus)
    tags = dict(zip(words, found, strict=True))
    assert (tags["他"], tags["的"], tags["银行"], tags["在"]) == ("PRON", "PART", "NOUN", "ADP")
    assert (tags["北京"], tags["，"], tags["1998"], tags["年"]) == ("PROPN", "PUNCT", "NUM", "NOUN")


def test_jieba_tags_as_it_does_itself_where_words_are_in_its_dictionary() -> None:
    from jieba import posseg

    text = "市政府宣布，新的图书馆明年春天在河边建成，欢迎所有居民参观。"
    pairs = [(pair.word, pair.flag) for pair in posseg.POSTokenizer().cut(text)]
    words = [word for word, _ in pairs]
    [found] = JiebaTagger().load()([words])
    theirs = [_UPOS.get(flag, "PUNCT") for _, flag in pairs]
    differing = {word for word, a, b in zip(words, found, theirs, strict=True) if a != b}
    assert differing <= _CLOSED.keys()


def test_unknown_chinese_words_and_other_signs_have_a_part_of_speech_too() -> None:
    [found] = JiebaTagger().load()([["普鲁申科", "iPhone", "＋", "㊀", "…", "12.5%", "𠮷"]])
    assert found == ["PROPN", "X", "SYM", "NUM", "PUNCT", "NUM", "X"]


def test_characters_have_no_parts_of_speech(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("走。", encoding="utf-8")
    given: dict[str, Any] = {"segmenter": "characters", "annotate": ("upos",)}
    with pytest.raises(ConfigError, match="Use --segmenter jieba"):
        prepared(tmp_path / "a.txt", tmp_path / "c", language="zh", **given)


def test_a_language_without_a_task_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Er schläft.", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"--language de.*with --upos-task"):
        prepared(tmp_path / "a.txt", tmp_path / "c", language="de", annotate=("upos",))


def test_given_parts_of_speech_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.vrt").write_text('<text id="a">\n<s>\nran\tRAN\n</s>\n</text>\n', "utf-8")
    given: dict[str, Any] = {"word_attributes": ("upos",), "segmenter": "whitespace"}
    corpus = prepared(tmp_path / "a.vrt", tmp_path / "c", annotate=("lemma", "upos"), **given)
    assert parts_of_speech(corpus) == [["RAN"]]
    assert lemmas(corpus) == [["run"]]
