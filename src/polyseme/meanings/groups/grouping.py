"""Uses with their features in, groups of uses that belong together out.

    in   `UseFeatures` (N rows), and how fine the groups shall be
    out  `Grouping`: the group of each use, and how stable each group is

There are up to five views of a use: its context, its sentence (the bag), its topic, its
substitutes, and what those are about; each centred and of length one. The nearest neighbours of
every use make a graph in each view, and the graphs are added up, substitutes counting more: two
uses hold together the more, the more views find them near. Groups are its communities (Louvain;
Blondel et al., 2008), of which those are merged that are hardly apart: of the links between them
that chance would have put there, too few are missing.

Whether there is more than one group at all is asked before any groups, by the mean of two numbers,
the *separation*. One is of such a graph as a whole, with other weights, as contexts and sentences
tell uses of one meaning apart, too: the second eigenvalue of its normalized adjacency matrix is 1
if it falls into two parts, and the lower, the more it hangs together (spectral graph theory; Chung,
1997). The other is how far views agree on where the uses come apart: any view has its clusters, by
topic or by grammar, but those of meanings show in several. It is the first canonical correlation of
the leading eigenvectors of two views' graphs. The uses of a word with one meaning have some
separation, too; how much depends on the texts and the model. `Limits` has it, by default as
measured in an encyclopedia, or of a corpus's own words (`calibration.py`).
"""

import ctypes
import math
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from polyseme.devices import thread_pool
from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.loader import GraphShape, Kernel, StridedArray
from polyseme.errors import InputError
from polyseme.meanings.features.topics import principal_components
from polyseme.meanings.features.use_features import Floats, Ids, Labels, UseFeatures

MIN_USES, FEW_USES = 40, 150
"""Fewer uses than the first are not grouped; below the second, groups are often chance."""
MAX_GRAPH = 1_000
"""Uses in the graph, sampled by seed; the others join the group whose mean is nearest."""
RESOLUTION = 0.6
"""Of the communities that are then merged."""
STEP = 2.0
"""What one step finer multiplies the resolution by, and one step coarser divides it by."""
_STRICTER = 0.8  # what a step finer multiplies the separation by at which groups are merged
_NEIGHBOURS = 0.1
"""Nearest neighbours of a use in each view, as a share of all uses: so that graphs of any size are
alike, and limits measured on few uses hold for many."""
_SVD_DIM = 50
_LEAST_GROUPS = 2  # that are not merged: whether there is one only has been asked before
_STARTS = 3  # groupings of a graph, of which the best is taken
_REPEATS, _PART = 4, 0.8
"""How often part of the uses are grouped again, to see which groups return."""
_MOST_STEPS = 12  # in the search for a number of groups
_LEADING = 3  # eigenvectors of a view, by which it is compared with another


@dataclass(frozen=True, eq=False)
class View:
    """One way to see which uses are alike, and how much it counts.

    Two weights, since what tells best whether there are groups does not tell best which.
    """

    name: str
    vectors: Floats  # (N, D), rows of length one; or of zeros, where it tells nothing of a use
    in_groups: int = 1
    in_separation: int = 1
    is_joined: bool = True  # whether it counts when uses are compared one by one

    def select(self, chosen: Labels) -> "View":
        """Of some uses."""
        return replace(self, vectors=self.vectors[chosen])


Views: TypeAlias = Sequence[View]


@dataclass(frozen=True)
class Limits:
    """How separate groups must be."""

    merge: float = 0.55
    """The least share of missing links between two groups: of fewer, one is made."""
    split: float = 0.82  # the least separation of a word with more than one group

    def finer(self, steps: int) -> "Limits":
        """For so many steps to more groups: then a word is always split; or, below 0, to fewer."""
        if steps > 0:
            return Limits(self.merge * _STRICTER**steps, 0.0)
        share = _STRICTER**-steps
        return Limits(1 - (1 - self.merge) * share, 1 - (1 - self.split) * share)


