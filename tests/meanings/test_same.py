"""Judged pairs: read from every form, learned from as a known program would.

The words expected in the place of a word, and which word is meant.

How alike uses are: by each view as its definition says, whatever all uses share left out.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from embedding.making import reading, tiny
from laws.cases import WORDS, make
from pretraining.making import rule_text
from required import need_package

import polyseme
from meanings.test_named_groups import MODEL, MONEY, PEOPLE, RIVERS
from polyseme.data.batch import FIRST_WORD
from polyseme.embedding.embedder import Embedder
from polyseme.errors import InputError, ModelError
from polyseme.meanings.concordance.uses import MarkedUse, read_marked
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.features.use_features import Floats, UseFeatures
from polyseme.meanings.nearest import Centre, pair_similarities, similarities
from polyseme.meanings.same import JudgedPair, compare_uses, learn_same, read_pairs
from polyseme.meanings.substitutes import find_substitutes
from polyseme.objectives.bidirectional import Causal


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


@pytest.fixture(scope="module")
def english() -> Embedder:
    return reading(rule_text(), language="en")


def test_the_word_between_asterisks_is_meant(english: Embedder) -> None:
    use = read_marked(english, "It rains. The old *cat* purrs.")
    assert use == MarkedUse(("The", "old", "cat", "purrs", "."), 2, 3)
    assert use.form == "cat"


def test_several_words_may_be_marked(english: Embedder) -> None:
    assert read_marked(english, "The *old cat* purrs.") == MarkedUse(
        ("The", "old", "cat", "purrs", "."), 1, 3
    )


def test_a_word_may_be_named_instead(english: Embedder) -> None:
    use = read_marked(english, "The old cat purrs and concatenates.", "Cat")
    assert (use.begin, use.end) == (2, 3)


def test_chinese_has_no_spaces_around_what_is_marked() -> None:
    chinese = reading("我 吃 苹果", language="zh", segmenter="characters")
    assert read_marked(chinese, "我吃*苹果*。") == MarkedUse(("我", "吃", "苹", "果", "。"), 2, 4)
    assert read_marked(chinese, "我吃苹果。", "苹果") == MarkedUse(
        ("我", "吃", "苹", "果", "。"), 2, 4
    )


@pytest.mark.parametrize(
    ("text", "word", "said"),
    [
        ("The cat purrs.", "", "none is marked"),
        ("The *cat* and the *dog*.", "", "2 are marked"),
        ("The cat and the cat.", "cat", "occurs 2 times"),
        ("The cat.", "dog", "occurs 0 times"),
    ],
)
def test_what_is_not_clear_is_asked_for(english: Embedder, text: str, word: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_marked(english, text, word)


def test_probabilities_of_all_words_sum_to_one_and_fall(english: Embedder) -> None:
    use = read_marked(english, "The old *cat* purrs.")
    found = find_substitutes(english, use, 10_000)
    probabilities = [probability for _, probability in found.words]
    assert sum(probabilities) == pytest.approx(1, abs=1e-6)
    assert probabilities == sorted(probabilities, reverse=True)
    rank, own = found.own or (0, 0.0)
    word, probability = found.words[rank - 1]
    assert word == "cat"
    assert probability == pytest.approx(own)


def test_the_word_itself_changes_nothing(english: Embedder) -> None:
    one = find_substitutes(english, read_marked(english, "The old *cat* purrs."), 3)
    two = find_substitutes(english, read_marked(english, "The old *zzz* purrs."), 3)
    assert [word for word, _ in one.words] == [word for word, _ in two.words]
    assert np.allclose([p for _, p in one.words], [p for _, p in two.words], atol=1e-6)
    assert two.own is None  # no word of the model's


def test_from_one_side_it_is_the_softmax_of_that_side() -> None:
    embedder = tiny("lstm forward")
    model = embedder.model
    objective = model.network.objective
    assert isinstance(objective, Causal)
    words = tuple(model.vocabulary.words.to_pylist()[:4])
    found = find_substitutes(embedder, MarkedUse(words, 3, 4), 3)
    with torch.no_grad():
        top = model.network.encoder(model.vocabulary.batch([words])).top[:, 3]
        everything = objective.softmax.top_k(top, 9, table=model.network.word_embeddings)
    first = model.vocabulary.size - len(model.vocabulary.words)
    ids = [number - first for number in everything[1][0].tolist() if number >= first][:3]
    known = model.vocabulary.words.to_pylist()
    assert [word for word, _ in found.words] == [known[number] for number in ids]


def test_a_model_that_sees_the_word_is_refused() -> None:
    with pytest.raises(ModelError, match="has seen the word"):
        find_substitutes(tiny("bert"), MarkedUse(("a", "b"), 0, 1))


def test_with_a_cloze_head_its_probabilities_are_told() -> None:
    """Found another way: the network predicts the whole sentence, the word among the others."""
    embedder = Embedder(make("lstm", "separate", "cloze", "word", "full").model(), device="cpu")
    model, words = embedder.model, tuple(WORDS[:4])
    found = find_substitutes(embedder, MarkedUse(words, 1, 2), number=3)
    objective = model.network.objective
    targets = objective.make_targets(
        model.vocabulary.batch([words]), model.vocabulary, np.random.default_rng(0)
    )
    with torch.no_grad():
        prediction = objective.predict(model.network.encoder, targets)["cloze"]
        vector = prediction.vectors[1:2]
        logits = prediction.head.logits(vector, torch.arange(model.vocabulary.size), table=None)
    shares = logits[0, FIRST_WORD:].double().softmax(dim=0)
    best = shares.topk(3)
    assert [word for word, _ in found.words] == [WORDS[index] for index in best.indices.tolist()]
    assert [share for _, share in found.words] == pytest.approx(best.values.tolist(), rel=1e-4)
    assert found.own is not None
    assert found.own[1] == pytest.approx(float(shares[1]), rel=1e-4)


def some(number: int, seed: int = 1) -> UseFeatures:
    random = np.random.default_rng(seed)
    substitutes = np.stack([random.permutation(40)[:12] for _ in range(number)])
    context, bag = (random.normal(size=(number, dim)).astype(np.float32) + 2 for dim in (8, 5))
    return UseFeatures(context, bag, substitutes.astype(np.int32))


def rows(features: UseFeatures, *numbers: int) -> UseFeatures:
    return features.select(np.array(numbers))


def test_cosines_are_those_of_centred_vectors() -> None:
    features = some(30)
    found = similarities(rows(features, 4), features, Centre.of(features))
    for column, view in enumerate((features.context, features.bag)):
        away = view - view.mean(axis=0)
        for row in range(30):
            lengths = np.linalg.norm(away[4]) * np.linalg.norm(away[row])
            assert found[row, column] == pytest.approx(away[4] @ away[row] / lengths, abs=1e-5)


def test_substitutes_are_compared_by_tf_idf() -> None:
    need_package("sklearn")
    from sklearn.feature_extraction.text import TfidfTransformer

    features = some(30)
    assert features.substitutes is not None
    counts = np.zeros((30, 40))
    np.put_along_axis(counts, features.substitutes.astype(np.int64), 1, axis=1)
    weighted = TfidfTransformer().fit_transform(counts).toarray()
    found = similarities(rows(features, 7), features, Centre.of(features))
    assert np.allclose(found[:, 2], weighted @ weighted[7], atol=1e-5)


def test_pairs_are_compared_row_by_row() -> None:
    one, two = some(6, 1), some(6, 2)
    centre = Centre.of(one)
    found = pair_similarities(one, two, centre)
    for row in range(6):
        alone = similarities(rows(one, row), rows(two, row), centre)
        assert np.array_equal(found[row], alone[0])
