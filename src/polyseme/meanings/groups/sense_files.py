"""Senses as files of other tools: treebanks, DURel, static vectors.

    bank.conllu         sentences, `Sense=2` in the last column of each use (CoNLL-U)
    bank.uses.tsv       one use a line, as DURel reads them (durel.ims.uni-stuttgart.de)
    bank.judgments.tsv  pairs of uses: 4 if they are in one group, 1 if not
    bank.clusters.tsv   the group of each use
    bank.vec            a vector for each group, named bank#1, bank#2 (word2vec's text format)

These formats know no quotes: a tab or a line end in a text becomes a space, so that offsets stay
right. DURel's columns are in `concordance/durel.py`; tables (.csv, .tsv, .xlsx) are `export.py`'s.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from pathlib import Path
from urllib.parse import quote

import numpy as np

from polyseme.errors import ConfigError
from polyseme.meanings.concordance.durel import (
    JUDGMENTS,
    identifier,
    lemma_of,
    plain,
    tab_separated,
    use_lines,
    write_lines,
)
from polyseme.meanings.concordance.export import check_format, write_table
from polyseme.meanings.concordance.uses import Use
from polyseme.meanings.groups.senses import NamedGroup, Senses

MAX_JUDGMENTS = 10_000
"""Pairs that are written; of more, a sample."""


def check_senses_format(path: Path) -> None:
    """Refuse a file whose name does not say what it is to be."""
    if _writer(path) is None:
        try:
            check_format(path)
        except ConfigError as error:
            raise ConfigError(f"{error} For senses also: {', '.join(_WRITERS)}.") from error


def write_senses(senses: Senses, path: Path) -> None:
    """Every use with its group, in the format that the name ends in; whole or not at all."""
    lines = _writer(path)
    if lines is None:
        write_table(senses.table(), path)
        return
    write_lines(path, lines(senses))


def _writer(path: Path) -> Callable[[Senses], Iterator[str]] | None:
    name = path.name.lower()
    return next((lines for ending, lines in _WRITERS.items() if name.endswith(ending)), None)


def _groups(senses: Senses) -> list[NamedGroup]:
    """The group of each use."""
    return [senses.groups[number - 1] for number in senses.labels]


def _durel_judgments(senses: Senses) -> Iterator[str]:
    identifiers, groups = list(map(identifier, senses.uses)), senses.labels
    lemma = lemma_of(senses.uses)

    def rows() -> Iterator[tuple[object, ...]]:
        for one, two in _pairs(len(identifiers)):
            judgment = 4 if groups[one] == groups[two] else 1
            yield identifiers[one], identifiers[two], "polyseme", judgment, "", lemma

    return tab_separated(JUDGMENTS, rows())


def _pairs(number: int) -> Iterable[tuple[int, int]]:
    """All pairs of uses, or some of them, drawn: of 5,000 uses there are 12 million."""
    if number * (number - 1) // 2 <= MAX_JUDGMENTS:
        return combinations(range(number), 2)
    random = np.random.default_rng(1)
    pairs = np.sort(random.integers(number, size=(2 * MAX_JUDGMENTS, 2)), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)
    chosen = np.sort(random.permutation(len(pairs))[:MAX_JUDGMENTS])
    return [(one, two) for one, two in pairs[chosen].tolist()]


def _durel_clusters(senses: Senses) -> Iterator[str]:
    rows = (
        (identifier(use), group.id) for use, group in zip(senses.uses, _groups(senses), strict=True)
    )
    return tab_separated(("identifier", "cluster"), rows)


def _conllu(senses: Senses) -> Iterator[str]:
    """Each sentence once, with all of its uses."""
    sentences: dict[str, list[tuple[Use, NamedGroup]]] = {}
    for use, group in zip(senses.uses, _groups(senses), strict=True):
        sentences.setdefault(use.sentence_id, []).append((use, group))
    document = None
    for sentence_id, found in sentences.items():
        use = found[0][0]
        if use.document != document:
            document = use.document
            yield f"# newdoc id = {plain(document)}"
        yield f"# sent_id = {plain(sentence_id)}"
        yield f"# text = {plain(use.text)}"
        for group in {group.id: group for _, group in found}.values():
            yield f"# sense {_value(group.id)} = {plain(group.name)}"
        senses_of = {n: group.id for each, group in found for n in range(each.begin, each.end)}
        yield from _words(use, senses_of)
        yield ""


def _words(use: Use, senses_of: dict[int, str]) -> Iterator[str]:
    for number, word in enumerate(use.words):
        end = use.starts[number] + len(word)
        misc = [f"Sense={_value(senses_of[number])}"] if number in senses_of else []
        if number + 1 < len(use.words) and use.starts[number + 1] == end:
            misc.append("SpaceAfter=No")
        columns = [str(number + 1), plain(word), *["_"] * 7, "|".join(misc) or "_"]
        yield "\t".join(columns)


def _value(text: str) -> str:
    """A value in the last column: no bar, no space."""
    return quote(text, safe="")


def _vectors(senses: Senses) -> Iterator[str]:
    """The mean of each group's contexts: comparable with those of other words by the same model."""
    context = senses.features.context
    lemma = "_".join(plain(lemma_of(senses.uses)).split())
    yield f"{len(senses.groups)} {context.shape[1]}"
    for group in senses.groups:
        mean = context[senses.grouping.labels == group.number - 1].mean(axis=0, dtype=np.float64)
        numbers = " ".join(f"{value:.6g}" for value in mean)
        yield f"{lemma}#{'_'.join(group.id.split())} {numbers}"


_WRITERS: dict[str, Callable[[Senses], Iterator[str]]] = {
    ".conllu": _conllu,
    ".uses.tsv": lambda senses: use_lines(senses.uses),
    ".judgments.tsv": _durel_judgments,
    ".clusters.tsv": _durel_clusters,
    ".vec": _vectors,
}
