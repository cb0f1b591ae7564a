"""Uses with their features in, groups of uses that belong together out.

    in   `UseFeatures` (N rows), and how fine the groups shall be
    out  `Grouping`: the group of each use, and how stable each group is

Three views of a use are joined: its context, its substitutes and its bag, each centred and of
length one. The nearest neighbours of every use make a graph, and groups are its communities
(Louvain; Blondel et al., 2008). How many there are follows from `resolution`; no number of senses
is a fact that could be read off the text, which is why they are called groups.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from polyseme.errors import InputError
from polyseme.meanings.features import Floats, UseFeatures

Labels = npt.NDArray[np.int64]

MIN_USES, FEW_USES = 40, 150
"""Fewer uses than the first are not grouped; below the second, groups are often chance."""
MAX_GRAPH = 2_000
"""Uses in the graph, sampled by seed; the others join the group whose mean is nearest."""
RESOLUTION = 0.3
STEP = 2.0
"""What one step finer multiplies the resolution by, and one step coarser divides it by."""
_NEIGHBOURS = 30
_SVD_DIM = 50
_REPEATS, _PART = 4, 0.8
"""How often part of the uses are grouped again, to see which groups return."""
_MOST_STEPS = 12  # in the search for a number of groups


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
            f"{len(features)} uses are too few to be grouped: at least {MIN_USES} are needed, and "
            f"{FEW_USES} to trust groups. Look for more forms of the word, or in more text."
        )
    if num_groups is not None and not 1 <= num_groups <= len(features) // 2:
        raise InputError(f"{len(features)} uses cannot make {num_groups} groups.")
    vectors = join_views(features, seed=seed)
    random = np.random.default_rng(seed)
    chosen = np.sort(random.permutation(len(vectors))[:MAX_GRAPH])
    graph = vectors[chosen]
    resolution = RESOLUTION * STEP**finer
    if num_groups is None:
        found = communities(graph, resolution, seed)
    else:
        found, resolution = _so_many(graph, num_groups, seed)
    is_fixed = num_groups is not None
    stability = _stability(graph, found, resolution, random, is_fixed=is_fixed)
    labels = nearest_group(vectors, group_means(graph, found, int(found.max()) + 1))
    labels[chosen] = found
    labels, order = by_size(labels)
    return Grouping(labels, tuple(stability[group] for group in order), vectors, resolution)


def join_views(features: UseFeatures, *, seed: int = 1) -> Floats:
    """(N, D) of length one: context, substitutes and bag side by side, each with equal weight."""
    views = [centred(features.context), centred(features.bag)]
    if features.substitutes is not None:
        views.append(_substitute_view(features.substitutes, seed))
    return unit_length(np.concatenate(views, axis=1))


def centred(vectors: Floats) -> Floats:
    """What is common to all uses taken away, then of length one."""
    return unit_length(vectors - vectors.mean(axis=0))


def unit_length(vectors: Floats) -> Floats:
    """Each row divided by its length."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: Floats = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return found


def _substitute_view(substitutes: npt.NDArray[np.int32], seed: int) -> Floats:
    """Which words could stand here: TF-IDF over uses, in few dimensions (latent semantics)."""
    from scipy.sparse import csr_matrix
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    rows, k = substitutes.shape
    words, columns = np.unique(substitutes, return_inverse=True)
    if len(words) == k:  # a small vocabulary: every word is a substitute of every use
        return np.zeros((rows, 1), np.float32)
    ones = np.ones(rows * k, np.float32)
    starts = np.arange(0, rows * k + 1, k)
    counts = csr_matrix((ones, columns.ravel(), starts), shape=(rows, len(words)))
    weighted = TfidfTransformer().fit_transform(counts)
    dim = max(1, min(_SVD_DIM, rows - 1, len(words) - 1))
    return unit_length(TruncatedSVD(dim, random_state=seed).fit_transform(weighted))


def communities(vectors: Floats, resolution: float, seed: int) -> Labels:
    """(N,) the community of each row in the graph of nearest neighbours."""
    import networkx

    graph: Any = networkx.from_scipy_sparse_array(_neighbour_graph(vectors))
    found = networkx.community.louvain_communities(graph, resolution=resolution, seed=seed)
    labels = np.zeros(len(vectors), np.int64)
    for number, members in enumerate(found):
        labels[list(members)] = number
    return by_size(labels)[0]


def _neighbour_graph(vectors: Floats) -> Any:
    """Sparse (N, N): the cosine to each of the nearest neighbours, either of which will do."""
    from scipy.sparse import csr_matrix

    similar = vectors @ vectors.T
    np.fill_diagonal(similar, -1)
    k = min(_NEIGHBOURS, len(vectors) - 1)
    nearest = np.argpartition(-similar, k - 1, axis=1)[:, :k]
    rows = np.repeat(np.arange(len(vectors)), k)
    weights = np.maximum(similar[rows, nearest.ravel()], 0)
    graph = csr_matrix((weights, (rows, nearest.ravel())), shape=similar.shape)
    return graph.maximum(graph.T)


def _so_many(vectors: Floats, number: int, seed: int) -> tuple[Labels, float]:
    """Exactly so many groups: finer until there are enough, then the most similar ones merged."""
    resolution = RESOLUTION
    for _ in range(_MOST_STEPS):
        labels = communities(vectors, resolution, seed)
        if labels.max() + 1 >= number:
            break
        resolution *= STEP
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
    sums = np.zeros((number, vectors.shape[1]), np.float64)
    np.add.at(sums, labels, vectors)
    sizes = np.bincount(labels, minlength=number).astype(np.float64)
    means = sums / sizes[:, None]
    apart = ((means[:, None] - means[None]) ** 2).sum(axis=2)
    apart *= sizes[:, None] * sizes[None] / (sizes[:, None] + sizes[None])
    apart[np.tril_indices(number)] = np.inf
    first, second = np.unravel_index(int(apart.argmin()), apart.shape)
    merged = np.where(labels == second, first, labels)
    return np.unique(merged, return_inverse=True)[1].astype(np.int64)


def _stability(
    vectors: Floats,
    labels: Labels,
    resolution: float,
    random: np.random.Generator,
    *,
    is_fixed: bool,
) -> list[float]:
    """For each group the mean, over new groupings of part of the uses, of its best Jaccard index.

    `is_fixed`: as many groups were asked for, and so are in each new grouping, if it has them.
    """
    number = int(labels.max()) + 1
    found = np.zeros((_REPEATS, number))
    for repeat in range(_REPEATS):
        chosen = random.permutation(len(vectors))[: max(2, int(_PART * len(vectors)))]
        again = communities(vectors[chosen], resolution, seed=repeat)
        while is_fixed and again.max() + 1 > number:
            again = _merge_nearest(vectors[chosen], again)
        overlap = np.zeros((number, int(again.max()) + 1))
        np.add.at(overlap, (labels[chosen], again), 1)
        union = overlap.sum(axis=1, keepdims=True) + overlap.sum(axis=0) - overlap
        found[repeat] = (overlap / union).max(axis=1)
    return [float(value) for value in found.mean(axis=0)]


def group_means(vectors: Floats, labels: Labels, number: int) -> Floats:
    """(G, D) of length one."""
    sums = np.zeros((number, vectors.shape[1]), np.float64)
    np.add.at(sums, labels, vectors)
    return unit_length(sums.astype(np.float32))


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
