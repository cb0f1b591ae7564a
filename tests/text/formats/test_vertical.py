"""Vertical text: a word a line, structure as tags."""

from pathlib import Path

import pytest

from polyseme.text import records as limited
from polyseme.text.formats import marked
from text.making import make_config, read_all, reasons, records, texts


def test_a_sentence_is_what_stands_between_its_tags(tmp_path: Path) -> None:
    data = b"<s>\nDogs\tNNS\tdog\nbark\tVVP\tbark\n</s>\n<s>\nYes\n</s>\n"
    found = records(read_all(tmp_path, data, "vertical"))
    assert [record.words for record in found] == [("Dogs", "bark"), ("Yes",)]


def test_a_glue_tag_leaves_out_one_space(tmp_path: Path) -> None:
    data = b"<s>\nYes\n<g/>\n,\nshe\n<g />\n.\n</s>\n"
    (record,) = records(read_all(tmp_path, data, "vertical"))
    assert (record.text, record.starts) == ("Yes, she.", (0, 3, 5, 8))


def test_glue_does_not_reach_over_a_sentence_end(tmp_path: Path) -> None:
    data = b"<s>\na\n<g/>\n</s>\n<s>\nb\nc\n</s>\n"
    assert texts(read_all(tmp_path, data, "vertical")) == ["a", "b c"]


@pytest.mark.parametrize("tag", ["text", "doc"])
def test_attributes_of_the_text_are_its_metadata(tmp_path: Path, tag: str) -> None:
    data = f'<{tag} id="t1" date="1850" title="A &amp; B > C">\n<s>\nx\n</s>\n</{tag}>\n'
    config = make_config(meta=("date", "title", "none"))
    (record,) = records(read_all(tmp_path, data.encode(), "vertical", config))
    assert record.document == "input#t1"
    assert record.meta == ("1850", "A & B > C", None)


def test_metadata_do_not_reach_into_the_next_text(tmp_path: Path) -> None:
    data = b'<text date="1850">\nx\n</text>\n<text>\ny\n</text>\n'
    found = records(read_all(tmp_path, data, "vertical", make_config(meta=("date",))))
    assert [record.meta for record in found] == [("1850",), (None,)]


def test_a_text_without_a_name_is_named_by_its_place(tmp_path: Path) -> None:
    data = b"<text>\nx\n</text>\n<text>\ny\n</text>\n"
    found = records(read_all(tmp_path, data, "vertical"))
    assert [r.document for r in found] == ["input#0", f"input#{data.index(b'<text>', 1)}"]


def test_entities_in_words_are_resolved(tmp_path: Path) -> None:
    assert texts(read_all(tmp_path, b"<s>\n&lt;\n&amp;\n</s>\n", "vertical")) == ["< &"]


def test_a_word_that_only_looks_like_a_tag_is_a_word(tmp_path: Path) -> None:
    data = b"<s>\n<\n<3\n<s\na<b>\n</s>\n"
    (record,) = records(read_all(tmp_path, data, "vertical"))
    assert record.words == ("<", "<3", "<s", "a<b>")


def test_other_tags_part_nothing(tmp_path: Path) -> None:
    assert texts(read_all(tmp_path, b"<s>\na\n<hi>\nb\n</hi>\nc\n</s>\n", "vertical")) == ["a b c"]


def test_without_closing_tags_the_opening_ones_part_sentences(tmp_path: Path) -> None:
    data = b"<text>\n<s>\na\n<s>\nb\n<text>\n<s>\nc\n"
    assert texts(read_all(tmp_path, data, "vertical")) == ["a", "b", "c"]


def test_a_text_without_sentences_is_cut_in_bounded_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marked, "LONGEST_SENTENCE", 10)
    found = records(read_all(tmp_path, b"w\n" * 25, "vertical"))
    assert [len(record.words or ()) for record in found] == [10, 10, 5]


def test_a_run_of_words_that_is_too_long_is_rejected_and_the_next_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited, "LONGEST_LINE", 100)
    data = b"<s>\n" + b"0123456789\n" * 50 + b"</s>\n<s>\nb\n</s>\n"
    items = read_all(tmp_path, data, "vertical")
    assert (texts(items), reasons(items)) == (["b"], ["sentence-too-long"])


def test_a_line_that_cannot_be_decoded_is_rejected(tmp_path: Path) -> None:
    items = read_all(tmp_path, b"<s>\na\n\xff\nb\n</s>\n", "vertical")
    assert texts(items) == ["a b"]
    assert reasons(items) == ["not-utf-8"]


def test_columns_after_the_word_are_its_attributes_in_their_order(tmp_path: Path) -> None:
    lines = [b"Dogs\tNNS\tdog\tx", b"R&amp;D\tNN\tr&amp;d&#9;e", b"bark", b"\tNN\tno word"]
    data = b"<s>\n" + b"\n".join(lines) + b"\nYes\t_\tyes\n</s>\n"
    config = make_config(word_attributes=("tag", "lemma"))
    (record,) = records(read_all(tmp_path, data, "vertical", config))
    assert record.words == ("Dogs", "R&D", "bark", "Yes")
    assert record.attributes == (("NNS", "NN", None, None), ("dog", "r&d e", None, "yes"))
