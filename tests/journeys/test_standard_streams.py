"""Texts through standard input, JSON lines on standard output: commands in a pipe."""

import io
import json
import subprocess
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
    scores = rows(piped(monkeypatch, lines, "score", "--model", case.model, "-", "--json"))
    assert [each["words"] for each in scores] == [["word1", "word2"], ["word3", "word10", "."]]
    found = rows(piped(monkeypatch, marked, "substitutes", "-", "--model", case.model, "--json"))
    assert [each["begin"] for each in found] == [1, 1]
    told = rows(
        piped(monkeypatch, lines, "predict", "--task", case.folder / "names", "-", "--json")
    )
    assert [each["words"] for each in told] == [each["words"] for each in scores]
    texts = rows(
        piped(
            monkeypatch, lines, "generate", "--model", case.model, "-", "--json", "--samples", "2"
        )
    )
    assert [each["prompt"] for each in texts] == ["word1 word2"] * 2 + ["word3 word10 ."] * 2


def test_pairs_of_standard_input_are_compared_line_by_line(
    case: TaskCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = "\ufeffword1 *word2* .\tword3 *word2* .\r\n\nword1 *word2* .\tword1 *word2* .\n"
    words = ("same", "-", "--model", case.model)
    other, same = rows(piped(monkeypatch, data.encode(), *words, "--json"))
    alone = package.same("word1 *word2* .", "word3 *word2* .", model=case.model)
    assert other["similarity"] == pytest.approx(alone.similarity, abs=1e-3)
    assert same["similarity"] == pytest.approx(1, abs=1e-3)
    assert piped(monkeypatch, data.encode(), *words).count("Similarity") == 2


def test_two_uses_are_compared_with_no_extra_but_torch(case: TaskCase) -> None:
    code = (
        "import sys; sys.modules['sklearn'] = sys.modules['scipy'] = None; "
        "from polyseme.cli.app import main; main()"
    )
    words = ["same", "word1 *word2* .", "word3 *word2* .", "--model", str(case.model)]
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Similarity" in done.stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("word1 *word2*", "Line 3 of standard input has 0 tabs"),
        ("*word1*\t*word2*\t*word3*", "Line 3 of standard input has 2 tabs"),
        ("word1\t*word2*", "Line 3 of standard input: Mark the word"),
    ],
)
def test_a_line_that_is_no_pair_is_named(
    case: TaskCase, monkeypatch: pytest.MonkeyPatch, line: str, said: str
) -> None:
    data = f"*word1*\t*word2*\n\n{line}\n".encode()
    told = piped(monkeypatch, data, "same", "-", "--model", case.model, code=66)
    assert said in " ".join(told.split())


def test_sentences_of_standard_input_have_their_nearest_uses_each(
    case: TaskCase, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of two words, in turn: each is answered as if it were asked for alone, in its place."""
    corpus = case.folder / "made" / "corpus"
    texts = ["word1 *word2* .", "word3 *word10* .", "word4 *word2* ."]
    words = ("--in", corpus, "--model", case.model)
    found = rows(piped(monkeypatch, "\n".join(texts).encode(), "nearest", "-", *words, "--json"))
    alone = [package.nearest(corpus, text, model=case.model).to_json() for text in texts]
    assert [each["sentence"] for each in found] == [each["sentence"] for each in alone]
    assert [each["searched"] for each in found] == [each["searched"] for each in alone]
    assert found[0]["nearest"] == alone[0]["nearest"]
    assert [each["text"] for each in found[2]["nearest"]] == [
        each["text"] for each in alone[2]["nearest"]
    ]
    named = b"word1 word2 .\nword3 word2 .\n"
    shown = piped(monkeypatch, named, "nearest", "-", "--word", "word2", *words)
    assert shown.count("The nearest of") == 2
    out = ("--out", tmp_path / "uses.csv")
    told = piped(monkeypatch, named, "nearest", "-", "--word", "word2", *words, *out, code=2)
    assert "--out is for one sentence" in told


def test_standard_input_may_stand_among_texts(
    case: TaskCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = piped(
        monkeypatch, b"word2\n", "score", "--model", case.model, "word1", "-", "word3", "--json"
    )
    assert [each["words"] for each in rows(printed)] == [["word1"], ["word2"], ["word3"]]


@pytest.mark.parametrize("data", [b"", b"\n \n", b"\xff\xfe\n"])
def test_standard_input_without_text_is_an_error(
    case: TaskCase, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    told = piped(monkeypatch, data, "score", "--model", case.model, "-", code=66)
    assert "tandard input" in told


def test_generate_prints_what_python_gives(case: TaskCase) -> None:
    asked = ("--samples", "3", "--seed", "5", "--max-words", "6", "--top-k", "10")
    printed = polyseme("generate", "--model", case.model, "word1", *asked, "--json").stdout
    texts = package.generate("word1", model=case.model, samples=3, seed=5, max_words=6, top_k=10)
    assert rows(printed) == [text.as_json() for text in texts]
    shown = polyseme("generate", "--model", case.model, "word1", *asked).stdout
    assert all(" ".join(text.text.split()) in " ".join(shown.split()) for text in texts)
    assert polyseme("generate", "--model", case.model, "--max-words", "3").stdout.strip()


def test_what_was_measured_comes_as_json(case: TaskCase) -> None:
    [task] = rows(polyseme("evaluate", case.folder / "names", "--json").stdout)
    assert task["measure"] == "f1"
    assert 0 <= task["scores"][0] <= 1
    corpus = case.folder / "made" / "corpus"
    [model] = rows(
        polyseme("evaluate", case.model, "--in", corpus, "--json", "--order", "2").stdout
    )
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
    given = ("embed", "--model", case.model, "-", "--layers", "top", "--out", tmp_path / "piped")
    piped(monkeypatch, texts, *given)
    (tmp_path / "texts.txt").write_bytes(texts)
    from_file = ("embed", "--model", case.model, tmp_path / "texts.txt", "--layers", "top")
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
    assert "from an earlier run were reused" in piped(monkeypatch, texts, *given)


def test_where_labels_went_is_told_in_json(case: TaskCase, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("word1\n", encoding="utf-8")
    words = ("--input-file", tmp_path / "texts.txt", "--out", tmp_path / "out.jsonl", "--json")
    told = polyseme("predict", "--task", case.folder / "names", *words).stdout
    assert json.loads(told) == {"out": str(tmp_path / "out.jsonl")}