@dataclass(frozen=True, eq=False)
class Grouping:
    """The group of each use, the largest group being 0."""

    labels: Labels  # (N,)
    stability: tuple[float, ...]
    """For each group, how much of it comes together again (mean Jaccard index) when four fifths of
    the uses are grouped again: 1 is all of it. Not a number, if it was not measured."""
    vectors: Floats  # (N, D) the joined views, of length one: near is alike
    separation: float = math.nan
    """How nearly the uses fall into two parts, the same in all views: 1 is wholly."""
    is_one_meaning: bool = False
    """Whether the uses are one group because they do not fall apart enough."""

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
    features: UseFeatures,
    *,
    finer: int = 0,
    num_groups: int | None = None,
    seed: int = 1,
    limits: Limits | None = None,
    copy_of: Labels | None = None,
) -> Grouping:
    """Group uses by meaning. `finer`: steps to more (or, below 0, fewer) groups than usual.

    `copy_of`: for each use the one whose line its own is a copy of. Copies do not count, or a line
    that is there a hundred times would be a group; each goes where the first of them does. If too
    few are left without them, they count after all. The same uses, settings and seed give the same
    groups.
    """
    if len(features) < MIN_USES:
        raise InputError(
            f"Too few uses to group: {len(features)}. At least {MIN_USES} are needed, and "
            f"{FEW_USES} for reliable groups. Look for more forms of the word, or in more text."
        )
    firsts = np.arange(len(features)) if copy_of is None else np.unique(copy_of)
    if len(firsts) < MIN_USES:  # hardly anything but copies: then they count
        firsts, copy_of = np.arange(len(features)), None
    if num_groups is not None and not 1 <= num_groups <= len(features) // 2:
        raise InputError(f"{len(features)} uses cannot make {num_groups} groups.")
    # Products by one thread each: or the number of processors would decide last bits, and by them
    # groups.
    find = _Search(RESOLUTION * STEP**finer, (limits or Limits()).finer(finer), num_groups)
    with thread_pool() as pool:
        found = _group(features, find, firsts, seed, pool)
    if copy_of is None:
        return found
    labels, order = by_size(found.labels[copy_of])
    return replace(found, labels=labels, stability=tuple(found.stability[n] for n in order))


@dataclass(frozen=True)
class _Search:
    """How groups are looked for."""

    resolution: float
    limits: Limits
    num_groups: int | None  # if given, so many are made, however separate

    def communities(self, views: Views, graph: Any, seed: int, starts: int) -> Labels:
        """The group of each use, if there is more than one."""
        if self.num_groups is not None:
            return _so_many(views, graph, self.num_groups, self.resolution, seed, starts)
        labels = _communities(graph, self.resolution, seed, starts=starts)
        return merge_groups(labels, graph, self.limits.merge)[0]


def _group(
    features: UseFeatures, find: _Search, rows: Labels, seed: int, pool: Executor
) -> Grouping:
    views = _views(features, seed)
    vectors = _joined(views)
    random = np.random.default_rng(seed)
    chosen = rows[_sample(len(rows), random)]
    sample = [view.select(chosen) for view in views]
    graphs = _graphs(sample, pool)
    graph, separation = _in_groups(sample, graphs), _separation(sample, graphs)
    found = np.zeros(len(chosen), np.int64)
    if find.num_groups is not None or separation >= find.limits.split:
        found = find.communities(sample, graph, seed, _STARTS)
    number = int(found.max()) + 1
    stability = np.full(number, np.nan)
    if number > 1:
        part = max(2, int(_PART * len(found)))
        parts = [random.permutation(len(found))[:part] for _ in range(_REPEATS)]
        again = partial(_stability, sample, found, find)
        stability = np.mean(list(pool.map(again, parts, range(_REPEATS))), axis=0)
    labels = nearest_group(vectors, group_means(vectors[chosen], found, number))
    labels[chosen] = found
    labels, order = by_size(labels)
    is_one = number == 1 and find.num_groups is None
    return Grouping(labels, tuple(stability[order].tolist()), vectors, separation, is_one)


def how_separate(features: UseFeatures, *, seed: int = 1) -> Limits:
    """What the limits would have to be for the uses to be two groups, and no less."""
    views = _views(features, seed)
    graphs = _graphs(views)
    graph = _in_groups(views, graphs)
    labels = _communities(graph, RESOLUTION, seed, starts=_STARTS)
    return Limits(merge_groups(labels, graph, math.inf)[1], _separation(views, graphs))


