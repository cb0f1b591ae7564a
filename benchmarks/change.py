r"""Change of meaning: in a corpus of one's own, and beside what people judged (DWUG EN).

    python -m benchmarks.change models/en-base DATA --out senses
    python -m benchmarks.change models/en-base DATA --out senses --corpus corpus/eltec \
        --before "year<1860" --after "year>=1900"

With a corpus: of 50 everyday nouns, how many are said to have changed between the sides; and how
many changes are found that were planted: 40 % of the uses after of each of these nouns are those of
the noun next in frequency. Of each side of a noun up to 120 uses are read. Told beside the verdict:
the parts it is made of, and the permutation test alone.

Without one: change between 1810-60 and 1960-2010. DATA holds dwug-en.tar.xz, or it unpacked: uses
of 46 words with human clusters (Schlechtweg et al., 2021). A word's change by people is the
Jensen-Shannon distance of its clusters' frequencies on both sides; binary change is a cluster with
at most 2 uses on one side and at least 5 on the other, as in SemEval-2020 Task 1 (Schlechtweg et
al., 2020). For each kind of features: Spearman's correlation of APD and PRT with it, with a
standard error over words (bootstrap); what the kind that is best on one half of the words has on
the other; and how often p < 0.05 agrees with binary change. Groups: ARI with clusters. As a
control, uses are dealt to the sides at random: how often p < 0.05 then.
"""

import argparse
import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr
from sklearn.metrics import adjusted_rand_score

import polyseme
from benchmarks.gains import unpacked
from benchmarks.senses import describe, model_and_data, variants
from polyseme.embedding.embedder import Embedder
from polyseme.meanings.change.measure import Side, measure_change
from polyseme.meanings.change.sides import (
    MIN_SIDE,
    Sides,
    TwoSides,
    controls_of,
    substitute_vectors,
)
from polyseme.meanings.concordance.conditions import parse_where
from polyseme.meanings.concordance.search import CorpusColumns, Query
from polyseme.meanings.concordance.uses import find_uses, numbers_by_word
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.features.use_features import Labels
from polyseme.meanings.groups.calibration import calibration_of, encode_uses
from polyseme.meanings.groups.grouping import group_uses
from polyseme.meanings.groups.senses import Senses, name_groups
from polyseme.storage.files import write_text
from polyseme.text.corpus import Corpus

NOUNS = (
    "door", "table", "window", "hand", "house", "chair", "tree", "bread", "water", "street",
    "bed", "wall", "floor", "garden", "horse", "dog", "fire", "book", "letter", "paper",
    "room", "kitchen", "church", "road", "bridge", "river", "field", "hill", "stone", "wood",
    "glass", "bottle", "cup", "plate", "knife", "coat", "hat", "dress", "mother", "father",
    "brother", "sister", "child", "boy", "woman", "king", "doctor", "money", "roof",
    "shoulder",
)  # fmt: skip
_SIDE = 120  # uses of a noun that are read on each side
_PLANTED = 0.4  # of the uses after
_FEW, _MANY = 2, 5  # SemEval-2020 Task 1, section 3


@dataclass(frozen=True, eq=False)
class JudgedWord:
    """A word's uses, the side and the human cluster of each."""

    word: str
    uses: list[tuple[list[str], tuple[int, int]]]
    is_after: npt.NDArray[np.bool_]
    clusters: npt.NDArray[np.int64]

    def shares(self) -> npt.NDArray[np.int64]:
        """(2, clusters) uses of each cluster before and after, but for those nobody could place."""
        placed = self.clusters >= 0
        number = int(self.clusters.max()) + 1
        return np.stack(
            [np.bincount(self.clusters[placed & side], minlength=number)
             for side in (~self.is_after, self.is_after)]
        )  # fmt: skip

    @property
    def graded(self) -> float:
        """Jensen-Shannon distance (the root of the divergence in bits)."""
        before, after = self.shares() / self.shares().sum(axis=1, keepdims=True)
        middle = (before + after) / 2
        divergence = (_bits(before, middle) + _bits(after, middle)) / 2
        return float(np.sqrt(max(0.0, divergence)))

    @property
    def is_changed(self) -> bool:
        """Whether a cluster was won or lost."""
        before, after = self.shares()
        won = (before <= _FEW) & (after >= _MANY)
        return bool((won | ((after <= _FEW) & (before >= _MANY))).any())


def _bits(one: npt.NDArray[Any], two: npt.NDArray[Any]) -> float:
    there = one > 0
    return float((one[there] * np.log2(one[there] / two[there])).sum())


