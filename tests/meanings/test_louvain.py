"""Communities of a graph: those that were planted, as good as another program's, the same twice,
and the same whether compiled or not."""

from typing import Any

import numpy as np
import pytest
from encoders.kernel import Kernels
from required import need_package
from scipy.sparse import csr_matrix

from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.build import instruction_sets
from polyseme.meanings.groups.grouping import louvain_communities, modularity


def planted(sizes: list[int], inside: float, between: float, seed: int) -> Any:
    """A graph whose nodes are joined more often within a group than between groups."""
    random = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    chance = np.where(group[:, None] == group, inside, between)
    upper = np.triu(random.random(chance.shape) < chance, 1) * random.random(chance.shape)
    return csr_matrix(upper + upper.T)


def test_planted_communities_are_found() -> None:
    found = louvain_communities(planted([40, 30, 20], 0.5, 0.01, 1), resolution=1.0, seed=1)
    expected = np.repeat([0, 1, 2], [40, 30, 20])
    assert len(set(zip(found.tolist(), expected.tolist(), strict=True))) == 3
    assert len(set(found.tolist())) == 3


@pytest.mark.parametrize("resolution", [0.3, 1.0, 2.0])
def test_modularity_is_as_high_as_that_of_networkx(resolution: float) -> None:
    networkx = need_package("networkx")
    ours, theirs = [], []
    for seed in range(6):
        graph = planted([60, 50, 40, 30], 0.2, 0.08, seed)
        found = louvain_communities(graph, resolution=resolution, seed=seed)
        other = networkx.from_scipy_sparse_array(graph)
        groups = [set(np.flatnonzero(found == label).tolist()) for label in np.unique(found)]
        told = networkx.community.modularity(other, groups, resolution=resolution)
        assert modularity(graph, found, resolution) == pytest.approx(told, abs=1e-9)
        ours.append(told)
        best = networkx.community.louvain_communities(other, resolution=resolution, seed=seed)
        theirs.append(networkx.community.modularity(other, best, resolution=resolution))
    assert np.mean(ours) > np.mean(theirs) - 0.01


def test_two_parts_that_are_not_joined_are_never_one_community() -> None:
    one = planted([20], 1.0, 0.0, 1).toarray()
    graph = np.zeros((40, 40))
    graph[:20, :20] = graph[20:, 20:] = one
    found = louvain_communities(csr_matrix(graph), resolution=0.01, seed=1)
    assert set(found[:20].tolist()).isdisjoint(found[20:].tolist())


def whole_numbers(number: int, seed: int) -> Any:
    """As neighbours in several views make a graph: 1, 2 or 3 between some, so that many tie."""
    random = np.random.default_rng(seed)
    upper = np.triu(random.integers(0, 4, (number, number)) * (random.random((number,) * 2) < 0.2))
    return csr_matrix((upper + upper.T).astype(np.float32))  # with loops: what is on the diagonal


@pytest.fixture(scope="module")
def uncompiled() -> list[tuple[Any, float, list[int]]]:
    """Graphs, resolutions, and the communities that are found without the kernel."""
    graphs = [whole_numbers(size, seed) for seed, size in enumerate((1, 2, 3, 40, 150))]
    graphs += [planted([50, 40, 30], 0.2, 0.1, 2), csr_matrix((5, 5)), csr_matrix(np.eye(4))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "load", lambda: None)
        return [
            (graph, at, louvain_communities(graph, resolution=at, seed=7).tolist())
            for graph in graphs
            for at in (0.1, 0.45, 1.0, 3.0)
        ]


@pytest.mark.parametrize("instruction_set", instruction_sets())
def test_compiled_and_not_they_are_the_same(
    kernels: Kernels,
    instruction_set: Any,
    uncompiled: list[tuple[Any, float, list[int]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = kernels(instruction_set)
    monkeypatch.setattr(loader, "load", lambda: kernel)
    for graph, resolution, expected in uncompiled:
        found = louvain_communities(graph, resolution=resolution, seed=7)
        assert found.tolist() == expected
