"""Models after equal time: measures worked out by hand, and a comparison from end to end."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import polyseme
from embedding.making import tiny
from pretraining.making import rule_corpus

from meanings.making import Document, make_corpus
from polyseme.errors import InputError
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.model_comparison import (
    HIDDEN,
    ComparedModel,
    ModelComparison,
    compare_models,
    hidden_pairs,
    nearest_is_own,
    probe_layers,
    told_apart,
)


def test_a_row_counts_if_its_nearest_other_row_is_of_its_own_label() -> None:
    # Angles of 0, 10, 80, 85 and 30 degrees: the last is nearest to the second, of the other label.
    angles = np.radians([0, 10, 80, 85, 30])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    labels = np.array([0, 0, 1, 1, 1])
    assert nearest_is_own(vectors, labels) == pytest.approx((1 + 2 / 3) / 2)


def test_rows_that_are_all_alike_are_told_apart_by_chance_alone() -> None:
    vectors = np.ones((10, 3), np.float32)
    assert nearest_is_own(vectors, np.repeat([0, 1], 5)) == 0.5


def test_the_hidden_word_is_in_no_sentence_that_the_model_sees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[list[str]] = []
    encoder = ModelUseEncoder(tiny("elmo"))
    inner: Callable[..., object] = ModelUseEncoder.__call__

    def watched(self: ModelUseEncoder, sentences: list[list[str]], spans: object) -> object:
        seen.extend(sentences)
        return inner(self, sentences, spans)

    monkeypatch.setattr(ModelUseEncoder, "__call__", watched)
    first = Uses.of([["the", "old", "cat"], ["a", "cat", "sat"]], [(2, 3), (1, 2)])
    second = Uses.of([["the", "new", "york", "times"], ["a", "dog"]], [(1, 3), (1, 2)])
    told_apart(encoder, first, second)
    hidden = [["the", "old", HIDDEN], ["a", HIDDEN, "sat"], ["the", HIDDEN, "times"], ["a", HIDDEN]]
    assert seen == hidden


def test_one_vector_a_word_cannot_tell_hidden_words_apart() -> None:
    encoder = ModelUseEncoder(tiny("word2vec"))
    first = Uses.of([[word, "x"] for word in "abcd"], [(1, 2)] * 4)
    second = Uses.of([[word, "x"] for word in "efgh"], [(1, 2)] * 4)
    assert told_apart(encoder, first, second) == 0.5


def test_hidden_words_are_content_words_of_the_corpus(tmp_path: Path) -> None:
    # 60 words of 20 uses among 30,000 others: neither too rare nor too frequent.
    texts: list[Document] = [
        (f"filler{n} the of and in . " * 4 + f"w{n % 60} here", {}) for n in range(1200)
    ]
    corpus = make_corpus(tmp_path, texts)
    pairs = hidden_pairs(corpus)
    assert 1 <= len(pairs) <= 20
    for first, second in pairs:
        words = {use.form for use in first} | {use.form for use in second}
        assert len(words) == 2
        assert all(len(uses) >= 20 for uses in (first, second))
    assert [a.sentences() for a, _ in pairs] == [a.sentences() for a, _ in hidden_pairs(corpus)]


def test_a_probe_reads_off_a_layer_what_it_knows() -> None:
    # The word alone decides the tag, and every layer knows the word.
    sentences = [(("the", "cat"), ("DET", "NOUN")), (("a", "dog"), ("DET", "NOUN"))] * 20
    found = probe_layers(tiny("elmo"), sentences)
    assert found == pytest.approx([1.0] * tiny("elmo").num_layers)


def test_a_preset_that_is_none_is_named(tmp_path: Path) -> None:
    corpus = rule_corpus(tmp_path)
    with pytest.raises(InputError, match="no preset 'elmo-maxi'"):
        compare_models(corpus, ["elmo-maxi"], tmp_path / "out", minutes=1)


def test_texts_in_a_report_are_text() -> None:
    model = ComparedModel("elmo-mini", 1, 2, 3.0, {"forward": 9.0}, 0.75, (0.5, 0.9),
                          ("<script>alert(1)</script>",))  # fmt: skip
    html = ModelComparison((model,), {}, "<b>bank</b>", ("note",)).to_html()
    assert "<script>" not in html
    assert "&lt;b&gt;bank&lt;/b&gt;" in html
    assert "90.0% (layer 1)" in html
    assert "75%" in html


def test_models_are_trained_once_and_compared(tmp_path: Path) -> None:
    corpus = rule_corpus(tmp_path)
    treebank = tmp_path / "tagged.conllu"
    rows = [("The", "DET"), ("cat", "NOUN"), ("purrs", "VERB"), (".", "PUNCT")]
    lines = [f"{n}\t{word}\t_\t{tag}" + "\t_" * 6 for n, (word, tag) in enumerate(rows, start=1)]
    treebank.write_text("\n\n".join(["\n".join(lines)] * 10) + "\n", encoding="utf-8")
    words = ("compare-models", corpus.folder, "--presets", "word2vec,elmo-teaching", "--minutes",
             "0.02", "--word", "cat", "--tagged", treebank, "--out", tmp_path / "out")  # fmt: skip
    shown = polyseme(*words)
    assert "elmo-teaching" in shown.stdout
    assert (tmp_path / "out" / "report.html").is_file()
    before = (tmp_path / "out" / "elmo-teaching" / "manifest.json").read_bytes()
    told = json.loads(polyseme(*words, "--json").stdout)
    assert (tmp_path / "out" / "elmo-teaching" / "manifest.json").read_bytes() == before
    counted, word2vec, elmo = told["models"]
    assert [each["preset"] for each in (word2vec, elmo)] == ["word2vec", "elmo-teaching"]
    assert counted["preset"] == "3-gram"
    assert 1 < counted["perplexity"]["forward"] < told["unigram"]["word2vec"]
    assert set(elmo["perplexity"]) == {"forward", "backward"}
    assert elmo["tags"][0] == 1.0
    assert len(elmo["nearest"]) == 5
    assert all("cat" in line for line in elmo["nearest"])
    assert elmo["senses"] is None  # every word of so small a text is a frequent one