def main() -> None:
    parser = model_and_data(__doc__)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--before", default="year<1860")
    parser.add_argument("--after", default="year>=1900")
    arguments = parser.parse_args()
    embedder = polyseme.load(arguments.model, threads=arguments.threads)
    assert isinstance(embedder, Embedder)
    if arguments.corpus is None:
        judged(embedder, arguments)
    else:
        everyday_and_planted(embedder, arguments)


def everyday_and_planted(embedder: Embedder, arguments: argparse.Namespace) -> None:
    """50 nouns as they are, and the same with uses of others among those after."""
    corpus, encoder = Corpus.open(arguments.corpus), ModelUseEncoder(embedder)
    columns = CorpusColumns(corpus)
    sides = Sides(*(parse_where(text, columns) for text in (arguments.before, arguments.after)))
    uses = find_uses(corpus, Query(NOUNS))
    before, after = sides.numbers(uses)
    random = np.random.default_rng(1)
    counts, drawn = {}, {}
    for noun, numbers in numbers_by_word(uses).items():
        both = [np.intersect1d(numbers, side) for side in (before, after)]
        if min(map(len, both)) >= MIN_SIDE:
            counts[noun] = (len(both[0]), len(both[1]))
            drawn[noun] = [np.sort(random.permutation(side)[:_SIDE]) for side in both]
    nouns = sorted(counts, key=lambda noun: (min(counts[noun]), noun))
    print(f"Fewer than {MIN_SIDE} uses on a side: {sorted({*NOUNS} - {*nouns})}")
    chosen = np.unique(np.concatenate([side for both in drawn.values() for side in both]))
    described = uses.select(chosen)
    features = encode_uses(described, encoder)
    calibration = calibration_of(corpus, encoder)
    limits = calibration.limits if calibration else None
    place = {number: row for row, number in enumerate(chosen.tolist())}

    def compare(noun: str, first: Labels, second: Labels) -> dict[str, Any]:
        rows = np.array([place[n] for n in (*first.tolist(), *second.tolist())])
        own, mine = described.select(rows), features.select(rows)
        numbers = np.arange(len(first)), np.arange(len(first), len(rows))
        controls = controls_of(corpus, encoder, sides, counts[noun])
        grouping = group_uses(mine, limits=limits)
        groups = name_groups(None, grouping)
        senses = Senses(own, grouping, mine, groups, len(own), calibration)
        change, senses = TwoSides(own, mine, numbers, controls).compare(senses)
        found = change.controls
        return {
            "noun": noun,
            "verdict": change.verdict,
            "below": found and found.below / found.number,
            "beyond": bool(found and found.is_beyond),
            "moved": any(each.movement != "unclear" for each in change.groups),
            "groups": len(senses.groups),
            "p of permutations": change.p_value,
        }

    as_they_are = [compare(noun, *drawn[noun]) for noun in nouns]
    planted = []
    for at, noun in enumerate(nouns):
        other = nouns[at + 1] if at + 1 < len(nouns) else nouns[at - 1]
        first, second = drawn[noun]
        mixed = min(round(_PLANTED * len(second)), len(drawn[other][1]))
        kept = random.permutation(second)[: len(second) - mixed]
        added = random.permutation(drawn[other][1])[:mixed]
        planted.append({"with": other, **compare(noun, first, np.concatenate([kept, added]))})
    told = {}
    for name, rows in (("everyday", as_they_are), ("planted", planted)):
        for row in rows:
            print(name, json.dumps(row), flush=True)
        told[name] = {
            "words": len(rows),
            "changed": float(np.mean([row["verdict"] == "changed" for row in rows])),
            "beyond the control words": float(np.mean([row["beyond"] for row in rows])),
            "a group moved": float(np.mean([row["moved"] for row in rows])),
            "permutation test p < 0.05": float(
                np.mean([row["p of permutations"] < 0.05 for row in rows])
            ),
        }
        for measured, value in told[name].items():
            print(f"{name:10} {measured:40} {value:.3f}")
    write_text(
        arguments.out / f"{Path(arguments.model).name}-{corpus.folder.name}-change.json",
        json.dumps({"summary": told, "everyday": as_they_are, "planted": planted}, indent=1),
    )


