"""Uses with their features in, groups of uses that belong together out.

    in   `UseFeatures` (N rows), and how fine the groups shall be
    out  `Grouping`: the group of each use, and how stable each group is

There are three views of a use: its context, its substitutes and its bag, each centred and of length
one. The nearest neighbours of every use make a graph in each view, and the graphs are added up: two
uses hold together the more, the more views find them near. Groups are its communities (Louvain;
Blondel et al., 2008). How many there are follows from `resolution`; no number of senses is a fact
that could be read off the text, which is why they are called groups.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from polyseme.devices import thread_pool
from polyseme.errors import InputError
from polyseme.meanings.features.use_features import Floats, Ids, Labels, UseFeatures
from polyseme.meanings.groups.louvain import louvain_communities, modularity

MIN_USES, FEW_USES = 40, 150
"""Fewer uses than the first are not grouped; below the second, groups are often chance."""
MAX_GRAPH = 2_000
"""Uses in the graph, sampled by seed; the others join the group whose mean is nearest."""
RESOLUTION = 0.45
STEP = 2.0
"""What one step finer multiplies the resolution by, and one step coarser divides it by."""
_NEIGHBOURS, _SHARE = 30, 0.1
"""Nearest neighbours of a use in each view, at most; and, of few uses, as a share of them: with
more, all uses would hang together."""
_SVD_DIM = 50
_POWER_ITERATIONS = 4
_STARTS = 3  # groupings of a graph, of which the best is taken
_REPEATS, _PART = 4, 0.8
"""How often part of the uses are grouped again, to see which groups return."""
_MOST_STEPS = 12  # in the search for a number of groups


Views: TypeAlias = Sequence[Floats]


@dataclass(frozen=True, eq=False)
class Grouping:
    """The group of each use, the largest group being 0."""

    labels: Labels  # (N,)
    stability: tuple[float, ...]
    """For each group, how much of it comes together again (mean Jaccard index) when four fifths of
    the uses are grouped again: 1 is all of it."""
    vectors: Floats
    """(N, D) the joined views, of length one: near is alike."""
    resolution: float

    @property
    def num_groups(self) -> int:
        """How many groups there are."""
        return len(self.stability)

    @cached_property
    def means(self) -> Floats:
        """(G, D) the mean of each group, of length one."""
        return group_means(self.vectors, self.labels, self.num_groups)

    def most_typical(self, group: int, number: int) -> Labels:
        """Uses of a group, those nearest to its mean first."""
        members = np.flatnonzero(self.labels == group)
        order = np.argsort(-(self.vectors[members] @ self.means[group]), kind="stable")
        return members[order[:number]]


def group_uses(
    features: UseFeatures, *, finer: int = 0, num_groups: int | None = None, seed: int = 1
) -> Grouping:
    """Group uses by meaning. `finer`: steps to more (or, below 0, fewer) groups than usual.

    The same uses, settings and seed give the same groups.
    """
    if len(features) < MIN_USES:
        raise InputError(
            f"Too few uses to group: {len(features)}. At least {MIN_USES} are needed, and "
            f"{FEW_USES} for reliable groups. Look for more forms of the word, or in more text."
        )
    if num_groups is not None and not 1 <= num_groups <= len(features) // 2:
        raise InputError(f"{len(features)} uses cannot make {num_groups} groups.")
    # Products by one thread each: or the number of processors would decide last bits, and by them
    # groups.
    with thread_pool() as pool:
        return _group(features, RESOLUTION * STEP**finer, num_groups, seed, pool)


def _group(
    features: UseFeatures, resolution: float, num_groups: int | None, seed: int, pool: Executor
) -> Grouping:
    views = _views(features, seed)
    vectors = _joined(views)
    random = np.random.default_rng(seed)
    chosen = _sample(len(vectors), random)
    sample = [view[chosen] for view in views]
    graph = sum(pool.map(_neighbours, sample))
    if num_groups is None:
        found = _communities(graph, resolution, seed, starts=_STARTS)
    else:
        found, resolution = _so_many(sample, graph, num_groups, seed)
    part = max(2, int(_PART * len(found)))
    parts = [random.permutation(len(found))[:part] for _ in range(_REPEATS)]
    is_fixed = num_groups is not None
    again = partial(_stability, sample, found, resolution, is_fixed=is_fixed)
    stability = np.mean(list(pool.map(again, parts, range(_REPEATS))), axis=0).tolist()
    labels = nearest_group(vectors, group_means(vectors[chosen], found, int(found.max()) + 1))
    labels[chosen] = found
    labels, order = by_size(labels)
    return Grouping(labels, tuple(stability[group] for group in order), vectors, resolution)


def join_views(features: UseFeatures, *, seed: int = 1) -> Floats:
    """(N, D) of length one: context, substitutes and bag side by side, each with equal weight."""
    return _joined(_views(features, seed))


def _views(features: UseFeatures, seed: int) -> Views:
    """(N, D) each, rows of length one; or of zeros, where a view tells nothing of a use."""
    views = [centred(features.context), centred(features.bag)]
    if features.substitutes is not None:
        views.append(_substitute_view(features.substitutes, seed))
    return views


def _joined(views: Views) -> Floats:
    return unit_length(np.concatenate(views, axis=1))


def centred(vectors: Floats) -> Floats:
    """What is common to all uses taken away, then of length one."""
    return unit_length(vectors - vectors.mean(axis=0))


def unit_length(vectors: Floats) -> Floats:
    """Each row divided by its length."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: Floats = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return found


