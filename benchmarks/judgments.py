r"""Judgments of people (DWUG EN): how far they agree, and whether what we say of it holds.

    python -m benchmarks.judgments DATA [--model models/en-base] [--work FOLDER]

DATA holds dwug-en.tar.xz, or it unpacked (Schlechtweg et al., 2021; version 3.0.0). Told are:

- alpha (ordinal) with its interval, of all rounds of annotation and of those up to each;
- the rule of `polyseme agreement --within`: of each word with many pairs, some are drawn, and the
  rule says how many give half the interval. As many are drawn, and their interval stands beside;
- with a model: pairs to judge next, those it is least sure of or random ones. From 30 judged pairs
  of a word, 30 more are taken either way; how often a classifier is then right about 100 others.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gains import unpacked
from polyseme.meanings.agreement import estimate_alpha, pairable
from polyseme.meanings.judgments import SAME, Judgments, read_judgments
from polyseme.meanings.nearest import Centre, pair_similarities
from polyseme.meanings.same import SameClassifier

_FIRST, _MORE, _TEST, _TRIES = 30, 30, 100, 10


def up_to(data: Path, last: int, out: Path) -> Judgments:
    """The judgments of the first rounds."""
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(data.glob("*/judgments.csv")):
        header, *lines = path.read_text(encoding="utf-8").splitlines()
        column = header.split("\t").index("round")
        kept = [line for line in lines if int(line.split("\t")[column]) <= last]
        if kept:
            name = f"{path.parent.name}.tsv"
            (out / name).write_text("\n".join([header, *kept]) + "\n", encoding="utf-8")
    return read_judgments([out])


def by_rounds(data: Path, work: Path) -> Iterator[dict[str, Any]]:
    for last in (4, 5, 6):
        found = up_to(data, last, work / str(last))
        alpha = estimate_alpha(found.counts(), "ordinal")
        yield {
            "rounds": last,
            "words": len(found.lemmas),
            "judgments": found.num_judgments,
            "undecided": found.num_undecided,
            "set_aside": len(found.rejected),
            "alpha": alpha.to_json(),
        }


def rule(judgments: Judgments) -> dict[str, float]:
    """How wide the interval is after as many items as the rule asks for, beside what was wished."""
    random, ratios = np.random.default_rng(1), []
    for lemma in judgments.lemmas:
        keys = [key for key in judgments.values if key.lemma == lemma]
        counts = pairable(judgments.counts(keys))
        if len(counts) < 240:
            continue
        for _ in range(_TRIES):
            order = random.permutation(len(counts))
            before = estimate_alpha(counts[order[:60]], "ordinal")
            number = before.items_for(before.half_width / 2)
            if number is None:
                continue
            after = estimate_alpha(counts[order[:number]], "ordinal")
            ratios.append(after.half_width / (before.half_width / 2))
    low, middle, high = np.percentile(ratios, [10, 50, 90])
    return {"trials": len(ratios), "p10": low, "median": middle, "p90": high}


def chosen_or_random(judgments: Judgments, model: str) -> Iterator[dict[str, Any]]:
    from polyseme.embedding.loading import load_embedder
    from polyseme.meanings.concordance.uses import read_marked
    from polyseme.meanings.features.use_encoder import ModelUseEncoder

    encoder = ModelUseEncoder(load_embedder(model))
    random = np.random.default_rng(1)
    for lemma in judgments.lemmas:
        keys = [k for k in judgments.values if k.lemma == lemma and judgments.mean(k) != SAME]
        keys = [k for k in keys if judgments.items[k].sentences]
        if len(keys) < 400:
            continue
        keys = [keys[n] for n in random.permutation(len(keys))[:400].tolist()]
        pairs = [
            tuple(read_marked(encoder.embedder, text) for text in judgments.items[key].sentences)
            for key in keys
        ]
        uses = [use for pair in pairs for use in pair]
        spans = np.array([(use.begin, use.end) for use in uses])
        features = encoder.without_syntax(encoder([use.words for use in uses], spans))
        one, two = (features.select(np.arange(side, len(uses), 2)) for side in (0, 1))
        centre = Centre.of(features)
        views = pair_similarities(one, two, centre)
        gold = np.array([judgments.mean(key) > SAME for key in keys])
        told: dict[str, list[float]] = {"random": [], "chosen": []}
        for _ in range(_TRIES):
            order = random.permutation(len(keys))
            test, first, rest = order[:_TEST], order[_TEST : _TEST + _FIRST], order[130:]
            if min(gold[first].sum(), (~gold[first]).sum()) < 5:
                continue
            classifier = SameClassifier.learn(centre, views[first], gold[first])
            unsure = np.abs(classifier.probabilities(views[rest]) - 0.5)
            next_ones = {"random": rest[:_MORE], "chosen": rest[np.argsort(unsure)[:_MORE]]}
            for name, more in next_ones.items():
                known = np.concatenate([first, more])
                learned = SameClassifier.learn(centre, views[known], gold[known])
                right = (learned.probabilities(views[test]) > 0.5) == gold[test]
                told[name].append(float(right.mean()))
        if told["random"]:
            yield {
                "lemma": lemma,
                "majority": float(max(gold.mean(), 1 - gold.mean())),
                **{name: float(np.mean(values)) for name, values in told.items()},
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--work", type=Path, default=Path("judgments"))
    given = parser.parse_args()
    data = unpacked(given.data, "dwug-en", given.work) / "data"
    for row in by_rounds(data, given.work / "rounds"):
        print(json.dumps(row))
    judgments = read_judgments([data])
    print(json.dumps({"rule": rule(judgments)}))
    if given.model:
        rows = [*chosen_or_random(judgments, given.model)]
        for row in rows:
            print(json.dumps(row))
        gains = np.array([row["chosen"] - row["random"] for row in rows])
        names = ("majority", "random", "chosen")
        means = {name: float(np.mean([row[name] for row in rows])) for name in names}
        error = float(gains.std(ddof=1) / len(gains) ** 0.5)
        print(json.dumps(means | {"words": len(rows), "gain": float(gains.mean()), "error": error}))


if __name__ == "__main__":
    main()