def merge_groups(labels: Labels, graph: Any, limit: float) -> tuple[Labels, float]:
    """Groups merged, those least apart first, until two are left or so many links are missing.

    Also the share of links that are missing between the two that would be merged next.
    """
    links = _links_between(labels, graph)
    least = 0.0
    while len(links) > 1:
        missing = _missing_links(links)
        one, two = map(int, np.unravel_index(int(missing.argmin()), missing.shape))
        least = float(missing[one, two])
        if len(links) == _LEAST_GROUPS or least >= limit:
            break
        labels = np.where(labels == one, two, labels)
        labels = labels - (labels > one)
        links[two] += links[one]
        links[:, two] += links[:, one]
        links = np.delete(np.delete(links, one, 0), one, 1)
    return by_size(labels)[0], least


def _separation(views: Views, graphs: Sequence[Any]) -> float:
    """How nearly the uses fall into two parts: 1 is wholly, and the same in all views."""
    weights = [view.in_separation for view in views]
    whole = float(_leading(_weighted(graphs, weights), 1)[0][0])
    by_name = {view.name: graph for view, graph in zip(views, graphs, strict=True)}
    compared = [by_name.get(name) for name in ("expected", "context", "substitutes")]
    if any(graph is None or not graph.nnz for graph in compared):
        return round(whole, 6)
    expected, *others = (_leading(graph, _LEADING)[1] for graph in compared)
    # The first canonical correlation of two sets of vectors, each orthogonal and of length one.
    first = [float(np.linalg.svd(expected.T @ v, compute_uv=False)[0]) for v in others]
    agreement = float(np.mean(first))
    return round((whole + agreement) / 2, 6)  # the last bits mean nothing


