"""How far to believe groups: measured on the corpus's own words, kept beside it, the same twice."""

import json
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.metrics import adjusted_rand_score

from meanings.making import Document, make_corpus
from polyseme.meanings.concordance.uses import Uses, find_uses
from polyseme.meanings.features.topics import DIM, Topics, learn_aside
from polyseme.meanings.features.use_features import UseFeatures, calibration_folder
from polyseme.meanings.groups import calibration
from polyseme.meanings.groups.calibration import (
    Calibration,
    adjusted_rand_index,
    calibrate,
    calibration_of,
    topics_of,
)
from polyseme.meanings.groups.grouping import Limits
from polyseme.text.corpus import Corpus

Array = npt.NDArray[Any]
KINDS = [f"{kind}{'abcdefgh'[number]}word" for kind in ("noun", "verb") for number in range(8)]


def sentences() -> Iterator[str]:
    """Each word 130 times, near words of its own; and enough others for a corpus to have topics."""
    random = np.random.default_rng(1)
    for number in range(130):
        for word in KINDS:
            own = [f"{word}{'xyz'[at]}" for at in random.integers(3, size=3)]
            rest = [
                f"r{at:b}".replace("0", "o").replace("1", "i")
                for at in random.integers(400, size=5)
            ]
            yield " ".join([*own, word, *rest, f"n{number}", "."])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    texts = list(sentences())
    documents: list[Document] = [
        (" ".join(texts[at : at + 16]), {}) for at in range(0, len(texts), 16)
    ]
    return make_corpus(tmp_path_factory.mktemp("calibration"), documents)


@cache
def of_word(word: str) -> tuple[Array, Array]:
    """The point of a word, and the words near it."""
    random = np.random.default_rng(zlib.crc32(word.encode()))
    return random.normal(size=12), random.permutation(4_000)[:20]


class Described:
    """Knows which word a use is of as well as it is told to, and how often it was asked."""

    words: ClassVar[list[str]] = [f"w{number}" for number in range(4_000)]
    fingerprint = "f" * 64
    layer = None

    def __init__(self, noise: float) -> None:
        self.noise, self.num_asked = noise, 0

    def gains(self, sentences: Sequence[Sequence[str]], corpus: Corpus) -> tuple[float, float]:
        assert corpus
        return float(len(sentences)) / 40, 14.0

    def without_syntax(self, features: UseFeatures) -> UseFeatures:
        """What tells nouns from verbs is in the last dimension."""
        context = features.context.copy()
        context[:, -1] = 0
        return UseFeatures(context, features.bag, features.substitutes)

    def encode(self, uses: Uses, on_use: Callable[[int], None] = lambda _: None) -> UseFeatures:
        """Around a point of the word, in all views."""
        self.num_asked += 1
        rows = []
        for words, (begin, _) in zip(uses.sentences(), uses.spans.tolist(), strict=True):
            seed = zlib.crc32(" ".join(words).encode())
            own, near = of_word(words[begin])
            random = np.random.default_rng(seed)
            point = own + self.noise * random.normal(size=12)
            near = near if self.noise < 1 else random.choice(4_000, 20, replace=False)
            kind = 9.0 if words[begin].startswith("noun") else -9.0
            rows.append((np.append(point, kind), point, random.permutation(near)[:10]))
        context, bag, near_words = (np.array(column) for column in zip(*rows, strict=True))
        on_use(len(uses))
        return UseFeatures(
            context.astype(np.float32), bag.astype(np.float32), near_words.astype(np.int32)
        )


def test_words_that_a_model_knows_apart_are_told_apart_and_others_are_not(corpus: Corpus) -> None:
    good, poor = (calibrate(corpus, Described(noise), None) for noise in (0.1, 50.0))
    assert good
    assert poor
    assert good.ari > 0.95
    assert good.num_pairs == 29  # of 58 words
    assert abs(poor.ari) < 0.1
    assert "well" in good.note
    assert "poorly" in poor.note
    assert (poor.gain, poor.own_gain) == (5.8, 14)
    assert "5.8 times better than frequencies alone, those of its own texts 14.0 times" in poor.note
    assert "pretrain CORPUS --from MODEL" in poor.note


def test_words_of_like_kind_are_mixed() -> None:
    kinds = np.array([[1, 0], [0, 1], [0.9, 0.1], [0.1, 0.9]], np.float32)
    assert sorted(map(sorted, calibration._like_pairs(kinds))) == [[0, 2], [1, 3]]


def test_a_corpus_with_few_frequent_words_is_not_measured(tmp_path: Path) -> None:
    small = make_corpus(tmp_path, [("a river bank .", {})])
    assert calibrate(small, Described(0.1), None) is None
    assert topics_of(small) is None


def test_it_is_measured_once_and_kept_beside_the_corpus(corpus: Corpus) -> None:
    encoder = Described(0.1)
    first = calibration_of(corpus, encoder)
    asked = encoder.num_asked
    assert asked
    assert calibration_of(corpus, encoder) == first
    assert encoder.num_asked == asked
    [path] = calibration_folder(corpus.folder).glob("*.json")
    told = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**told, "key": "of another state"}), "utf-8")
    calibration_of(corpus, encoder)
    assert encoder.num_asked == 2 * asked
    path.write_text("{", "utf-8")
    assert calibration_of(corpus, encoder) == first
    assert encoder.num_asked == 3 * asked