def judged(embedder: Embedder, arguments: argparse.Namespace) -> None:
    """DWUG EN."""
    words = list(read_dwug(unpacked(arguments.data, "dwug-en", arguments.out / "data")))
    rows: list[dict[str, Any]] = []
    for word in words:
        rows.append(measure(embedder, word))
        print(json.dumps(rows[-1]), flush=True)
    human = np.array([row["human"] for row in rows])
    told: dict[str, float] = {"words": len(rows)}
    random = np.random.default_rng(1)
    drawn = random.integers(len(rows), size=(1_000, len(rows)))
    apd: dict[str, npt.NDArray[np.float64]] = {}
    for name in rows[0]["features"]:
        values = [row["features"][name] for row in rows]
        for measured in ("apd", "prt"):
            found = np.array([value[measured] for value in values])
            told[f"Spearman, {measured.upper()}, {name}"] = _spearman(found, human)
            error = float(np.std([_spearman(found[some], human[some]) for some in drawn]))
            told[f"Spearman, {measured.upper()}, {name}, standard error"] = error
        apd[name] = np.array([value["apd"] for value in values])
        agree = [(v["p"] < 0.05) == row["is_changed"] for v, row in zip(values, rows, strict=True)]
        told[f"p < 0.05 is binary change, {name}"] = float(np.mean(agree))
        by_chance = [p < 0.05 for value in values for p in value["p at random"]]
        told[f"p < 0.05 at random, {name}"] = float(np.mean(by_chance))
    told["Spearman, APD, best on one half, told on the other"] = _on_other_half(apd, human, random)
    told["always the commoner answer"] = max(
        float(np.mean([row["is_changed"] for row in rows])),
        float(np.mean([not row["is_changed"] for row in rows])),
    )
    told["groups ARI with human clusters"] = float(np.mean([row["ari"] for row in rows]))
    for name, value in told.items():
        print(f"{name:52} {value:.3f}")
    write_text(
        arguments.out / f"{Path(arguments.model).name}-change.json",
        json.dumps({"summary": told, "words": rows}, indent=1),
    )


def _spearman(one: npt.NDArray[np.float64], two: npt.NDArray[np.float64]) -> float:
    return float(spearmanr(one, two).statistic)


def _on_other_half(
    kinds: dict[str, npt.NDArray[np.float64]],
    human: npt.NDArray[np.float64],
    random: np.random.Generator,
) -> float:
    """The kind of features that is best on half of the words, on the other half; mean of 200."""
    found = []
    for _ in range(100):
        halves = np.array_split(random.permutation(len(human)), 2)
        for own, other in (halves, halves[::-1]):
            best = max(kinds.values(), key=lambda kind: _spearman(kind[own], human[own]))
            found.append(_spearman(best[other], human[other]))
    return float(np.mean(found))


def measure(embedder: Embedder, word: JudgedWord) -> dict[str, Any]:
    """Change by every kind of features, and groups."""
    described = describe(embedder, word.uses)
    random = np.random.default_rng(1)
    found: dict[str, Any] = {}
    kinds = variants(described, described)
    kinds["substitutes"] = substitute_vectors(described.features, 1)
    for name, vectors in kinds.items():
        if name.startswith("random"):
            continue
        change = measure_change(
            Side(vectors[~word.is_after]), Side(vectors[word.is_after]), unit="uses"
        )
        by_chance = []
        for _ in range(5):
            dealt = random.permutation(word.is_after)
            again = measure_change(
                Side(vectors[~dealt]), Side(vectors[dealt]), unit="uses", permutations=199
            )
            by_chance.append(again.p_value)
        found[name] = {"apd": change.apd, "prt": change.prt, "p": change.p_value,
                       "p at random": by_chance}  # fmt: skip
    placed = word.clusters >= 0
    labels = group_uses(described.features).labels
    ari = float(adjusted_rand_score(word.clusters[placed], labels[placed]))
    return {"word": word.word, "uses": len(word.uses), "human": word.graded,
            "is_changed": word.is_changed, "features": found, "ari": ari}  # fmt: skip


def read_dwug(folder: Path) -> Iterator[JudgedWord]:
    """All words of the data set."""
    for path in sorted(folder.rglob("data/*/uses.csv")):
        word = path.parent.name
        clusters = {
            row["identifier"]: int(row["cluster"])
            for row in _rows(path.parents[2] / "clusters" / "opt" / f"{word}.csv")
        }
        rows = [row for row in _rows(path) if row["identifier"] in clusters]
        uses = []
        for row in rows:
            at = int(row["indexes_target_token_tokenized"])
            uses.append((row["context_tokenized"].split(" "), (at, at + 1)))
        is_after = np.array([row["grouping"] == "2" for row in rows])
        yield JudgedWord(word, uses, is_after, np.array([clusters[r["identifier"]] for r in rows]))


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


if __name__ == "__main__":
    main()
