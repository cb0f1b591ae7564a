"""What holds for every kind of feed."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor

from polyseme.config import build
from polyseme.errors import ConfigError, InputError
from polyseme.files import canonical_json
from polyseme.transfer.fed import Fed
from polyseme.transfer.feed import Feed, FeedConfig, load_model
from polyseme.transfer.known import Known
from polyseme.transfer.mix import LayerMix
from transfer.making import FEEDS, SENTENCES, feed_of, feed_one

Models = dict[str, Path]
every_feed = pytest.mark.parametrize("values", FEEDS.values(), ids=FEEDS)
ALL = [*SENTENCES, ["new", "Ban", "words"]]


def parts(fed: Fed) -> dict[str, Tensor]:
    named = {"first": fed.first, "middle": fed.middle, "last": fed.last}
    return {name: part for name, part in named.items() if part is not None}


def feed_all(feed: Feed, numbers: list[int] | None = None) -> Fed:
    with torch.no_grad():
        fed: Fed = feed(feed.prepare(ALL).gather(numbers or list(range(len(ALL)))))
    return fed


def train_a_little(feed: Feed, steps: int = 3) -> None:
    """Towards zero: every parameter that can move does."""
    supply = feed.prepare(ALL)
    feed.train()
    optimizer = torch.optim.AdamW([p for p in feed.parameters() if p.requires_grad], lr=0.01)
    for step in range(steps):
        optimizer.zero_grad()
        fed = feed(supply.gather(range(len(ALL))), step=step)
        far = [(part - 1).square().mean() for part in parts(fed).values()]
        (torch.stack(far).sum() + feed.penalty()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    feed.eval()


@every_feed
def test_widths_are_known_beforehand(values: Any, models: Models, tmp_path: Path) -> None:
    feed = feed_of(values, models, tmp_path)
    fed = feed_all(feed)
    widths = {name: width for name, width in feed.widths._asdict().items() if width}
    assert {name: part.shape[-1] for name, part in parts(fed).items()} == widths
    assert all(part.shape[:2] == fed.mask.shape for part in parts(fed).values())


@every_feed
def test_the_mask_is_true_at_words_and_vectors_are_zero_elsewhere(
    values: Any, models: Models, tmp_path: Path
) -> None:
    fed = feed_all(feed_of(values, models, tmp_path))
    assert fed.mask.sum(dim=1).tolist() == [len(words) for words in ALL]
    for part in parts(fed).values():
        assert not part[~fed.mask].any()
        assert part.isfinite().all()
        assert part[fed.mask].any(dim=-1).all()


@every_feed
def test_what_is_fed_does_not_depend_on_neighbours(
    values: Any, models: Models, tmp_path: Path
) -> None:
    feed = feed_of(values, models, tmp_path)
    together = parts(feed_all(feed))
    for row, words in enumerate(ALL):
        alone = parts(feed_one(feed, words))
        for name, part in together.items():
            # Layers from the cache are rounded to float16; those worked out for one are not.
            assert torch.allclose(part[row, : len(words)], alone[name][0], atol=2e-3, rtol=2e-3)


@every_feed
def test_the_order_of_sentences_changes_nothing(
    values: Any, models: Models, tmp_path: Path
) -> None:
    feed = feed_of(values, models, tmp_path)
    here = parts(feed_all(feed))
    there = parts(feed_all(feed, [3, 0, 4, 1, 2]))
    for name, part in here.items():
        assert torch.allclose(part[[3, 0, 4, 1, 2]], there[name], atol=1e-5)


@every_feed
def test_selected_sentences_are_as_if_gathered_alone(
    values: Any, models: Models, tmp_path: Path
) -> None:
    feed = feed_of(values, models, tmp_path)
    whole = feed.prepare(ALL).gather(range(len(ALL)))
    with torch.no_grad():
        some = feed(whole.select(torch.tensor([2, 0])))
    expected = feed_all(feed, [2, 0])
    assert torch.equal(some.mask, expected.mask)
    for name, part in parts(expected).items():
        assert torch.allclose(parts(some)[name], part, atol=1e-5)


@every_feed
def test_all_that_is_trained_has_a_rate_and_is_saved(
    values: Any, models: Models, tmp_path: Path
) -> None:
    feed = feed_of(values, models, tmp_path)
    trained = {name for name, parameter in feed.named_parameters() if parameter.requires_grad}
    assert set(feed.param_groups()) == trained
    assert trained <= set(feed.state_dict())
    before = {name: weight.clone() for name, weight in feed.state_dict().items()}
    train_a_little(feed)
    moved = {
        name for name, weight in feed.state_dict().items() if not torch.equal(weight, before[name])
    }
    assert moved <= trained
    # Segments and places that no sentence has stay where they are.
    assert {name for name in trained - moved if "segments" not in name} == set()


@every_feed
def test_saved_then_loaded_feeds_the_same(values: Any, models: Models, tmp_path: Path) -> None:
    feed = feed_of(values, models, tmp_path)
    train_a_little(feed)
    state = {name: weight.contiguous() for name, weight in feed.state_dict().items()}
    known = Known.from_json(feed.known.as_json())
    again = Feed.of(feed.config, known, load_model(feed.config, "cpu")).eval()
    again.load_state_dict(load(save(state)))
    for name, part in parts(feed_all(feed)).items():
        assert torch.equal(part, parts(feed_all(again))[name])
    assert again.fingerprint() == feed.fingerprint()


@every_feed
def test_twice_gives_the_same(values: Any, models: Models, tmp_path: Path) -> None:
    first, second = (parts(feed_all(feed_of(values, models, tmp_path))) for _ in range(2))
    assert all(torch.equal(part, second[name]) for name, part in first.items())


def with_file(path: Path, number: int) -> dict[str, Any]:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{ALL[0][0]} 1 2\n{ALL[0][1]} 3 {number}\n", encoding="utf-8")
    return {"words": {"vectors": {"kind": "file", "path": path}}}


def test_vectors_may_be_moved_and_are_told_from_others(models: Models, tmp_path: Path) -> None:
    here, there = tmp_path / "here.txt", tmp_path / "far" / "there.txt"
    first = feed_of(with_file(here, 4), models, tmp_path).fingerprint()
    assert feed_of(with_file(there, 4), models, tmp_path).fingerprint() == first
    assert feed_of(with_file(here, 5), models, tmp_path).fingerprint() != first
    assert str(tmp_path) not in canonical_json(first)


def test_each_place_learns_a_mix_of_its_own(models: Models, tmp_path: Path) -> None:
    feed = feed_of(FEEDS["frozen at both ends"], models, tmp_path)
    assert set(feed.told()) == {"first", "last"}
    train_a_little(feed)
    told = feed.told()
    assert told["first"] != told["last"]
    assert all(abs(sum(mix["layers"]) - 1) < 1e-6 for mix in told.values())


def test_the_penalty_is_that_of_all_mixes(models: Models, tmp_path: Path) -> None:
    feed = feed_of(FEEDS["frozen at both ends"], models, tmp_path, mix={"penalty": 0.5})
    with torch.no_grad():
        for mix in feed.mixes.values():
            assert isinstance(mix, LayerMix)
            assert mix.weights is not None
            mix.weights.copy_(torch.tensor([1.0, 0.0, -1.0]))
    assert float(feed.penalty().detach()) == 2.0
    assert feed_of(FEEDS["table"], models, tmp_path).penalty() == 0


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "words, a model, or both"),
        ({"model": {"kind": "frozen", "model": "m"}, "place": "output"}, "leaves the input empty"),
        ({"words": {}}, "vectors, spelling, or both"),
        ({"words": {"vectors": {"kind": "new"}}}, "set trained = true"),
    ],
)
def test_settings_that_feed_nothing_are_refused(values: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        build(FeedConfig, values)


def test_sentences_that_cannot_be_fed_are_refused(models: Models, tmp_path: Path) -> None:
    feed = feed_of(FEEDS["table"], models, tmp_path)
    cases: list[tuple[Any, str]] = [
        ([], "no sentences"),
        ([["a"], []], "Sentence 1 has no words"),
        (["a text"], "a list of words was expected"),
        ([["\ud800"]], "half a character"),
    ]
    for sentences, said in cases:
        with pytest.raises(InputError, match=said):
            feed.prepare(sentences)
    with pytest.raises(InputError, match="not all among the 1"):
        feed.prepare([["a"]]).gather([1])
