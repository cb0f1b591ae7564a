"""CoNLL-U: words and sentences as the treebank has them."""

from pathlib import Path

import pytest

from polyseme.text import records as limited
from polyseme.text.formats.marked import LONGEST_SENTENCE
from polyseme.text.records import LONGEST_VALUE, Rejected
from text.making import make_config, num_blank, read_all, reasons, records, texts


def line(number: str, form: str, misc: str = "_") -> str:
    return "\t".join([number, form, *["_"] * 7, misc]) + "\n"


def test_each_sentence_is_a_record_with_its_words(tmp_path: Path) -> None:
    data = line("1", "Dogs") + line("2", "bark") + "\n" + line("1", "Yes") + "\n"
    found = records(read_all(tmp_path, data.encode(), "conllu"))
    assert [record.words for record in found] == [("Dogs", "bark"), ("Yes",)]
    assert [record.starts for record in found] == [(0, 5), (0,)]


def test_the_last_sentence_needs_no_blank_line(tmp_path: Path) -> None:
    assert texts(read_all(tmp_path, line("1", "Yes").encode(), "conllu")) == ["Yes"]


def test_space_after_no_glues_two_words(tmp_path: Path) -> None:
    data = line("1", "Yes", "Gloss=x|SpaceAfter=No") + line("2", ".") + line("3", "So")
    (record,) = records(read_all(tmp_path, data.encode(), "conllu"))
    assert (record.text, record.starts) == ("Yes. So", (0, 3, 5))


def test_a_contraction_is_the_word_that_was_written(tmp_path: Path) -> None:
    data = (
        line("1", "Vamos")
        + line("2-3", "al", "SpaceAfter=No")
        + line("2", "a")
        + line("3", "el")
        + line("4", "!")
    )
    (record,) = records(read_all(tmp_path, data.encode(), "conllu"))
    assert (record.words, record.text) == (("Vamos", "al", "!"), "Vamos al!")


def test_an_empty_node_is_no_word(tmp_path: Path) -> None:
    data = line("1", "Sue") + line("1.1", "likes") + line("2", "tea")
    assert texts(read_all(tmp_path, data.encode(), "conllu")) == ["Sue tea"]


def test_newdoc_begins_a_document(tmp_path: Path) -> None:
    data = f"# newdoc id = a\n{line('1', 'x')}\n{line('1', 'y')}\n# newdoc\n{line('1', 'z')}\n"
    place = data.index("# newdoc\n")
    found = records(read_all(tmp_path, data.encode(), "conllu"))
    assert [r.document for r in found] == ["input#a", "input#a", f"input#{place}"]


def test_comments_are_metadata_to_the_end_of_the_document(tmp_path: Path) -> None:
    word = line("1", "x") + "\n"
    data = f"# newdoc\n# date = 1850\n{word}{word}# newdoc\n{word}"
    found = records(read_all(tmp_path, data.encode(), "conllu", make_config(meta=("date",))))
    assert [r.meta for r in found] == [("1850",), ("1850",), (None,)]


def test_a_file_without_newdoc_is_one_document(tmp_path: Path) -> None:
    data = (line("1", "x") + "\n") * 3
    found = records(read_all(tmp_path, data.encode(), "conllu"))
    assert {r.document for r in found} == {"input@0"}


BAD = [
    "1\tnine\t_\t_\t_\t_\t_\t_\t_\n",
    "no columns\n",
    line("x", "word"),
    line("²", "word"),
    line("1-2-3", "word"),
    line("", "word"),
    line("9" * 5000, "word"),
    line("1", ""),
]


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_line_rejects_its_sentence_and_no_other(tmp_path: Path, bad: str) -> None:
    good = line("1", "x") + "\n"
    items = read_all(tmp_path, (good + line("1", "a") + bad + "\n" + good).encode(), "conllu")
    assert texts(items) == ["x", "x"]
    assert reasons(items) == ["not-conllu"]


