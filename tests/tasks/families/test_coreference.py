"""Clusters of mentions: spans, links, windows, and what is shown."""

from collections.abc import Iterator
from itertools import chain, combinations, pairwise
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from polyseme.config import build
from polyseme.errors import ConfigError, InputError
from polyseme.tasks.families.coreference import (
    Coreference,
    CoreferenceConfig,
    Document,
    Links,
    PredictedClusters,
    Spans,
    WindowsConfig,
    _follow,
    _gold_clusters,
    _link_losses,
    bucket,
    in_windows,
    not_crossing,
)
from polyseme.tasks.task import Task
from polyseme.tasks.texts import TextReader
from tasks.making import config_of, examples_for, task_of

FAMILY = Coreference(CoreferenceConfig(), has_singletons=True)
HEN = PredictedClusters(
    (("The", "old", "hen", "saw", "her", "egg", "."), ("It", "was", "hers", ".")),
    (((0, 3), (4, 5), (9, 10)), ((4, 6), (7, 8)), ((1, 2),)),
)


def crosses(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[0] < one[1] < other[1] or other[0] < one[0] < other[1] < one[1]


def spans_of(ends: list[tuple[int, int]], scores: list[float] | None = None) -> Spans:
    start, stop = torch.tensor(ends).T
    told = torch.tensor(scores) if scores else torch.zeros(len(ends))
    return Spans(start, stop, torch.zeros(len(ends), 2), told, torch.zeros(len(ends)).long())


def test_no_span_is_found_outside_of_its_sentence(models: dict[str, Path], tmp_path: Path) -> None:
    examples = examples_for("documents, frozen", 30, seed=8)
    task, data = task_of(config_of("documents, frozen", models, tmp_path), examples)
    found = task.decode(data)
    assert sum(len(each.clusters) for each in found if isinstance(each, PredictedClusters)) > 20
    for each in found:
        assert isinstance(each, PredictedClusters)
        ends = np.cumsum([0, *map(len, each.sentences)]).tolist()
        for start, stop in chain.from_iterable(each.clusters):
            assert 0 <= start < stop <= ends[-1]
            assert any(begin <= start and stop <= end for begin, end in pairwise(ends))
        mentions = list(chain.from_iterable(each.clusters))
        assert len(mentions) == len(set(mentions))
        assert not any(crosses(one, other) for one, other in combinations(mentions, 2))


def test_a_document_without_mentions_and_one_with_a_long_mention_can_be_learnt_from(
    models: dict[str, Path], tmp_path: Path
) -> None:
    words = ("bank", "bank", "bank", "bank", "bank")  # spans of up to three words are looked at
    examples = [Document((words,), (((0, 5),), ((0, 1), (1, 2)))), Document((("bank",),))]
    task, data = task_of(config_of("documents, static", models, tmp_path), list(examples))
    batch = data.batch(np.arange(2))
    loss = task.module(batch)["loss"]
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad is None or p.grad.isfinite().all() for p in task.module.parameters())


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 6)), max_size=12, unique=True))
@settings(max_examples=200, deadline=None, derandomize=True, database=None)
def test_of_two_spans_that_cross_the_better_is_kept(found: list[tuple[int, int]]) -> None:
    ends = [(start, start + width) for start, width in found]
    kept: list[tuple[int, int]] = []
    expected = []
    for span in ends:
        expected.append(not any(crosses(span, other) for other in kept))
        kept += [span] if expected[-1] else []
    assert not_crossing(ends) == expected


def test_distances_fall_in_ten_buckets() -> None:
    distances = torch.tensor([-3, 0, 1, 4, 5, 7, 8, 15, 16, 31, 32, 63, 64, 9999])
    assert bucket(distances).tolist() == [0, 0, 1, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9]


def test_the_gold_of_a_span_is_its_cluster() -> None:
    spans = spans_of([(0, 1), (0, 2), (1, 2), (2, 3)])
    gold = torch.tensor([[2, 3, 1], [0, 2, 7], [0, 9, 4], [0, 0, 0]])  # one too long, one padding
    assert _gold_clusters(spans, gold).tolist() == [0, 7, 0, 1]
    assert _gold_clusters(spans, gold[3:]).tolist() == [0, 0, 0, 0]


