"""Words in columns.

Treebanks.

Predicates and their arguments.

Coreference in columns: mentions in brackets.
"""

import gzip
from pathlib import Path
from typing import Any

import pytest

from polyseme.errors import ConfigError, InputError
from polyseme.tasks.families.coreference import LONGEST_DOCUMENT, Document
from polyseme.tasks.families.tagging import Tagged
from tasks.readers.making import load, reader


def tagged(*pairs: str) -> list[Tagged]:
    """Sentences of word/label pairs."""
    split = [[pair.rpartition("/")[::2] for pair in sentence.split(" ")] for sentence in pairs]
    return [Tagged(tuple(w for w, _ in s), tuple(t for _, t in s)) for s in split]


@pytest.mark.parametrize(
    ("settings", "text", "expected"),
    [
        ({}, "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\n\nPeter NNP I I-PER\n",
         tagged("EU/I-ORG rejects/O", "Peter/I-PER")),
        ({"word": 2, "label": 3}, "1\tEU\tNNP\tI-ORG\n", tagged("EU/NNP")),
        ({"word": 2, "label": -2}, "1\tEU\tNNP\tI-ORG\n", tagged("EU/NNP")),
        ({}, "a\tO\n\t\nb\tO\n", tagged("a/O", "b/O")),
        ({}, "New York\tO\n", [Tagged(("New York",), ("O",))]),
        ({}, "吴 B-NAME\n重 M-NAME\n阳 E-NAME\n\u3000 O\r\n",
         tagged("吴/B-NAME 重/M-NAME 阳/E-NAME \u3000/O")),
        # Numbers of places are taken off, but not the digits of the text.
        ({"numbered": True}, "口0\tO\n腔1\tO\n20\tO\n011\tO\n\ufffd\ufffd0\tO\n",
         tagged("口/O 腔/O 2/O 0/O \ufffd\ufffd/O")),
        # Comments before a sentence are no words, but the sign itself is.
        ({}, "# id = 1\n# text = a b\n# O\nb O\n\n# id 2\n#tag O\n# O\n",
         tagged("#/O b/O", "#tag/O #/O")),
    ],
)  # fmt: skip
def test_sentences_are_read_as_they_are_meant(
    tmp_path: Path, settings: dict[str, Any], text: str, expected: list[Tagged]
) -> None:
    loaded = load(tmp_path, text, reader("columns", **settings))
    assert loaded.examples == expected
    assert (loaded.stats.read, loaded.stats.rejected) == (len(expected), 0)


@pytest.mark.parametrize(
    ("text", "kept", "reasons", "lines"),
    [
        (b"a O\nb O\n\nc O\nd O O\n\ne O\nf\n\ng O\n", 2, {"wrong-number-of-columns": 2}, [5, 8]),
        (b"a O\n\nb\xff O\nc O\n\nd O\n", 2, {"not-utf-8": 1}, [3]),
    ],
)
def test_a_bad_line_spoils_its_sentence_alone_and_is_named(
    tmp_path: Path, text: bytes, kept: int, reasons: dict[str, int], lines: list[int]
) -> None:
    loaded = load(tmp_path, text, reader("columns"))
    assert (len(loaded.examples), loaded.stats.kept, loaded.stats.reasons) == (kept, kept, reasons)
    for line, fault in zip(lines, loaded.stats.faults, strict=True):
        assert f"line {line}" in fault


def test_encodings_and_columns_that_there_are_not_are_refused(tmp_path: Path) -> None:
    data = gzip.compress("吴 O\n".encode("gb18030"))
    loaded = load(tmp_path, data, reader("columns", encoding="gb18030"), "file.txt.gz")
    assert loaded.examples == tagged("吴/O")
    with pytest.raises(ConfigError, match="no such encoding"):
        load(tmp_path, "a O\n", reader("columns", encoding="klingon"))
    with pytest.raises(ConfigError, match="counted from 1"):
        reader("columns", word=0)


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


def row(number: str, word: str, upos: str, xpos: str = "_", feats: str = "_") -> str:
    return f"{number}\t{word}\t{word.lower()}\t{upos}\t{xpos}\t{feats}\t0\troot\t_\t_"


TEXT = "\n".join(
    [
        "# newdoc id = 1",
        "# text = I don't",
        row("1", "I", "PRON", "PRP", "Case=Nom|Number=Sing"),
        row("2-3", "don't", "_"),
        row("2", "do", "AUX", "VBP", "Mood=Ind"),
        row("3", "n't", "PART", "RB"),
        row("3.1", "know", "VERB", "VB"),
        row("4", "it", "PRON", "PRP", "Number=Sing"),
        "",
        row("1", "#", "SYM", "#"),
        "",
    ]
)