def _leading(graph: Any, number: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Eigenvalues of the normalized adjacency matrix, and (N, K) eigenvectors, the first left out:
    it tells the degrees of nodes. A second eigenvalue of 1 means a graph in two parts."""
    from scipy.sparse import diags
    from scipy.sparse.linalg import eigsh

    if not graph.nnz:  # all uses are the same
        return np.zeros(number), np.zeros((graph.shape[0], number))
    scale = diags(1 / np.sqrt(np.maximum(np.asarray(graph.sum(axis=1), np.float64).ravel(), 1e-9)))
    matrix = scale @ graph.astype(np.float64) @ scale
    # A start of our own, or one would be drawn at random.
    start = np.random.default_rng(1).normal(size=graph.shape[0])
    values, vectors = eigsh(matrix, number + 1, which="LA", v0=start)
    order = np.argsort(-values)[1:]
    return values[order], vectors[:, order]


def _links_between(labels: Labels, graph: Any) -> npt.NDArray[np.float64]:
    """(G, G) how strongly groups are linked."""
    from scipy.sparse import csr_matrix

    number = int(labels.max()) + 1
    cells = (labels, np.arange(len(labels)))
    members = csr_matrix((np.ones(len(labels)), cells), shape=(number, len(labels)))
    found: npt.NDArray[np.float64] = (members @ graph @ members.T).toarray()
    return found


def _missing_links(links: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(G, G), below the diagonal: of the links that two groups would have by chance, if there were
    no others, the share that is missing."""
    inside = np.diag(links)
    one, two = inside[:, None] + links, inside[None] + links
    expected = one * two / np.maximum(one + two, 1e-9)
    missing = 1 - links / np.maximum(expected, 1e-9)
    missing[np.triu_indices(len(links))] = np.inf
    found: npt.NDArray[np.float64] = missing
    return found


def join_views(features: UseFeatures, *, seed: int = 1) -> Floats:
    """(N, D) of length one: the views of which vectors are made, side by side, of equal weight."""
    return _joined(_views(features, seed))


def _views(features: UseFeatures, seed: int) -> Views:
    """Five in a corpus, by a model that predicts words; fewer where there are no such."""
    topic, substitutes = features.topic, features.substitutes
    # Neighbours of contexts and bags tell which uses belong together, but split single meanings.
    is_poor = topic is None or substitutes is None
    views = [
        View("context", centred(features.context), in_separation=int(is_poor)),
        View(
            "bag",
            centred(features.bag),
            in_separation=int(topic is None),
            is_joined=topic is None,
        ),
    ]
    if topic is not None:
        views.append(View("topic", centred(topic)))
    if substitutes is not None:
        vectors = _substitute_view(substitutes, seed)
        views.append(View("substitutes", vectors, in_groups=2, in_separation=3))
    if features.expected is not None:
        views.append(View("expected", centred(features.expected)))
    return views


def _joined(views: Views) -> Floats:
    return unit_length(np.concatenate([view.vectors for view in views if view.is_joined], axis=1))


def _graphs(views: Views, pool: Executor | None = None) -> list[Any]:
    """The nearest neighbours in each view."""
    return list((pool.map if pool else map)(_neighbours, [view.vectors for view in views]))


def _in_groups(views: Views, graphs: Sequence[Any]) -> Any:
    """The graph that groups are made of."""
    return _weighted(graphs, [view.in_groups for view in views])


def _weighted(graphs: Sequence[Any], weights: Sequence[int]) -> Any:
    """The graphs added up."""
    return sum(graph * weight for graph, weight in zip(graphs, weights, strict=True) if weight)


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
    random = np.random.default_rng(seed)
    chosen = _sample(len(substitutes), random)
    weighted = tf_idf(substitutes, chosen)
    num_words = weighted.shape[1]
    if num_words == substitutes.shape[1]:  # a small vocabulary: every word fits every use
        return np.zeros((len(substitutes), 1), np.float32)
    dim = max(1, min(_SVD_DIM, len(chosen) - 1, num_words - 1))
    return unit_length(weighted @ principal_components(weighted[chosen], dim, random).T)


def tf_idf(substitutes: Ids, fitted: Labels | None = None) -> Any:
    """Sparse (N, W), rows of length one, W being the distinct substitutes.

    `fitted`: the uses in which words are counted; by default all.
    """
    from scipy.sparse import csr_matrix

    rows, k = substitutes.shape
    words, columns = np.unique(substitutes, return_inverse=True)
    columns = columns.reshape(rows, k)
    counted = columns if fitted is None else columns[fitted]
    in_uses = np.bincount(counted.ravel(), minlength=len(words))
    weights = np.log((1 + len(counted)) / (1 + in_uses)) + 1
    values = unit_length(weights[columns]).ravel()
    starts = np.arange(0, rows * k + 1, k)
    return csr_matrix((values, columns.ravel(), starts), shape=(rows, len(words)))


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
    k = max(1, int(_NEIGHBOURS * len(vectors)))
    nearest = np.argpartition(-similar, k - 1, axis=1)[:, :k].ravel()
    rows = np.repeat(np.arange(len(vectors)), k)
    is_alike = similar[rows, nearest] > 0  # which no row of zeros is to any other
    edges = (np.ones(int(is_alike.sum()), np.float32), (rows[is_alike], nearest[is_alike]))
    graph = csr_matrix(edges, shape=similar.shape)
    return graph.maximum(graph.T)


def _so_many(
    views: Views, graph: Any, number: int, resolution: float, seed: int, starts: int
) -> Labels:
    """So many groups: finer until there are enough, then the most similar ones merged."""
    for _ in range(_MOST_STEPS):
        labels = _communities(graph, resolution, seed, starts=starts)
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
    return by_size(labels)[0]


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


def _stability(views: Views, labels: Labels, find: _Search, part: Labels, seed: int) -> Floats:
    """For each group its best Jaccard index with a group of part of the uses, grouped again."""
    number = int(labels.max()) + 1
    chosen = [view.select(part) for view in views]
    again = find.communities(chosen, _in_groups(chosen, _graphs(chosen)), seed, 1)
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
    return ranks[np.searchsorted(names, labels)], [int(names[index]) for index in order]


_LEAST_GAIN = 1e-12  # below it, a move is rounding: two nodes could change places for ever


def louvain_communities(graph: Any, *, resolution: float, seed: int) -> Labels:
    """The same graph, resolution and seed give the same communities."""
    from scipy.sparse import csr_matrix

    random = np.random.default_rng(seed)
    labels: Labels = np.arange(graph.shape[0])
    while True:
        found = _move_nodes(csr_matrix(graph), resolution, random.permutation(graph.shape[0]))
        number = int(found.max()) + 1
        if number == graph.shape[0]:
            return labels
        labels = found[labels]
        ones = np.ones(len(found), graph.dtype)
        members = csr_matrix((ones, (found, np.arange(len(found)))), shape=(number, len(found)))
        graph = members @ graph @ members.T  # what is inside a community is now a loop at its node


def modularity(graph: Any, labels: Labels, resolution: float) -> float:
    """How much more weight lies inside the communities than chance would put there."""
    degrees = np.asarray(graph.sum(axis=1), np.float64).ravel()
    total = degrees.sum() or 1.0
    rows, columns = graph.nonzero()
    inside = np.asarray(graph[rows, columns]).ravel()[labels[rows] == labels[columns]].sum()
    shares = np.bincount(labels, weights=degrees) / total
    return float(inside / total - resolution * (shares**2).sum())


class _Graph(NamedTuple):
    """A graph by rows: the neighbours of node n stand from starts[n] to starts[n + 1]."""

    starts: npt.NDArray[np.int64]  # (N + 1,)
    columns: npt.NDArray[np.int32]  # (E,)
    weights: npt.NDArray[np.float64]  # (E,), of a loop 0: it comes along wherever its node goes
    degrees: npt.NDArray[np.float64]  # (N,)
    costs: npt.NDArray[np.float64]  # (N,): times a community's degrees, what it costs to join it


def _move_nodes(matrix: Any, resolution: float, order: npt.NDArray[np.int64]) -> Labels:
    """The community of each node when none gains by moving, numbered without gaps."""
    degrees = np.asarray(matrix.sum(axis=1), np.float64).ravel()
    is_loop = np.repeat(np.arange(len(degrees)), np.diff(matrix.indptr)) == matrix.indices
    graph = _Graph(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32),
        np.where(is_loop, 0.0, matrix.data).astype(np.float64),
        degrees,
        resolution * degrees / (degrees.sum() or 1.0),
    )
    kernel = loader.load()
    labels = (
        _move_in_python(graph, order) if kernel is None else _move_compiled(kernel, graph, order)
    )
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _move_compiled(kernel: Kernel, graph: _Graph, order: npt.NDArray[np.int64]) -> Labels:
    """As `_move_in_python`, by `louvain.c`. Other threads of Python work meanwhile."""
    number = len(order)
    labels, totals, links = np.empty(number, np.int64), np.empty(number), np.empty(number)
    room = (order.astype(np.int64), labels, totals, links, np.empty(number, np.uint8))
    arrays = [StridedArray(each.ctypes.data, 1) for each in (*graph, *room)]
    shape = GraphShape(number, _LEAST_GAIN)
    kernel.move_nodes(ctypes.byref(shape), (StridedArray * len(arrays))(*arrays))
    return labels


