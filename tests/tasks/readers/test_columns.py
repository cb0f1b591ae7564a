"""Words in columns."""

import gzip
from pathlib import Path

import pytest

from polyseme.errors import ConfigError, InputError
from polyseme.tasks.families.tagging import Tagged
from tasks.readers.making import load, reader


def test_sentences_end_at_blank_lines_and_documents_marks_are_passed_over(tmp_path: Path) -> None:
    text = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\n\nPeter NNP I-NP I-PER\n"
    loaded = load(tmp_path, text, reader("columns"))
    assert loaded.examples == [
        Tagged(("EU", "rejects"), ("I-ORG", "O")),
        Tagged(("Peter",), ("I-PER",)),
    ]
    assert (loaded.stats.read, loaded.stats.rejected) == (2, 0)


def test_any_column_can_be_the_label_counted_from_either_end(tmp_path: Path) -> None:
    text = "1\tEU\tNNP\tI-ORG\n"
    assert load(tmp_path, text, reader("columns", word=2, label=3)).examples == [
        Tagged(("EU",), ("NNP",))
    ]
    assert load(tmp_path, text, reader("columns", word=2, label=-2)).examples == [
        Tagged(("EU",), ("NNP",))
    ]


def test_there_is_no_column_zero() -> None:
    with pytest.raises(ConfigError, match="counted from 1"):
        reader("columns", word=0)


def test_a_line_of_nothing_but_a_tab_is_blank(tmp_path: Path) -> None:
    assert len(load(tmp_path, "a\tO\n\t\nb\tO\n", reader("columns")).examples) == 2


def test_a_tabbed_word_may_hold_spaces(tmp_path: Path) -> None:
    assert load(tmp_path, "New York\tO\n", reader("columns")).examples[0] == Tagged(
        ("New York",), ("O",)
    )


def test_chinese_characters_one_a_line_even_a_full_width_space(tmp_path: Path) -> None:
    text = "吴 B-NAME\n重 M-NAME\n阳 E-NAME\n\u3000 O\r\n"
    assert load(tmp_path, text, reader("columns")).examples == [
        Tagged(("吴", "重", "阳", "\u3000"), ("B-NAME", "M-NAME", "E-NAME", "O"))
    ]


def test_numbers_of_places_are_taken_off_but_not_the_digits_of_the_text(tmp_path: Path) -> None:
    text = "口0\tO\n腔1\tO\n20\tO\n011\tO\n\ufffd\ufffd0\tO\n"
    loaded = load(tmp_path, text, reader("columns", numbered=True))
    assert loaded.examples == [Tagged(("口", "腔", "2", "0", "\ufffd\ufffd"), ("O",) * 5)]


def test_comments_before_a_sentence_are_no_words_but_the_sign_itself_is(tmp_path: Path) -> None:
    text = "# id = 1\n# text = a b\n# O\nb O\n\n# id 2\n#tag O\n# O\n"
    assert load(tmp_path, text, reader("columns")).examples == [
        Tagged(("#", "b"), ("O", "O")),
        Tagged(("#tag", "#"), ("O", "O")),
    ]


def test_a_bad_line_spoils_its_sentence_alone_and_is_named(tmp_path: Path) -> None:
    text = "a O\nb O\n\nc O\nd O O\n\ne O\nf\n\ng O\n"
    loaded = load(tmp_path, text, reader("columns"))
    assert [example.words for example in loaded.examples if isinstance(example, Tagged)] == [
        ("a", "b"),
        ("g",),
    ]
    assert loaded.stats.read == 4
    assert loaded.stats.kept == 2
    assert loaded.stats.reasons == {"wrong-number-of-columns": 2}
    assert "line 5" in loaded.stats.faults[0]
    assert "line 8" in loaded.stats.faults[1]


def test_bytes_that_are_no_text_spoil_one_sentence(tmp_path: Path) -> None:
    loaded = load(tmp_path, b"a O\n\nb\xff O\nc O\n\nd O\n", reader("columns"))
    assert len(loaded.examples) == 2
    assert loaded.stats.reasons == {"not-utf-8": 1}
    assert "line 3" in loaded.stats.faults[0]


def test_other_encodings_and_compressed_files_are_read(tmp_path: Path) -> None:
    data = gzip.compress("吴 O\n".encode("gb18030"))
    loaded = load(tmp_path, data, reader("columns", encoding="gb18030"), "file.txt.gz")
    assert loaded.examples == [Tagged(("吴",), ("O",))]


def test_an_encoding_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such encoding"):
        load(tmp_path, "a O\n", reader("columns", encoding="klingon"))


def test_a_file_without_examples_is_an_error_that_says_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 1: no-word-or-label: 'running'"):
        load(tmp_path, "running\ntext\n", reader("columns"))
    with pytest.raises(InputError, match="0 examples"):
        load(tmp_path, "", reader("columns"))


def test_a_file_without_any_blank_line_is_not_taken_for_one_sentence(tmp_path: Path) -> None:
    loaded = load(tmp_path, "a O\n\n" + "b O\n" * 10_001, reader("columns"))
    assert len(loaded.examples) == 1
    assert loaded.stats.reasons == {"too-long": 1}


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    from polyseme.tasks.readers import load_examples

    with pytest.raises(InputError, match="absent"):
        load_examples(tmp_path / "absent", reader("columns"))
