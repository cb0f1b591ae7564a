"""Treebanks."""

from pathlib import Path

import pytest

from polyseme.tasks.families.tagging import Tagged
from tasks.readers.making import load, reader


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


def test_parts_of_contractions_are_words_and_unwritten_nodes_are_not(tmp_path: Path) -> None:
    assert load(tmp_path, TEXT, reader("conllu")).examples == [
        Tagged(("I", "do", "n't", "it"), ("PRON", "AUX", "PART", "PRON")),
        Tagged(("#",), ("SYM",)),
    ]


def test_contractions_joined_carry_the_labels_of_their_parts(tmp_path: Path) -> None:
    config = reader("conllu", contractions="joined")
    assert load(tmp_path, TEXT, config).examples[0] == Tagged(
        ("I", "don't", "it"), ("PRON", "AUX+PART", "PRON")
    )


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


def test_a_line_that_is_not_conllu_spoils_its_sentence_alone(tmp_path: Path) -> None:
    text = row("1", "a", "X") + "\n" + "2\tb\tX\n\n" + row("1", "c", "X") + "\n"
    loaded = load(tmp_path, text, reader("conllu"))
    assert loaded.examples == [Tagged(("c",), ("X",))]
    assert loaded.stats.reasons == {"not-conllu": 1}
    assert "line 2" in loaded.stats.faults[0]


def test_a_contraction_without_parts_is_no_sentence(tmp_path: Path) -> None:
    text = row("1-2", "du", "_") + "\n\n" + row("1", "c", "X") + "\n"
    loaded = load(tmp_path, text, reader("conllu", contractions="joined"))
    assert loaded.stats.reasons == {"not-conllu": 1}