def test_contractions_are_their_parts_or_one_word_with_the_labels_of_them(tmp_path: Path) -> None:
    first = tagged("I/PRON do/AUX n't/PART it/PRON")
    assert load(tmp_path, TEXT, reader("conllu")).examples == [*first, *tagged("#/SYM")]
    joined = load(tmp_path, TEXT, reader("conllu", contractions="joined"))
    assert joined.examples[:1] == tagged("I/PRON don't/AUX+PART it/PRON")


@pytest.mark.parametrize(
    ("line", "place"), [(row("1", "a", "X") + "\n2\tb\tX", 2), (row("1-2", "du", "_"), 1)]
)
def test_what_is_not_conllu_spoils_its_sentence_alone(
    tmp_path: Path, line: str, place: int
) -> None:
    text = f"{line}\n\n{row('1', 'c', 'X')}\n"
    loaded = load(tmp_path, text, reader("conllu", contractions="joined"))
    assert (loaded.examples, loaded.stats.reasons) == (tagged("c/X"), {"not-conllu": 1})
    assert f"line {place}" in loaded.stats.faults[0]


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("xpos", ("PRP", "VBP", "RB", "PRP")),
        ("Number", ("Sing", "_", "_", "Sing")),
        ("Case", ("Nom", "_", "_", "_")),
        ("lemma", ("i", "do", "n't", "it")),
        ("feats", ("Case=Nom|Number=Sing", "Mood=Ind", "_", "Number=Sing")),
    ],
)
def test_any_column_or_feature_can_be_the_label(
    tmp_path: Path, label: str, expected: tuple[str, ...]
) -> None:
    example = load(tmp_path, TEXT, reader("conllu", label=label)).examples[0]
    assert isinstance(example, Tagged)
    assert example.labels == expected


TEXT_PROPBANK = """# sent_id = 1
0\tBush\tNNP\t-\t-\t(ARG0*)\t*
1\tnominated\tVBD\tnominate\tnominate.01\t(V*)\t*
2\ttwo\tCD\t-\t-\t(ARG1*\t(ARG0*
3\tmen\tNNS\t-\t-\t*)\t*)
4\tto\tTO\t-\t-\t(ARG2*\t*
5\treplace\tVB\treplace\treplace.01\t*\t(V*)
6\tjudges\tNNS\t-\t-\t*)\t(ARG1*)

# sent_id = 2
0\tHello\tUH\t-\t-

"""
WORDS = ("Bush", "nominated", "two", "men", "to", "replace", "judges")


def test_each_predicate_is_an_example_of_its_own(tmp_path: Path) -> None:
    loaded = load(tmp_path, TEXT_PROPBANK, reader("propbank"))
    assert loaded.examples == [
        Tagged(
            WORDS,
            ("B-ARG0", "B-V", "B-ARG1", "I-ARG1", "B-ARG2", "I-ARG2", "I-ARG2"),
            target_index=1,
        ),
        Tagged(WORDS, ("O", "O", "B-ARG0", "I-ARG0", "O", "B-V", "B-ARG1"), target_index=5),
    ]
    stats = loaded.stats
    assert (stats.read, stats.kept, stats.examples) == (2, 1, 2)
    assert stats.reasons == {"no-predicate": 1}


def test_other_layouts_are_a_matter_of_numbers(tmp_path: Path) -> None:
    text = "She - (A0*)\nruns run.01 (V*)\n"
    config = reader("propbank", word=1, predicate=2, arguments=3)
    assert load(tmp_path, text, config).examples == [
        Tagged(("She", "runs"), ("B-A0", "B-V"), target_index=1)
    ]


