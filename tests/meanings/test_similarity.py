"""How alike uses are: by each view as its definition says, whatever all uses share left out."""

import numpy as np
import pytest
from required import need_package

from polyseme.meanings.features.use_features import UseFeatures
from polyseme.meanings.nearest import Centre, pair_similarities, similarities


def some(number: int, seed: int = 1) -> UseFeatures:
    random = np.random.default_rng(seed)
    substitutes = np.stack([random.permutation(40)[:12] for _ in range(number)])
    context, bag = (random.normal(size=(number, dim)).astype(np.float32) + 2 for dim in (8, 5))
    return UseFeatures(context, bag, substitutes.astype(np.int32))


def rows(features: UseFeatures, *numbers: int) -> UseFeatures:
    return features.select(np.array(numbers))


def test_cosines_are_those_of_centred_vectors() -> None:
    features = some(30)
    found = similarities(rows(features, 4), features, Centre.of(features))
    for column, view in enumerate((features.context, features.bag)):
        away = view - view.mean(axis=0)
        for row in range(30):
            lengths = np.linalg.norm(away[4]) * np.linalg.norm(away[row])
            assert found[row, column] == pytest.approx(away[4] @ away[row] / lengths, abs=1e-5)


def test_substitutes_are_compared_by_tf_idf() -> None:
    need_package("sklearn")
    from sklearn.feature_extraction.text import TfidfTransformer

    features = some(30)
    assert features.substitutes is not None
    counts = np.zeros((30, 40))
    np.put_along_axis(counts, features.substitutes.astype(np.int64), 1, axis=1)
    weighted = TfidfTransformer().fit_transform(counts).toarray()
    found = similarities(rows(features, 7), features, Centre.of(features))
    assert np.allclose(found[:, 2], weighted @ weighted[7], atol=1e-5)


def test_pairs_are_compared_row_by_row() -> None:
    one, two = some(6, 1), some(6, 2)
    centre = Centre.of(one)
    found = pair_similarities(one, two, centre)
    for row in range(6):
        alone = similarities(rows(one, row), rows(two, row), centre)
        assert np.array_equal(found[row], alone[0])