def test_the_bad_line_is_quoted_with_its_place(tmp_path: Path) -> None:
    data = line("1", "a") + "no columns\n"
    (item,) = read_all(tmp_path, data.encode(), "conllu")
    assert isinstance(item, Rejected)
    assert (item.quote, item.place) == ("no columns", data.index("no columns"))


def test_a_line_that_cannot_be_decoded_rejects_its_sentence_as_one(tmp_path: Path) -> None:
    good = (line("1", "x") + "\n").encode()
    bad = line("1", "a").encode() + b"\xff\n" + line("3", "b").encode() + b"\n"
    items = read_all(tmp_path, good + bad + good, "conllu")
    assert texts(items) == ["x", "x"]
    assert reasons(items) == ["not-utf-8"]


def test_a_sentence_of_comments_alone_is_blank(tmp_path: Path) -> None:
    items = read_all(tmp_path, b"# only = this\n\n", "conllu")
    assert (num_blank(items), len(items)) == (1, 1)


def test_attributes_are_read_by_their_names(tmp_path: Path) -> None:
    data = "1\tDogs\tdog\tNOUN\t_\tNumber=Plur\t2\tnsubj\t_\t_\n" + line("2-3", "dont")
    data += "2\tdo\tdo\tAUX\t_\t_\t0\troot\t_\t_\n3\tnt\tnot\tPART\t_\t_\t2\tadvmod\t_\t_\n"
    config = make_config(word_attributes=("upos", "lemma", "feats"))
    (record,) = records(read_all(tmp_path, data.encode(), "conllu", config))
    assert record.words == ("Dogs", "dont")
    # A contraction has none of its own.
    assert record.attributes == (("NOUN", None), ("dog", None), ("Number=Plur", None))


def test_a_sentence_with_too_many_words_is_rejected_and_the_next_is_read(tmp_path: Path) -> None:
    data = line("1", "w") * (LONGEST_SENTENCE + 1) + "\n" + line("1", "x")
    items = read_all(tmp_path, data.encode(), "conllu")
    assert (texts(items), reasons(items)) == (["x"], ["sentence-too-long"])
    longest = line("1", "w") * LONGEST_SENTENCE
    (record,) = records(read_all(tmp_path, longest.encode(), "conllu"))
    assert len(record.words or ()) == LONGEST_SENTENCE


def test_a_sentence_with_too_long_words_or_attributes_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited, "LONGEST_LINE", 100)
    data = line("1", "w" * 40) * 3 + "\n" + line("1", "x")
    assert reasons(read_all(tmp_path, data.encode(), "conllu")) == ["sentence-too-long"]
    data = data.replace("w", "").replace("1\t\t_", "1\tx\t" + "l" * 40)
    assert texts(read_all(tmp_path, data.encode(), "conllu")) == ["x x x", "x"]
    config = make_config(word_attributes=("lemma",))
    assert texts(read_all(tmp_path, data.encode(), "conllu", config)) == ["x"]


def test_a_name_or_value_too_long_for_every_sentence_is_rejected(tmp_path: Path) -> None:
    long = "x" * (LONGEST_VALUE + 1)
    for key in ("newdoc id", "date"):
        data = f"# {key} = {long}\n{line('1', 'x')}"
        items = read_all(tmp_path, data.encode(), "conllu", make_config(meta=("date",)))
        assert reasons(items) == ["metadata-too-long"]


@pytest.mark.parametrize("ranges", [("1-2", "2-3"), ("1-3", "2-2"), ("1-2", "1-2"), ("2-1",)])
def test_contractions_that_overlap_spoil_their_sentence(
    tmp_path: Path, ranges: tuple[str, ...]
) -> None:
    data = "".join(line(number, "both") for number in ranges) + line("1", "a") + line("2", "b")
    items = read_all(tmp_path, (data + "\n" + line("1", "x")).encode(), "conllu")
    assert (texts(items), reasons(items)) == (["x"], ["not-conllu"])