def _move_in_python(graph: _Graph, order: npt.NDArray[np.int64]) -> Labels:
    """The community of each node when none gains by moving, looked at in this order."""
    columns, weights, degrees = graph.columns, graph.weights, graph.degrees
    starts, costs = graph.starts.tolist(), graph.costs.tolist()
    labels, totals = np.arange(len(degrees)), degrees.copy()
    waiting, is_waiting = deque(order.tolist()), np.ones(len(degrees), np.bool_)
    while waiting:
        node = waiting.popleft()
        is_waiting[node] = False
        span = slice(starts[node], starts[node + 1])
        neighbours = columns[span]
        near, old = labels.take(neighbours), int(labels[node])
        links = np.bincount(near, weights[span], old + 1)
        totals[old] -= degrees[node]
        gains = links.take(near) - costs[node] * totals.take(near)
        best = int(gains.argmax()) if len(gains) else 0
        stays = links[old] - costs[node] * totals[old] + _LEAST_GAIN
        new = int(near[best]) if len(gains) and gains[best] > stays else old
        totals[new] += degrees[node]
        if new != old:
            labels[node] = new
            again = neighbours[(labels.take(neighbours) != new) & ~is_waiting.take(neighbours)]
            is_waiting[again] = True
            waiting.extend(again.tolist())
    return labels
