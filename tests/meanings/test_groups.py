"""Groups of uses: found where they were put, the same every time, stable where they are real."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.metrics import adjusted_rand_score

from polyseme.meanings.features.use_features import Floats, UseFeatures
from polyseme.meanings.groups.grouping import (
    MAX_GRAPH,
    Limits,
    group_uses,
    how_separate,
    join_views,
    merge_groups,
)


def planted(
    sizes: list[int], *, noise: float = 0.6, seed: int = 0
) -> tuple[UseFeatures, list[int]]:
    """Features drawn around one point for each group, in random order; and whose they are."""
    random = np.random.default_rng(seed)
    number, dim, words = len(sizes), 16, 40
    gold = random.permutation(np.repeat(np.arange(number), sizes))
    points = random.normal(size=(number, dim))

    def view() -> Floats:
        noisy = points[gold] + noise * random.normal(size=(len(gold), dim))
        found: Floats = noisy.astype(np.float32)
        return found

    own = [random.permutation(words)[:12] + words * group for group in range(number)]
    substitutes = np.stack([random.permutation(own[group])[:10] for group in gold])
    return UseFeatures(view(), view(), substitutes.astype(np.int32)), gold.tolist()


def agree(found: list[int], gold: list[int]) -> bool:
    """Whether two partitions are the same, whatever the groups are called."""
    pairs = set(zip(found, gold, strict=True))
    return len(pairs) == len(set(found)) == len(set(gold))


def test_planted_groups_are_found() -> None:
    features, gold = planted([120, 70, 50])
    grouping = group_uses(features)
    assert agree(grouping.labels.tolist(), gold)
    assert grouping.num_groups == 3
    assert min(grouping.stability) > 0.95


def test_the_largest_group_is_the_first() -> None:
    features, _ = planted([50, 120, 70])
    sizes = np.bincount(group_uses(features).labels)
    assert sizes.tolist() == [120, 70, 50]


def test_the_same_uses_give_the_same_groups() -> None:
    features, _ = planted([60, 60], noise=2.5)
    one, two = (group_uses(features, seed=3, limits=Limits(0, 0)) for _ in range(2))
    assert np.array_equal(one.labels, two.labels)
    assert one.stability == two.stability
    assert np.array_equal(one.vectors, two.vectors)


def test_chance_is_less_stable_than_real_groups() -> None:
    random = np.random.default_rng(1)
    noise = random.normal(size=(200, 16)).astype(np.float32)
    words = random.integers(0, 500, (200, 10)).astype(np.int32)
    chance = group_uses(UseFeatures(noise, noise[::-1].copy(), words), num_groups=3)
    real = group_uses(planted([80, 70, 50])[0], num_groups=3)
    assert np.mean(chance.stability) < 0.7 < np.mean(real.stability)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 6])
def test_as_many_groups_as_asked_for(number: int) -> None:
    grouping = group_uses(planted([120, 70, 50], noise=1.5)[0], num_groups=number)
    assert grouping.num_groups == number == len(set(grouping.labels.tolist()))


def test_fewer_groups_than_there_are_join_whole_groups() -> None:
    features, gold = planted([120, 70, 50])
    found = group_uses(features, num_groups=2).labels.tolist()
    assert len(set(zip(found, gold, strict=True))) == 3  # none of the three is split


def test_finer_gives_no_fewer_groups_and_coarser_no_more() -> None:
    planted_ones, _ = planted([60] * 5, noise=2.0)
    features = UseFeatures(planted_ones.context, planted_ones.bag, None)
    numbers = [group_uses(features, finer=step).num_groups for step in (-3, 0, 3)]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[2]


def test_uses_beyond_the_graph_join_the_group_that_is_nearest() -> None:
    features, gold = planted([MAX_GRAPH - 300, 500, 200])
    grouping = group_uses(features)
    assert len(grouping.labels) == MAX_GRAPH + 400
    assert agree(grouping.labels.tolist(), gold)


def test_substitutes_that_are_the_same_everywhere_tell_nothing() -> None:
    features, gold = planted([60, 60])
    same = np.tile(np.arange(10, dtype=np.int32), (120, 1))
    grouping = group_uses(UseFeatures(features.context, features.bag, same))
    assert agree(grouping.labels.tolist(), gold)
    without = group_uses(UseFeatures(features.context, features.bag, None))
    assert np.array_equal(grouping.labels, without.labels)


def test_every_view_has_the_same_weight() -> None:
    features, _ = planted([40, 40])
    joined = join_views(features)
    assert np.allclose(np.linalg.norm(joined, axis=1), 1, atol=1e-5)
    scaled = UseFeatures(features.context * 100, features.bag, features.substitutes)
    assert np.allclose(join_views(scaled), joined, atol=1e-5)


def test_the_most_typical_uses_are_nearest_to_the_mean() -> None:
    grouping = group_uses(planted([80, 60])[0])
    order = grouping.most_typical(0, 80)
    mean = grouping.vectors[grouping.labels == 0].mean(axis=0)
    cosines = grouping.vectors[order] @ mean
    assert (np.diff(cosines) <= 1e-6).all()
    assert len(set(order.tolist())) == 80


def test_uses_of_one_meaning_are_one_group_that_has_no_stability() -> None:
    random = np.random.default_rng(1)
    noise = random.normal(size=(200, 16)).astype(np.float32)
    words = random.integers(40, size=(200, 10)).astype(np.int32)
    grouping = group_uses(UseFeatures(noise, noise.copy(), words), limits=Limits(0.9, 0.9))
    assert grouping.is_one_meaning
    assert grouping.num_groups == 1
    assert np.isnan(grouping.stability).all()


def test_what_is_less_separate_than_the_limit_is_split_if_asked_to() -> None:
    features, gold = planted([120, 80], noise=1.0)
    limits = Limits(1.01, 1.01)
    assert group_uses(features, limits=limits).is_one_meaning
    assert not group_uses(features, limits=Limits(0.3, 0.3)).is_one_meaning
    split = group_uses(features, limits=limits, num_groups=2)
    assert not split.is_one_meaning
    assert agree(split.labels.tolist(), gold)
    assert group_uses(features, limits=Limits(0.7, 0.99), finer=1).num_groups >= 2


def test_groups_are_merged_until_so_many_links_between_them_are_missing() -> None:
    links = np.ones((6, 6)) - np.eye(6)  # each with each
    labels = np.repeat([0, 1, 2], 2)
    merged, missing = merge_groups(labels, csr_matrix(links), 2.0)
    assert len(set(merged.tolist())) == 2  # whether there is only one is not asked here
    # Four nodes and two: 8 links between them, where 16 * 10 / 26 would be there by chance.
    twelve, eight, two = 12, 8, 2
    expected = (twelve + eight) * (two + eight) / (twelve + two + 2 * eight)
    assert missing == pytest.approx(1 - eight / expected)
    links[:2, 2:] = links[2:, :2] = 0
    merged, missing = merge_groups(labels, csr_matrix(links), 0.9)
    assert missing == 1
    assert merged.tolist() == [1, 1, 0, 0, 0, 0]


def test_uses_that_fall_into_two_parts_are_wholly_separate_and_those_all_alike_are_not() -> None:
    apart = how_separate(planted([80, 80], noise=0.01)[0])
    together = how_separate(planted([160], noise=1.0)[0])
    assert apart.split == pytest.approx(1)
    assert apart.merge == pytest.approx(1)
    assert together.split < 0.65
    assert together.merge < 0.6


def test_clusters_that_views_share_are_more_separate_than_those_of_each_view_alone() -> None:
    def in_order(seed: int) -> UseFeatures:
        features, gold = planted([60, 60], noise=1.5, seed=seed)
        return features.select(np.argsort(gold, kind="stable"))

    one, topic, expected = (in_order(seed) for seed in (1, 2, 3))
    shared = replace(one, topic=topic.context, expected=expected.context)
    random = np.random.default_rng(4)
    alone = replace(shared, expected=expected.context[random.permutation(120)])
    assert how_separate(shared).split > how_separate(alone).split + 0.1


def test_words_shuffled_over_all_lines_have_one_meaning() -> None:
    """The limits are those of other words that are shuffled alike."""
    random = np.random.default_rng(3)

    def shuffled() -> UseFeatures:
        features, _ = planted([100, 100], seed=int(random.integers(1_000)))
        assert features.substitutes is not None
        context, bag, substitutes = (features.select(random.permutation(200)) for _ in range(3))
        return UseFeatures(context.context, bag.bag, substitutes.substitutes)

    limit = np.quantile([how_separate(shuffled()).split for _ in range(20)], 0.95)
    limits = Limits(0.5, float(limit))
    whole = [group_uses(shuffled(), limits=limits).is_one_meaning for _ in range(10)]
    assert sum(whole) >= 8


def test_copies_do_not_make_a_group_and_go_with_the_first_of_them() -> None:
    features, _ = planted([90, 60])
    copies = np.repeat(features.context[:1] + 9, 100, axis=0)
    context = np.concatenate([features.context, copies]).astype(np.float32)
    assert features.substitutes is not None
    words = np.concatenate([features.substitutes, np.repeat([[99] * 10], 100, axis=0)])
    both = UseFeatures(context, context.copy(), words.astype(np.int32))
    copy_of = np.concatenate([np.arange(150), np.full(100, 150)])
    assert 100 in np.bincount(group_uses(both).labels)
    grouping = group_uses(both, copy_of=copy_of)
    assert len(set(grouping.labels[150:].tolist())) == 1
    assert 100 not in np.bincount(grouping.labels)


def test_substitutes_count_more_than_another_view() -> None:
    features, gold = planted([100, 100])
    order = np.random.default_rng(1).permutation(200)
    bag = np.random.default_rng(2).normal(size=(200, 16)).astype(np.float32)
    assert features.substitutes is not None
    labels = group_uses(
        UseFeatures(features.context, bag, features.substitutes[order]), num_groups=2
    ).labels
    by_words = adjusted_rand_score(np.array(gold)[order], labels)
    assert by_words > 0.5 > adjusted_rand_score(gold, labels)


def test_topics_are_a_view_where_there_are_some() -> None:
    features, gold = planted([100, 80], noise=4.0)
    topic = np.eye(2, 8, dtype=np.float32)[gold] + np.random.default_rng(2).normal(
        scale=0.05, size=(180, 8)
    ).astype(np.float32)
    told = UseFeatures(features.context, features.bag, features.substitutes, topic, topic)
    about = features.bag.shape[1]  # outside of a corpus
    assert join_views(told).shape[1] == join_views(features).shape[1] - about + 8 + 8
    assert told.select(np.arange(3)).topic is not None