def test_the_loss_is_minus_the_log_of_all_right_antecedents_together() -> None:
    none = -torch.inf
    links = Links(
        torch.tensor([[0, 1], [0, 1], [0, 1], [0, 2]]),
        torch.tensor([[none, none], [0.5, none], [1.0, -2.0], [0.3, 2.0]]),
    )
    found = _link_losses(links, torch.tensor([1, 0, 1, 1]))
    expected = [
        0.0,  # the first has nothing before it
        -log(1 / (1 + exp(0.5))),  # no mention: none is right
        -log(exp(1.0) / (1 + exp(1.0) + exp(-2.0))),
        -log((exp(0.3) + exp(2.0)) / (1 + exp(0.3) + exp(2.0))),  # both are right
    ]
    assert found.tolist() == pytest.approx(expected, rel=1e-5)


def test_clusters_follow_antecedents() -> None:
    spans = spans_of([(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)], [1.0, -1.0, -1.0, 2.0, -1.0])
    none = -torch.inf
    scores = [[none, none], [-1, none], [2.0, 1.0], [-1.0, -0.5], [0.1, 0.4]]
    which = [[0, 1], [0, 1], [1, 0], [0, 1], [3, 2]]
    links = Links(torch.tensor(which), torch.tensor(scores))
    # 2 -> 1, 4 -> 2; 0 and 3 stand alone, and score as mentions.
    chained = [(2, 3), (4, 5), (8, 9)]
    assert _follow(spans, links, with_singletons=False) == [chained]
    assert sorted(_follow(spans, links, with_singletons=True)) == [[(0, 1)], chained, [(6, 7)]]


sentence_lengths = st.lists(st.integers(1, 30), min_size=1, max_size=40)


