"""One word in two sets of texts: all its uses grouped together, then the sets compared.

    in   uses of both sides, which of them are before and which after, and what describes them
    out  `WordChange`: the change that was measured, and the groups with their lines

Groups are those of all uses together, so that a group is the same meaning on both sides.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyseme.display import counted, summary
from polyseme.errors import InputError
from polyseme.meanings.change.measure import Change, Side, Unit, measure_change
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.features.use_features import Describer
from polyseme.meanings.groups.grouping import MIN_USES, join_views
from polyseme.meanings.groups.named_groups import Senses, find_senses
from polyseme.progress import Progress

MIN_SIDE = MIN_USES // 2
"""Uses that each side needs: of 20 a side, large changes are found and small ones missed."""
_MAX_SIDE = 2_500  # uses of a side that are described, sampled by seed

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WordChange:
    """How the uses of a word moved between two sides."""

    change: Change
    senses: Senses
    """All uses in groups: first those before, then those after."""
    num_before: int
    """How many of `senses.uses` are of the side before."""

    def __repr__(self) -> str:
        return summary("WordChange", repr(self.change), repr(self.senses))

    def _repr_html_(self) -> str:
        return self.change._repr_html_() + self.senses._repr_html_()

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"change": self.change.to_json(), **self.senses.to_json()}


def compare_sides(
    uses: Uses,
    before: Numbers,
    after: Numbers,
    describer: Describer,
    *,
    unit: Unit | None = None,
    seed: int = 1,
    progress: Progress | None = None,
) -> WordChange:
    """Group the uses of both sides together, and measure how far the sides are apart."""
    if both := np.intersect1d(before, after).size:
        raise InputError(
            f"The sides share {counted(both, 'use')}. Choose sides that exclude each other."
        )
    for name, side in (("before", before), ("after", after)):
        if len(side) < MIN_SIDE:
            raise InputError(
                f"The side {name!r} has {counted(len(side), 'use')}; each side needs at least "
                f"{MIN_SIDE}. Choose a wider side, or look for more forms of the word."
            )
    random = np.random.default_rng(seed)
    first, second = (np.sort(random.permutation(side)[:_MAX_SIDE]) for side in (before, after))
    chosen = uses.select(np.concatenate([first, second]))
    senses = find_senses(chosen, describer, seed=seed, progress=progress)
    # Not topics: two periods write of different things with the same words.
    vectors = join_views(replace(senses.features, topic=None), seed=seed)
    documents, groups, edge = chosen.metadata(DOCUMENT), senses.labels, len(first)
    change = measure_change(
        Side(vectors[:edge], documents[:edge], groups[:edge]),
        Side(vectors[edge:], documents[edge:], groups[edge:]),
        unit=unit,
        seed=seed,
    )
    return WordChange(change, senses, edge)
