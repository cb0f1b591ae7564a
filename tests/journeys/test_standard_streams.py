"""Texts through standard input, JSON lines on standard output: commands in a pipe."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from command_line import polyseme
from tasks.cases import TaskCase, make_task

import polyseme as package


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> TaskCase:
    made = make_task(tmp_path_factory.mktemp("streams"))
    polyseme("train", made.task, "--out", made.folder / "names", "--set", "training.epochs=1")
    return made


def piped(monkeypatch: pytest.MonkeyPatch, data: bytes, *words: Any, code: int = 0) -> str:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    done = polyseme(*words, code=code)
    return done.stdout if code == 0 else done.stderr


def rows(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines()]


def test_every_text_of_standard_input_is_answered_in_a_line_of_json(
    case: TaskCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = b"word1 word2\n\nword3 word10 .\r\n"
    marked = b"word1 *word2*\nword3 *word10* .\n"
    scores = rows(piped(monkeypatch, lines, "score", case.model, "-", "--json"))
    assert [each["words"] for each in scores] == [["word1", "word2"], ["word3", "word10", "."]]
    found = rows(piped(monkeypatch, marked, "substitutes", "-", "--model", case.model, "--json"))
    assert [each["begin"] for each in found] == [1, 1]
    told = rows(piped(monkeypatch, lines, "predict", case.folder / "names", "-", "--json"))
    assert [each["words"] for each in told] == [each["words"] for each in scores]
    texts = rows(piped(monkeypatch, lines, "generate", case.model, "-", "--json", "--samples", "2"))
    assert [each["prompt"] for each in texts] == ["word1 word2"] * 2 + ["word3 word10 ."] * 2


def test_standard_input_may_stand_among_texts(
    case: TaskCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = piped(monkeypatch, b"word2\n", "score", case.model, "word1", "-", "word3", "--json")
    assert [each["words"] for each in rows(printed)] == [["word1"], ["word2"], ["word3"]]


@pytest.mark.parametrize("data", [b"", b"\n \n", b"\xff\xfe\n"])
def test_standard_input_without_text_is_an_error(
    case: TaskCase, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    told = piped(monkeypatch, data, "score", case.model, "-", code=66)
    assert "tandard input" in told


def test_generate_prints_what_python_gives(case: TaskCase) -> None:
    asked = ("--samples", "3", "--seed", "5", "--max-words", "6", "--top-k", "10")
    printed = polyseme("generate", case.model, "word1", *asked, "--json").stdout
    texts = package.generate(case.model, "word1", samples=3, seed=5, max_words=6, top_k=10)
    assert rows(printed) == [text.as_json() for text in texts]
    shown = polyseme("generate", case.model, "word1", *asked).stdout
    assert all(" ".join(text.text.split()) in " ".join(shown.split()) for text in texts)
    assert polyseme("generate", case.model, "--max-words", "3").stdout.strip()


def test_what_was_measured_comes_as_json(case: TaskCase) -> None:
    [task] = rows(polyseme("evaluate", case.folder / "names", "--json").stdout)
    assert task["measure"] == "f1"
    assert 0 <= task["scores"][0] <= 1
    corpus = case.folder / "made" / "corpus"
    [model] = rows(polyseme("evaluate", case.model, corpus, "--json", "--order", "2").stdout)
    assert model["parts"]["forward"]["perplexity"] > 1
    assert model["parts"]["backward"]["ngram_perplexity"] > 1


def test_every_use_is_a_line_of_json(tmp_path: Path) -> None:
    """With a soft hyphen and a mark of direction in the text, which a terminal shows as escapes."""
    text = "The bank\u00ad\u202e is far. He has a bank. A bank!\n"
    (tmp_path / "texts.txt").write_text(text, encoding="utf-8")
    corpus = tmp_path / "corpus"
    polyseme("prepare", tmp_path / "texts.txt", "--language", "en", "--out", corpus)
    printed = polyseme("uses", "--regex", "bank.*", "--in", corpus, "--json", "--lines", "1").stdout
    assert printed.isascii()
    found = rows(printed)
    assert [each["text"] for each in found] == [
        use.text for use in package.uses(corpus, regex="bank.*")
    ]
    assert "\u202e" in found[0]["text"]
    assert [each["text"][each["begin"] : each["end"]] for each in found][1:] == ["bank", "bank"]
    told = polyseme("uses", "bank", "--in", corpus, "--json", "--by", "document", code=2).stderr
    assert "leave out one" in told
    [looked] = rows(polyseme("inspect", corpus, "--json", "--verify").stdout)
    assert (looked["words"], looked["sentences"]) == (
        package.Corpus.open(corpus).read_stats["words"],
        3,
    )
    assert looked["notes"]


def test_texts_of_standard_input_are_embedded(
    case: TaskCase, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    texts = b"word1 word2 .\nword3 .\n"
    given = ("embed", case.model, "-", "--layers", "top", "--out", tmp_path / "piped")
    piped(monkeypatch, texts, *given)
    (tmp_path / "texts.txt").write_bytes(texts)
    from_file = ("embed", case.model, tmp_path / "texts.txt", "--layers", "top")
    polyseme(*from_file, "--out", tmp_path / "filed")
    [one], [other] = (
        rows(polyseme("vectors", "info", tmp_path / name, "--json").stdout)
        for name in ("piped", "filed")
    )
    assert one["counts"] == other["counts"]
    assert one["counts"]["vectors"] == 5
    first, second = (
        pyarrow.parquet.read_table(tmp_path / name / "vectors") for name in ("piped", "filed")
    )
    vectors = one["columns"][0]
    assert first["word"].to_pylist() == ["word1", "word2", ".", "word3", "."]
    assert first[vectors].equals(second[vectors])
    # Again: what is there is kept.
    assert "were there from before" in piped(monkeypatch, texts, *given)


def test_a_json_option_that_would_do_nothing_is_refused(case: TaskCase, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("word1\n", encoding="utf-8")
    words = ("--file", tmp_path / "texts.txt", "--out", tmp_path / "out.jsonl", "--json")
    told = polyseme("predict", case.folder / "names", *words, code=2).stderr
    assert "Leave out --json" in told