def _sample(number: int, random: np.random.Generator) -> Labels:
    """Which uses are in the graph, in order: the first thing that a seed decides."""
    return np.sort(random.permutation(number)[:MAX_GRAPH])


def _substitute_view(substitutes: Ids, seed: int) -> Floats:
    """Which words could stand here: TF-IDF over uses, in few dimensions (latent semantics).

    Fitted on the uses of the graph, which takes most of the time and gains nothing from more.
    """
    from scipy.sparse import csr_matrix

    rows, k = substitutes.shape
    words, columns = np.unique(substitutes, return_inverse=True)
    if len(words) == k:  # a small vocabulary: every word is a substitute of every use
        return np.zeros((rows, 1), np.float32)
    random = np.random.default_rng(seed)
    chosen = _sample(rows, random)
    columns = columns.reshape(rows, k)
    in_uses = np.bincount(columns[chosen].ravel(), minlength=len(words))
    weights = np.log((1 + len(chosen)) / (1 + in_uses)) + 1
    starts = np.arange(0, rows * k + 1, k)
    shape = (rows, len(words))
    values = unit_length(weights[columns]).ravel()
    weighted = csr_matrix((values, columns.ravel(), starts), shape=shape)
    dim = max(1, min(_SVD_DIM, len(chosen) - 1, len(words) - 1))
    return unit_length(weighted @ _components(weighted[chosen], dim, random).T)


def _components(matrix: Any, dim: int, random: np.random.Generator) -> Floats:
    """(dim, W): the largest right singular vectors of a sparse matrix (N, W).

    By random projections (Halko et al., 2011): no library that takes seconds to import.
    """
    start = random.normal(size=(matrix.shape[1], min(dim + 10, *matrix.shape)))
    found: Floats = start.astype(np.float32)
    for _ in range(_POWER_ITERATIONS):
        found = matrix.T @ (matrix @ np.linalg.qr(found)[0])
    basis = np.linalg.qr(matrix @ found)[0]  # (N, K)
    components: Floats = np.linalg.svd((matrix.T @ basis).T, full_matrices=False)[2][:dim]
    return components


def _communities(graph: Any, resolution: float, seed: int, *, starts: int = 1) -> Labels:
    """(N,) the community of each node of a graph; the best of some tries."""
    seeds = np.random.SeedSequence(seed).generate_state(starts).tolist()
    tries = [louvain_communities(graph, resolution=resolution, seed=each) for each in seeds]
    return by_size(max(tries, key=lambda found: modularity(graph, found, resolution)))[0]