@given(sentence_lengths, st.integers(16, 60), st.integers(0, 30))
@settings(max_examples=200, deadline=None, derandomize=True, database=None)
def test_windows_hold_the_whole_text_and_overlap(
    lengths: list[int], words: int, overlap: int
) -> None:
    config = WindowsConfig(words=words, overlap=min(overlap, words // 2))
    sentences = [tuple(f"{n}.{k}" for k in range(length)) for n, length in enumerate(lengths)]
    text = tuple(chain.from_iterable(sentences))
    covered = 0
    for window in in_windows(sentences, config):
        size = sum(map(len, window.sentences))
        assert size <= config.words or len(window.sentences) == 1
        assert text[window.starts_at :][:size] == tuple(chain.from_iterable(window.sentences))
        assert covered - config.overlap <= window.starts_at <= covered < window.starts_at + size
        covered = window.starts_at + size
    assert covered == len(text)


def test_clusters_of_windows_are_joined_where_they_share_mentions() -> None:
    a, b, c, d = ("w0", "w1", "w2"), ("w3", "w4", "w5"), ("w6", "w7", "w8"), ("w9",)
    windows = [
        PredictedClusters((a, b), (((0, 1), (3, 4)), ((1, 2), (4, 6)))),
        # In the overlap (3 to 6) one cluster shares (3, 4), one nothing; one is there alone.
        PredictedClusters((b, c), (((0, 1), (3, 4)), ((1, 2), (4, 5)), ((2, 3),)), starts_at=3),
        PredictedClusters((c, d), (((0, 1), (3, 4)),), starts_at=6),
    ]
    [whole] = FAMILY.join(iter(windows))
    assert whole.sentences == (a, b, c, d)
    assert whole.clusters == (((0, 1), (3, 4), (6, 7), (9, 10)), ((1, 2), (4, 6)), ((7, 8),))
    without = Coreference(CoreferenceConfig())
    assert next(without.join(iter(windows))).clusters == whole.clusters[:2]


def test_a_long_text_is_read_window_after_window(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, _ = task_of(
        config_of("documents, static", models, tmp_path), examples_for("documents, static")
    )
    sizes: list[int] = []
    decode = Task.decode

    def counted(self: Task, data: object, *, probabilities: bool) -> list[object]:
        examples = data.examples  # type: ignore[attr-defined]
        sizes.append(sum(len(words) for each in examples for words in each.sentences))
        return decode(self, data, probabilities=probabilities)  # type: ignore[arg-type, return-value]

    monkeypatch.setattr(Task, "decode", counted)
    monkeypatch.setattr("polyseme.tasks.task._WINDOW_WORDS", 100)
    sentences = [("bank", "note", "river")] * 400
    windows = in_windows(sentences, WindowsConfig(words=60, overlap=30))
    [found] = task.label(windows)
    assert isinstance(found, PredictedClusters)
    assert found.sentences == tuple(sentences)
    assert len(sizes) > 10
    assert max(sizes) < 100 + 60


def test_what_is_shown_has_brackets_and_numbers() -> None:
    console = Console(width=200, force_terminal=False)
    with console.capture() as capture:
        console.print(HEN)
    assert capture.get().strip() == "[The old hen]1 saw [[her]1 egg]2 . [It]2 was [hers]1 ."
    assert repr(HEN) == (
        "<Predicted: The old hen = her = hers; her egg = It, "
        "The old hen saw her egg . It was hers .>"
    )
    assert HEN.as_json()["clusters"][0] == ((0, 3), (4, 5), (9, 10))


def test_a_page_has_colours_and_no_markup_of_the_text() -> None:
    page = HEN._repr_html_()
    assert page.count("<span") == page.count("</span>") == 5
    inner = '[<span style="background:lightcyan">[her]<sub>1</sub></span> egg]<sub>2</sub></span>'
    assert inner in page
    hostile = PredictedClusters((("<script>", "\x1b[2J"),), (((0, 1), (1, 2)),))
    assert "<script>" not in hostile._repr_html_()
    assert "\x1b" not in hostile._repr_html_()


def test_training_data_without_a_mention_and_windows_that_do_not_move_are_refused() -> None:
    with pytest.raises(InputError, match="no training document has a mention"):
        FAMILY.fit([Document((("a",),))])
    with pytest.raises(ConfigError, match="more than half"):
        build(WindowsConfig, {"words": 100, "overlap": 51})


def test_genres_and_singletons_are_what_the_training_data_has() -> None:
    pair, one = (((0, 1), (1, 2)),), (((0, 1),),)
    fitted = FAMILY.fit([Document((("a", "b"),), pair, "nw"), Document((("a", "b"),), pair)])
    assert (fitted.genres, fitted.has_singletons) == (("nw",), False)
    assert FAMILY.fit([Document((("a",),), one)]).has_singletons
    assert FAMILY.restore(fitted.to_json()) == fitted
    genre = fitted.encode([Document((("a",),), genre=g) for g in ("nw", "bc", "")], with_gold=False)
    assert np.asarray(genre["genre"]).tolist() == [1, 0, 0]
    with pytest.raises(ValueError, match="has_singletons"):
        FAMILY.restore({"genres": [], "has_singletons": 1})


class _Lines(TextReader):
    """Words between spaces, a sentence a line."""

    def __init__(self) -> None:
        super().__init__(None)

    def sentences(self, text: str) -> Iterator[tuple[str, ...]]:
        return (tuple(line.split()) for line in text.splitlines() if line.strip())


def test_a_text_without_a_word_or_longer_than_a_long_novel_is_refused() -> None:
    [found] = FAMILY.of_texts(("a b\nc\n \nd",), _Lines())
    assert found.sentences == (("a", "b"), ("c",), ("d",))
    with pytest.raises(InputError, match="no word"):
        list(FAMILY.of_texts((" \n\n ",), _Lines()))
    with pytest.raises(InputError, match="4,194,305 characters"):
        list(FAMILY.of_texts(("a" * 4_194_305,), _Lines()))