@pytest.mark.parametrize(
    ("brackets", "place"),
    [
        (["(A0*", "*", "*"], 3),  # never closed
        (["*", "*)", "*"], 2),  # never opened
        (["(A0*", "(A1*)", "*)"], 2),  # one in the other
        (["(A0(A1*)", "*", "*"], 1),
        (["(*)", "*", "*"], 1),  # no name
        (["A0*)", "*", "*"], 1),
        (["(A0*))", "*", "*"], 1),
        (["*", "-", "*"], 2),  # no star
    ],
)
def test_brackets_that_do_not_match_spoil_the_sentence_and_are_named(
    tmp_path: Path, brackets: list[str], place: int
) -> None:
    rows = [f"{i}\tw\tX\t-\t{'r.01' if i == 0 else '-'}\t{b}" for i, b in enumerate(brackets)]
    good = "0\tgo\tVB\tgo\tgo.01\t(V*)\n"
    loaded = load(tmp_path, "\n".join(rows) + "\n\n" + good, reader("propbank"))
    assert loaded.examples == [Tagged(("go",), ("B-V",), target_index=0)]
    assert loaded.stats.reasons == {"brackets-do-not-match": 1}
    assert f"line {place}:" in loaded.stats.faults[0]


def test_as_many_columns_as_predicates_or_the_sentence_is_rejected(tmp_path: Path) -> None:
    good = "0\tgo\tVB\tgo\tgo.01\t(V*)\n\n"
    loaded = load(tmp_path, good + "0\tgo\tVB\tgo\tgo.01\t(V*)\t*\n", reader("propbank"))
    assert loaded.stats.reasons == {"wrong-number-of-columns": 1}
    assert "line 3" in loaded.stats.faults[0]


CONFIG = reader("coreference")


def document(name: str, *sentences: str) -> str:
    """`word bracket` pairs, a sentence a string."""
    lines = [f"#begin document ({name}); part 0"]
    for words in sentences:
        for place, pair in enumerate(words.split()):
            word, _, bracket = pair.partition("/")
            lines.append(f"{name}\t0\t{place}\t{word}\t_\t{bracket}")
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


def test_mentions_are_counted_over_the_document(tmp_path: Path) -> None:
    text = document("emma", "My/(3 dear Mr./(1 Bennet/1)|3) said/ he/(1)", "She/(2) left/")
    [found] = load(tmp_path, text, CONFIG).examples
    assert found == Document(
        (("My", "dear", "Mr.", "Bennet", "said", "he"), ("She", "left")),
        (((0, 4),), ((2, 4), (5, 6)), ((6, 7),)),
    )


@pytest.mark.parametrize(
    ("text", "clusters"),
    [
        # A mention may lie within another of its own cluster.
        (document("x", "a/(1|(1 b/1) c/1)"), (((0, 2), (0, 3)),)),
        ("x\t0\t0\tShe\t(1)\n\nx\t0\t0\tshe\t(1)\n", (((0, 1), (1, 2)),)),  # no marks: one document
    ],
)
def test_mentions_of_one_cluster_go_together(tmp_path: Path, text: str, clusters: Any) -> None:
    [found] = load(tmp_path, text, CONFIG).examples
    assert isinstance(found, Document)
    assert found.clusters == clusters


def test_documents_in_one_file_are_told_apart_and_a_genre_is_read(tmp_path: Path) -> None:
    text = document("bc/cctv/00", "a/(1)") + document("nw/xinhua/01", "b/(1) c/")
    loaded = load(tmp_path, text, CONFIG)
    assert [example.sentences for example in loaded.examples] == [(("a",),), (("b", "c"),)]
    assert [getattr(example, "genre", None) for example in loaded.examples] == ["bc", "nw"]
    spaced = text.replace("\t_\t", " - ").replace("\t", " ").replace(" - \n", " - -\n")
    assert load(tmp_path, spaced, CONFIG).examples == loaded.examples


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("a/(1 b/", "brackets-do-not-match"),
        ("a/1)", "brackets-do-not-match"),
        ("a/1", "brackets-do-not-match"),
        ("a/((1)", "brackets-do-not-match"),
        ("a/(1)|(2)", "mention-in-two-clusters"),
    ],
)
def test_a_faulty_document_is_rejected_whole_and_the_next_is_kept(
    tmp_path: Path, sentence: str, reason: str
) -> None:
    text = document("bad", "fine/", sentence, "fine/") + document("good", "a/(1)")
    loaded = load(tmp_path, text, CONFIG)
    assert [example.sentences for example in loaded.examples] == [(("a",),)]
    assert loaded.stats.reasons == {reason: 1}
    assert "line 4" in loaded.stats.faults[0]


def test_what_is_too_long_to_be_read_at_once_is_told(tmp_path: Path) -> None:
    sentence = " ".join(["word/"] * 1024)
    text = document("long", *[sentence] * (LONGEST_DOCUMENT // 1024), "more/")
    with pytest.raises(InputError, match="1 too-long"):
        load(tmp_path, text, CONFIG)
