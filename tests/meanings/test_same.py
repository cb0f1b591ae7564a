"""Judged pairs: read from every form, learned from as a known program would."""

import json
from pathlib import Path

import numpy as np
import pytest

import polyseme
from meanings.test_named_groups import MODEL, MONEY, PEOPLE, RIVERS
from polyseme.errors import InputError
from polyseme.meanings.concordance.marked_use import read_marked
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.features.use_features import Floats
from polyseme.meanings.same import JudgedPair, compare_uses, learn_same, read_pairs


def bank_pairs() -> list[JudgedPair]:
    """Two rivers, two banks of money, or one of each."""

    def use(templates: tuple[str, ...], number: int) -> str:
        template = templates[number % 6].format("*bank*")
        return f"{PEOPLE[number % 7]} {template}"

    found = []
    for number in range(20):
        kind = (RIVERS, MONEY)[number % 2]
        found.append(JudgedPair(use(kind, number), use(kind, number * 3 + 1), "", is_same=True))
        found.append(JudgedPair(use(RIVERS, number), use(MONEY, number + 2), "", is_same=False))
    return found


@pytest.fixture(scope="module")
def encoder() -> ModelUseEncoder:
    return ModelUseEncoder(polyseme.load(MODEL, threads=1))


def test_rivers_and_money_are_told_apart_after_judged_pairs(encoder: ModelUseEncoder) -> None:
    classifier, left_out = learn_same(encoder, bank_pairs())
    assert left_out == 0
    assert classifier.num_pairs == 40
    assert classifier.majority == 0.5
    assert classifier.accuracy >= 0.75  # always one answer: 0.5
    read = [
        read_marked(encoder.embedder, text)
        for text in (
            "The children played on the *bank* of the river .",
            "They walked down to the *bank* of the lake .",
            "She took the money to the *bank* in Paris .",
        )
    ]
    pairs = [(read[0], read[1]), (read[0], read[2])]
    alike, other = compare_uses(encoder, pairs, classifier)
    assert alike.is_same
    assert not other.is_same
    assert alike.similarity > other.similarity
    [bare] = compare_uses(encoder, pairs[:1])
    assert bare.probability is None
    assert bare.is_same is None
    assert bare.to_json()["pairs"] == 0


def test_contexts_are_compared_without_syntax(encoder: ModelUseEncoder) -> None:
    texts = "She sold a *bank* .", "They went to the *bank* of England ."
    first, second = (read_marked(encoder.embedder, text) for text in texts)
    [found] = compare_uses(encoder, [(first, second)])
    spans = np.array([(use.begin, use.end) for use in (first, second)])
    whole = encoder([first.words, second.words], spans)

    def cosine(contexts: Floats) -> float:
        one, two = contexts
        return float(one @ two / np.linalg.norm(one) / np.linalg.norm(two))

    assert found.views["context"] == pytest.approx(
        cosine(encoder.without_syntax(whole).context), abs=1e-4
    )
    assert abs(found.views["context"] - cosine(whole.context)) > 0.01


def test_pairs_that_do_not_say_what_is_meant_are_left_out_and_too_few_refused(
    encoder: ModelUseEncoder,
) -> None:
    pairs = bank_pairs()
    _, left_out = learn_same(encoder, [*pairs, JudgedPair("No mark .", "None .", "", True)])
    assert left_out == 1
    with pytest.raises(InputError, match="At least 20"):
        learn_same(encoder, pairs[:10])
    with pytest.raises(InputError, match="5 or more of each"):
        learn_same(encoder, pairs[::2] * 2)


EXPECTED = [
    JudgedPair("The *bank* is wet .", "A *bank* of money .", "bank", is_same=False),
    JudgedPair("He *ran* home .", "She ran .", "ran", is_same=True),
]


def test_pairs_are_read_from_lines_of_json_and_from_tables(tmp_path: Path) -> None:
    lines = [
        {"word": "bank", "sentence1": "The bank is wet .", "sentence2": "A bank of money .",
         "start1": 4, "end1": 8, "start2": 2, "end2": 6, "label": False},
        {"word": "ran", "sentence1": "He *ran* home .", "sentence2": "She ran .", "label": "T"},
        {"sentence1": "No label", "sentence2": "x"},
        {"word": "x", "sentence1": "x", "sentence2": "y", "label": "perhaps"},
        {"sentence1": "abc", "sentence2": "abc", "start1": 2, "end1": 9, "label": True},
        [1, 2],
    ]  # fmt: skip
    text = "\n".join(map(json.dumps, lines)) + "\n{broken\n"
    (tmp_path / "p.jsonl").write_text(text, encoding="utf-8")
    assert read_pairs(tmp_path / "p.jsonl") == (EXPECTED, 5)
    rows = [
        "word\tsentence1\tsentence2\tlabel",
        "ran\tHe *ran* home .\tShe ran .\t1",
        'x\t"A *b\tc *d*\tF',
    ]
    (tmp_path / "p.tsv").write_text("\n".join(rows), encoding="utf-8")
    found, left_out = read_pairs(tmp_path / "p.tsv")
    assert (found[0], left_out) == (EXPECTED[1], 0)
    assert found[1].first == '"A *b'
    (tmp_path / "p.csv").write_text('label,sentence1,sentence2\nsame,"a, *b*",*c*\n', "utf-8")
    assert read_pairs(tmp_path / "p.csv")[0] == [JudgedPair("a, *b*", "*c*", "", is_same=True)]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"{}", b"a,b\n1,2\n"])
def test_a_file_without_pairs_is_refused_in_words(tmp_path: Path, content: bytes) -> None:
    for name in ("p.jsonl", "p.csv"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=r"p\."):
            read_pairs(tmp_path / name)
    with pytest.raises(InputError, match="cannot be read"):
        read_pairs(tmp_path / "none.jsonl")