def test_an_index_reads_what_a_model_measured_and_measures_nothing(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "IndexedUses", Described)
    index = Described(0.1)
    index.fingerprint = "e" * 64
    assert calibration_of(corpus, index) is None
    assert index.num_asked == 0


def test_topics_are_near_for_words_of_the_same_passages(corpus: Corpus) -> None:
    topics = Topics.learn(corpus)
    assert topics is not None
    assert topics.vectors.shape[1] == DIM
    numbers = {word: number for number, word in enumerate(topics.words)}
    vectors = topics.vectors.astype(np.float32)
    rows = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    word = KINDS[0]
    similar = rows @ rows[numbers[f"{word}x"]]
    assert similar[numbers[f"{word}y"]] > np.mean([similar[numbers[f"{o}y"]] for o in KINDS[1:]])


def test_a_topic_knows_nothing_of_the_word_itself(corpus: Corpus) -> None:
    topics = Topics.learn(corpus)
    assert topics is not None
    uses = find_uses(corpus, KINDS[0])
    numbers = {word: number for number, word in enumerate(topics.words)}
    vectors = topics.vectors.copy()
    vectors[numbers[KINDS[0]]] = 6e4
    same = Topics(topics.words, vectors).of_uses(uses)
    assert np.array_equal(same, topics.of_uses(uses))


def test_what_is_expected_is_about_the_substitutes_of_a_use(corpus: Corpus) -> None:
    topics = Topics.learn(corpus)
    assert topics is not None
    uses = find_uses(corpus, KINDS[0])
    words = ["unknown", *(f"{kind}x" for kind in KINDS)]
    substitutes = np.full((len(uses), 40), 0, np.int32)
    substitutes[:, 0] = np.arange(len(uses)) % len(KINDS) + 1
    substitutes[:, 35] = 1  # too far behind
    none = np.zeros((len(uses), 2), np.float32)
    plain = UseFeatures(none, none, substitutes)
    found = topics.added_to(plain, uses, words)
    assert found.topic is not None
    assert found.expected is not None
    assert np.array_equal(found.topic, topics.of_uses(uses))
    numbers = {word: number for number, word in enumerate(topics.words)}
    rows = topics.vectors.astype(np.float32)[[numbers[word] for word in words[1:]]]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    wanted = rows[np.arange(len(uses)) % len(KINDS)]
    assert np.allclose(found.expected, wanted, atol=1e-5)
    nothing = topics.added_to(plain.select(np.arange(3)), uses.select(np.arange(3)), ["?"] * 99)
    assert nothing.expected is not None
    assert not nothing.expected.any()
    without = UseFeatures(plain.context, plain.bag, None)
    assert topics.added_to(without, uses, []).expected is None


def test_topics_are_kept_and_those_of_another_state_or_damaged_are_learned_again(
    corpus: Corpus,
) -> None:
    calibration._topics.cache_clear()
    topics = topics_of(corpus)
    assert topics is not None
    [path] = calibration_folder(corpus.folder).glob("topics-*.parquet")
    path.rename(path.with_name("topics-older.parquet"))
    for content in (None, b"no Parquet"):
        if content:
            path.write_bytes(content)
        calibration._topics.cache_clear()
        again = topics_of(corpus)
        assert again is not None
        assert again.words == topics.words
        assert np.array_equal(again.vectors, topics.vectors)
        assert Topics.load(path).words == topics.words
        assert [each.name for each in path.parent.glob("topics-*")] == [path.name]


def test_topics_that_are_learned_in_another_process_are_the_same(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = Topics.learn(corpus)
    assert learned is not None
    monkeypatch.setattr("polyseme.meanings.features.topics._MANY", 0)
    with monkeypatch.context() as patched:
        patched.setattr(Topics, "learn", None)  # not in this one
        found = [learn_aside(corpus.folder)]
    monkeypatch.setattr(sys, "executable", "/nowhere/python")  # where no process can be had
    for each in [*found, learn_aside(corpus.folder)]:
        assert each is not None
        assert each.words == learned.words
        assert np.array_equal(each.vectors, learned.vectors)


def test_agreement_is_scikit_learns_adjusted_rand_index() -> None:
    random = np.random.default_rng(1)
    for groups in (1, 2, 3):
        gold, found = random.integers(2, size=50), random.integers(groups, size=50)
        assert adjusted_rand_index(gold, found) == adjusted_rand_score(gold, found)
        assert adjusted_rand_index(gold, gold) == 1


def test_neighbours_are_sentences_of_the_same_document(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, [("a b . c bank d . e .", {}), ("f g .", {})])
    assert [sorted(words) for words in find_uses(corpus, "bank").words_around(2)] == [
        sorted(["a", "b", ".", "e", "."])
    ]


def test_a_note_says_what_a_model_can_do() -> None:
    assert "moderately" in Calibration(0.3, 0.05, 20, Limits()).note
    assert "(0.30 ± 0.05; 0 is chance, 1 perfect)" in Calibration(0.3, 0.05, 20, Limits()).note
    known = Calibration(0.2, 0.05, 20, Limits(), 13, 14)
    unknown = replace(known, gain=4)
    assert (known.is_unlike, unknown.is_unlike) == (False, True)
    assert (
        "4.0 times better than frequencies alone, those of its own texts 14.0 times" in unknown.note
    )
    assert "reading such texts helps" in unknown.note
    assert "reading such texts helps" not in known.note