def _neighbours(vectors: Floats) -> Any:
    """Sparse (N, N): 1 where one is among the nearest neighbours of the other.

    Graphs of several views are added up. Not their cosines: those of one view are larger than those
    of another, and would outweigh them.
    """
    from scipy.sparse import csr_matrix

    similar = vectors @ vectors.T
    np.fill_diagonal(similar, -1)
    k = max(1, min(_NEIGHBOURS, int(_SHARE * len(vectors))))
    nearest = np.argpartition(-similar, k - 1, axis=1)[:, :k].ravel()
    rows = np.repeat(np.arange(len(vectors)), k)
    is_alike = similar[rows, nearest] > 0  # which no row of zeros is to any other
    edges = (np.ones(int(is_alike.sum()), np.float32), (rows[is_alike], nearest[is_alike]))
    graph = csr_matrix(edges, shape=similar.shape)
    return graph.maximum(graph.T)


def _so_many(views: Views, graph: Any, number: int, seed: int) -> tuple[Labels, float]:
    """Exactly so many groups: finer until there are enough, then the most similar ones merged."""
    resolution = RESOLUTION
    for _ in range(_MOST_STEPS):
        labels = _communities(graph, resolution, seed, starts=_STARTS)
        if labels.max() + 1 >= number:
            break
        resolution *= STEP
    vectors = _joined(views)
    while labels.max() + 1 > number:
        labels = _merge_nearest(vectors, labels)
    if labels.max() + 1 < number:
        raise InputError(
            f"These uses fall into {labels.max() + 1} groups at the finest, not {number}. Ask for "
            "fewer groups."
        )
    return by_size(labels)[0], resolution


def _merge_nearest(vectors: Floats, labels: Labels) -> Labels:
    """One group fewer: the two whose uses are most alike on average are one (Ward's distance)."""
    number = int(labels.max()) + 1
    sizes = np.bincount(labels, minlength=number).astype(np.float64)
    means = _group_sums(vectors, labels, number) / sizes[:, None]
    apart = ((means[:, None] - means[None]) ** 2).sum(axis=2)
    apart *= sizes[:, None] * sizes[None] / (sizes[:, None] + sizes[None])
    apart[np.tril_indices(number)] = np.inf
    first, second = np.unravel_index(int(apart.argmin()), apart.shape)
    merged = np.where(labels == second, first, labels)
    return np.unique(merged, return_inverse=True)[1].astype(np.int64)


def _stability(
    views: Views, labels: Labels, resolution: float, part: Labels, seed: int, *, is_fixed: bool
) -> Floats:
    """For each group its best Jaccard index with a group of part of the uses, grouped again.

    `is_fixed`: as many groups were asked for, and so are in the new grouping, if it has them.
    """
    number = int(labels.max()) + 1
    chosen = [view[part] for view in views]
    again = _communities(sum(map(_neighbours, chosen)), resolution, seed)
    vectors = _joined(chosen) if is_fixed else None
    while vectors is not None and again.max() + 1 > number:
        again = _merge_nearest(vectors, again)
    others = int(again.max()) + 1
    pairs = labels[part] * others + again
    overlap = np.bincount(pairs, minlength=number * others).reshape(number, others)
    union = overlap.sum(axis=1, keepdims=True) + overlap.sum(axis=0) - overlap
    found: Floats = (overlap / union).max(axis=1)
    return found


def group_means(vectors: Floats, labels: Labels, number: int) -> Floats:
    """(G, D) of length one."""
    return unit_length(_group_sums(vectors, labels, number).astype(np.float32))


def _group_sums(vectors: Floats, labels: Labels, number: int) -> npt.NDArray[np.float64]:
    """(G, D), each group's rows added up in their order."""
    sums = np.zeros((number, vectors.shape[1]), np.float64)
    for group in range(number):
        sums[group] = vectors[labels == group].sum(axis=0, dtype=np.float64)
    return sums


def nearest_group(vectors: Floats, means: Floats) -> Labels:
    """(N,) the group whose mean is most alike."""
    found: Labels = (vectors @ means.T).argmax(axis=1).astype(np.int64)
    return found


def by_size(labels: Labels) -> tuple[Labels, list[int]]:
    """Groups renumbered, the largest 0 (of two as large, the one that begins first)."""
    names, firsts, sizes = np.unique(labels, return_index=True, return_counts=True)
    order = np.lexsort((firsts, -sizes))
    ranks = np.empty(len(names), np.int64)
    ranks[order] = np.arange(len(names))
    return ranks[np.searchsorted(names, labels)], [int(names[place]) for place in order]
