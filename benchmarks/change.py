"""Change of meaning between 1810-60 and 1960-2010, beside what people judged (DWUG EN).

    python -m benchmarks.change models/en-mini DATA --out senses

DATA holds dwug-en.tar.xz, or it unpacked: uses of 46 words with human clusters (Schlechtweg et al.,
2021). A word's change by people is the Jensen-Shannon distance of its clusters' frequencies on both
sides; binary change is a cluster with at most 2 uses on one side and at least 5 on the other, as in
SemEval-2020 Task 1 (Schlechtweg et al., 2020). For each kind of features: Spearman's correlation of
APD and PRT with it, and how often p < 0.05 agrees with binary change. Groups: ARI with clusters.
As a control, uses are dealt to the sides at random: how often p < 0.05 then.
"""

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
from polyseme.meanings.groups.grouping import group_uses
from polyseme.storage.files import write_text

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
    arguments = model_and_data(__doc__).parse_args()
    embedder = polyseme.load(arguments.model, threads=arguments.threads)
    assert isinstance(embedder, Embedder)
    words = list(read_dwug(unpacked(arguments.data, "dwug-en", arguments.out / "data")))
    rows: list[dict[str, Any]] = []
    for word in words:
        rows.append(measure(embedder, word))
        print(json.dumps(rows[-1]), flush=True)
    human = [row["human"] for row in rows]
    told: dict[str, float] = {"words": len(rows)}
    for name in rows[0]["features"]:
        values = [row["features"][name] for row in rows]
        for measured in ("apd", "prt"):
            correlation = spearmanr(human, [value[measured] for value in values]).statistic
            told[f"Spearman, {measured.upper()}, {name}"] = float(correlation)
        agree = [(v["p"] < 0.05) == row["is_changed"] for v, row in zip(values, rows, strict=True)]
        told[f"p < 0.05 is binary change, {name}"] = float(np.mean(agree))
        by_chance = [p < 0.05 for value in values for p in value["p at random"]]
        told[f"p < 0.05 at random, {name}"] = float(np.mean(by_chance))
    told["always the commoner answer"] = max(
        float(np.mean([row["is_changed"] for row in rows])),
        float(np.mean([not row["is_changed"] for row in rows])),
    )
    told["groups ARI with human clusters"] = float(np.mean([row["ari"] for row in rows]))
    for name, value in told.items():
        print(f"{name:48} {value:.3f}")
    write_text(
        arguments.out / f"{Path(arguments.model).name}-change.json",
        json.dumps({"summary": told, "words": rows}, indent=1),
    )


def measure(embedder: Embedder, word: JudgedWord) -> dict[str, Any]:
    """Change by every kind of features, and groups."""
    described = describe(embedder, word.uses)
    random = np.random.default_rng(1)
    found: dict[str, Any] = {}
    for name, vectors in variants(described, described).items():
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
