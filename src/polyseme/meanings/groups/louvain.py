"""A weighted graph in, the community of each node out (Louvain; Blondel et al., 2008).

    in   a symmetric sparse matrix (N, N): how strongly two nodes belong together
    out  (N,) a number for each node, the same for nodes of one community

Each node moves to the community of a neighbour where the modularity gains most; then communities
become the nodes of a smaller graph, until nothing moves. A node is looked at again only if a
neighbour has moved (Traag et al., 2019), which makes it many times as fast as looking at all.
"""

import ctypes
from collections import deque
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.loader import GraphShape, Kernel, StridedArray
from polyseme.meanings.features.use_features import Labels

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
