"""State carried from batch to batch, as the old programs did it, but as a value."""

from legacy.published import (
    TOLERANCE,
    Published,
    each_mistake,
    each_set,
    furthest,
)
from legacy.stateful import embed_stateful

from polyseme.model import Model


def gap(model: Model, published: Published, *, carry: bool = True) -> float:
    """How far all ten batches are from what was published."""
    state, gaps = None, []
    for sentences, tops in zip(published.batches, published.tops, strict=True):
        found, after = embed_stateful(model, sentences, state)
        state = after if carry else None
        gaps += [furthest(each[-1], top) for each, top in zip(found, tops, strict=True)]
    assert len(gaps) == 30
    return max(gaps)


@each_set
def test_all_batches_are_as_published_when_state_is_carried(published: Published) -> None:
    assert gap(published.model(), published) <= TOLERANCE


@each_set
def test_without_carrying_they_are_not(published: Published) -> None:
    assert gap(published.model(), published, carry=False) > 0.5


@each_set
@each_mistake
def test_a_mistake_in_reading_would_be_seen(published: Published, mistake: object) -> None:
    assert callable(mistake)
    assert gap(mistake(published.model()), published) > 1e-2
