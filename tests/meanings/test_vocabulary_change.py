"""Change over a whole vocabulary: what was planted is found, chance is not, and no word is lost."""

import csv
import zlib
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from meanings.making import make_corpus
from polyseme.errors import InputError
from polyseme.meanings.change.sides import count_sides
from polyseme.meanings.change.vocabulary import (
    ChangedWord,
    VocabularyChange,
    VocabularyQuestion,
    WordLog,
    compare_vocabulary,
)
from polyseme.meanings.concordance.conditions import Comparison
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.features.use_features import UseFeatures
from polyseme.text.corpus import Corpus

BEFORE, AFTER = (Comparison("year", sign, "1900", Decimal(1900)) for sign in ("<", ">="))
QUESTION = VocabularyQuestion(BEFORE, AFTER, min_uses=20, max_uses=60, permutations=999)
STEADY = ("house", "river", "Street", "garden")


def documents() -> Iterator[tuple[str, dict[str, Any]]]:
    """`plane` is a tool in eight old documents and flies in eight new ones; others are steady."""
    random = np.random.default_rng(0)
    tool, flight = ["wood", "bench", "saw", "shave"], ["sky", "pilot", "engine", "airport"]
    near = ["red", "old", "long", "near", "small", "quiet", "far", "green"]
    for number in range(16):
        old = number < 8
        sentences = []
        for _ in range(5):
            words = [*random.permutation(tool if old else flight)[:3], "plane"]
            sentences.append(" ".join(map(str, random.permutation(words))) + " .")
            for steady in STEADY:
                words = [*random.permutation(near)[:3], steady]
                sentences.append(" ".join(map(str, random.permutation(words))) + " .")
        yield " ".join(sentences), {"year": "1850" if old else "1950"}


class NeighbourDescriber:
    """Describes a use by the words beside it, each a vector of its own: no model is needed."""

    calls = 0

    def __call__(
        self, sentences: Sequence[Sequence[str]], spans: Any, on_use: Callable[[int], None] = print
    ) -> UseFeatures:
        self.calls += 1
        rows = []
        for words, (begin, end) in zip(sentences, spans.tolist(), strict=True):
            others = [*words[:begin], *words[end:]]
            seeds = [zlib.crc32(word.encode()) for word in others]
            rows.append(sum(np.random.default_rng(s).normal(size=24) for s in seeds))
        context = np.array(rows, np.float32)
        return UseFeatures(context, np.zeros((len(context), 1), np.float32), None)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make_corpus(tmp_path_factory.mktemp("v"), list(documents()), meta=["year"])


def compare(
    corpus: Corpus, question: VocabularyQuestion = QUESTION, **more: Any
) -> VocabularyChange:
    encoder = cast(ModelUseEncoder, more.pop("encoder", NeighbourDescriber()))
    return compare_vocabulary(corpus, encoder, question, **more)


@pytest.fixture(scope="module")
def found(corpus: Corpus) -> VocabularyChange:
    return compare(corpus, words=("plane", *STEADY, "nothing"))


def test_words_are_counted_on_each_side_and_folded(corpus: Corpus) -> None:
    sides = count_sides(corpus, (BEFORE, AFTER))
    assert [counts["plane"] for counts in sides.counts] == [40, 40]
    assert [counts["street"] for counts in sides.counts] == [40, 40]
    assert sides.spellings["street"] == {"Street"}
    assert [len(each) for each in sides.documents] == [8, 8]
    total = sum(counts.total() for counts in sides.counts)
    assert total == corpus.read_stats["words"]
    fewer = count_sides(corpus, (BEFORE, AFTER), Comparison("document", "=", "d0"))
    assert [counts["plane"] for counts in fewer.counts] == [5, 0]


def test_the_word_that_moved_comes_first_and_alone_is_significant(found: VocabularyChange) -> None:
    assert found.words[0].change.word == "plane"
    assert [each.change.word for each in found.significant] == ["plane"]
    assert found.words[0].controls_below == found.words[0].controls == 4
    assert {each.change.word for each in found.words} == {"plane", *(w.lower() for w in STEADY)}


def test_dealt_at_random_no_more_is_found_than_chance_explains(found: VocabularyChange) -> None:
    assert found.false_positives is not None
    assert found.false_positives <= 0.2  # 25 tests, of which one or two are expected
    plane = found.words[0].change
    assert min(plane.by_chance) > plane.p_value


def test_every_word_that_is_frequent_enough_is_asked_about(corpus: Corpus) -> None:
    sides = count_sides(corpus, (BEFORE, AFTER))
    both = {w for w, n in sides.counts[0].items() if n >= 20 and sides.counts[1][w] >= 20}
    assert set(sides.candidates(20, 1.0)) == both - {"."}
    assert sides.candidates(41, 1.0) == sorted(w for w in both - {"."} if sides.counts[0][w] > 40)
    assert "plane" not in sides.candidates(5, 1e-3)  # it is one word in 32


def test_an_interrupted_run_goes_on_and_gives_the_same(
    corpus: Corpus, found: VocabularyChange, tmp_path: Path
) -> None:
    asked = QUESTION.to_json()
    log = WordLog(tmp_path / "log.jsonl", asked)

    class StopError(Exception):
        pass

    def stop_after_two(word: str, change: ChangedWord | None) -> None:
        log.add(word, change)
        if len(log.found) == 2:
            raise StopError

    with pytest.raises(StopError):
        compare(corpus, words=("plane", *STEADY), on_word=stop_after_two)
    with (tmp_path / "log.jsonl").open("ab") as file:
        file.write(b'{"word": "ri')  # as a kill leaves it
    again = WordLog(tmp_path / "log.jsonl", asked)
    assert len(again.found) == 2
    encoder = NeighbourDescriber()
    more: dict[str, Any] = {"known": again.found, "on_word": again.add, "encoder": encoder}
    whole = compare(corpus, words=("plane", *STEADY, "nothing"), **more)
    assert encoder.calls == 3
    assert whole.to_json() == found.to_json()
    assert len(WordLog(tmp_path / "log.jsonl", asked).found) == 5


def test_a_log_of_another_question_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    WordLog(path, QUESTION.to_json())
    other = VocabularyQuestion(AFTER, BEFORE, seed=7)
    with pytest.raises(InputError, match=r"after, before, .*seed differs"):
        WordLog(path, other.to_json())
    path.write_text("{}\n", encoding="utf-8")
    with pytest.raises(InputError, match="damaged"):
        WordLog(path, QUESTION.to_json())


def test_what_cannot_be_asked_is_said(corpus: Corpus) -> None:
    with pytest.raises(InputError, match="on both sides"):
        compare(corpus, VocabularyQuestion(BEFORE, BEFORE))
    with pytest.raises(InputError, match="No word has 900 uses"):
        compare(corpus, VocabularyQuestion(BEFORE, AFTER, min_uses=900))


def test_tables_have_every_word(found: VocabularyChange, tmp_path: Path) -> None:
    found.to_csv(tmp_path / "c.csv")
    with (tmp_path / "c.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["word"] for row in rows] == [each.change.word for each in found.words]
    assert [int(row["rank"]) for row in rows] == [1, 2, 3, 4, 5]
    assert float(rows[0]["excess"]) == pytest.approx(found.words[0].change.excess, abs=1e-5)
    assert found.to_pandas().shape == (5, len(found.columns))
    assert "most changed: plane" in repr(found)
    assert "plane" in found._repr_html_()
