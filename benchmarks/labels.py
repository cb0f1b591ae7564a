"""How many lines a reader must sort until the others are sorted as the reader would.

    python -m benchmarks.labels models/en-base DATA --out senses
    python -m benchmarks.labels models/en-base DATA --out senses --corpus corpus/eltec

Without --corpus CoarseWSD-20, 500 uses of each word. With it, the novels of ELTeC, of which
`novel_senses.tsv` has sixty uses of each of twenty words, labelled by hand; 240 more stand beside
them, as they would in the explorer.

The reader is the explorer's: six lines that show what there is are labelled, then one by one those
that are most in doubt. Told is how many of the lines that were not labelled get the right label,
the mean of all words and three readers (who see other samples of the uses); for all words, and for
two halves of them: settings were chosen on the first. Beside it, of the same lines: *groups* found
without labels, each taken for the sense that most of it has; and the most frequent sense.
"""

import csv
import json
import re
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import polyseme
from benchmarks.gains import unpacked
from benchmarks.senses import describe, model_and_data
from benchmarks.senses_data import read_coarsewsd
from polyseme.embedding.loading import load_for_corpus
from polyseme.meanings.concordance.uses import Uses, find_uses
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.features.use_features import UseFeatures
from polyseme.meanings.groups.calibration import calibration_of, encode_uses
from polyseme.meanings.groups.grouping import Limits, group_uses, join_views
from polyseme.meanings.labels import draw_together, first_to_label, learn_labels
from polyseme.storage.files import write_text
from polyseme.text.corpus import Corpus

NUMBERS = (6, 12, 20)
READERS = 3
_USES = 500  # of a word of CoarseWSD-20
_BESIDE = 240  # uses of a word of the novels that have no label
_PART = 0.9  # of the uses, that a reader sees
NOVELS = Path(__file__).with_name("novel_senses.tsv")
Names = npt.NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Word:
    """Uses of a word; "" is the sense of those that nobody labelled."""

    name: str
    features: UseFeatures
    senses: Names
    limits: Limits | None


def main() -> None:
    parser = model_and_data(__doc__)
    parser.add_argument("--corpus", type=Path, help="novels of ELTeC, prepared")
    arguments = parser.parse_args()
    words = _novels(arguments) if arguments.corpus else _coarsewsd(arguments)
    scores: dict[str, dict[str, list[float]]] = {}
    for word in words:
        scores[word.name] = _scores(word)
        shown = {
            name: [round(value, 2) for value in row] for name, row in scores[word.name].items()
        }
        print(word.name, shown, flush=True)
    names = sorted(scores)
    for part, chosen in (("all", names), ("first half", names[::2]), ("other half", names[1::2])):
        for row in ("learned", "groups", "most frequent"):
            means = np.mean([scores[name][row] for name in chosen], axis=0)
            told = "  ".join(f"{n}: {v:.3f}" for n, v in zip(NUMBERS, means, strict=True))
            print(f"{part:12} {row:14} {told}")
    write_text(arguments.out / "labels.json", json.dumps(scores, indent=1))


def _scores(word: Word) -> dict[str, list[float]]:
    by_group = _by_group(word)
    found = [list(_curve(word, by_group, reader)) for reader in range(READERS)]
    means = np.mean(found, axis=0)  # (numbers, 3)
    return dict(zip(("learned", "groups", "most frequent"), means.T.tolist(), strict=True))


def _curve(word: Word, by_group: Names, reader: int) -> Iterator[tuple[float, float, float]]:
    """For each number of labelled lines the accuracy of the others, three ways."""
    size = len(word.senses)
    seen = np.sort(np.random.default_rng(reader).permutation(size)[: round(_PART * size)])
    features, senses = word.features.select(seen), word.senses[seen]
    frequent = _most_frequent(senses[senses != ""])
    vectors = draw_together(join_views(features))
    can_be_asked = np.flatnonzero(senses != "")
    first = can_be_asked[first_to_label(vectors[can_be_asked], NUMBERS[0], seed=reader)]
    given = {int(n): str(senses[n]) for n in first}
    for number in NUMBERS:
        while len(given) < number:
            learned = learn_labels(vectors, given)
            asked = (n for k in (1, 8, 64, len(vectors)) for n in learned.next_to_label(k))
            best = next(n for n in asked if senses[n])
            given[best] = str(senses[best])
        rest = np.setdiff1d(can_be_asked, list(given))
        found = np.array(learn_labels(vectors, given).labels, dtype=object)
        gold = senses[rest]
        yield (
            float(np.mean(found[rest] == gold)),
            float(np.mean(by_group[seen][rest] == gold)),
            float(np.mean(gold == frequent)),
        )


def _by_group(word: Word) -> Names:
    """The sense that most of a use's group has."""
    groups = group_uses(word.features, limits=word.limits).labels
    found = np.full(len(groups), "", dtype=object)
    for group in np.unique(groups):
        own = word.senses[(groups == group) & (word.senses != "")]
        found[groups == group] = _most_frequent(own) if len(own) else ""
    return found


def _most_frequent(senses: Names) -> str:
    return str(max(sorted(Counter(senses.tolist()).items()), key=lambda item: item[1])[0])


def _coarsewsd(arguments: Namespace) -> Iterator[Word]:
    embedder = polyseme.load(arguments.model, threads=arguments.threads)
    folder = unpacked(arguments.data, "coarsewsd20", arguments.out / "data")
    by_word = defaultdict(list)
    for use in read_coarsewsd(folder):
        by_word[use.word].append(use)
    for name, uses in sorted(by_word.items()):
        chosen = np.sort(np.random.default_rng(0).permutation(len(uses))[:_USES])
        taken = [uses[n] for n in chosen]
        features = describe(embedder, [(use.words, use.span) for use in taken]).without_syntax
        yield Word(name, features, np.array([use.sense for use in taken], object), None)


def _novels(arguments: Namespace) -> Iterator[Word]:
    corpus = Corpus.open(arguments.corpus)
    encoder = ModelUseEncoder(load_for_corpus(arguments.model, corpus))
    calibration = calibration_of(corpus, encoder)
    print(calibration.note if calibration else "not calibrated", flush=True)
    with NOVELS.open(encoding="utf-8", newline="") as file:
        lines = (line for line in file if not line.startswith("#"))
        rows = list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    by_word: dict[str, list[list[str]]] = defaultdict(list)
    for name, *row in rows:
        by_word[name].append(row)
    for name, own in by_word.items():
        uses = find_uses(corpus, name)
        senses = _labelled(uses, own)
        labelled = np.flatnonzero(senses != "")
        others = np.random.default_rng(1).permutation(np.flatnonzero(senses == ""))[:_BESIDE]
        chosen = np.sort(np.concatenate([labelled, others]))
        features = encode_uses(uses.select(chosen), encoder)
        yield Word(name, features, senses[chosen], calibration.limits if calibration else None)


def _labelled(uses: Uses, rows: Sequence[Sequence[str]]) -> Names:
    """For each use the sense of the row that it is; "" for all others."""
    found = np.full(len(uses), "", dtype=object)
    around = []
    for use in uses:
        begin = use.starts[use.begin]
        parts = use.text[:begin], use.form, use.text[begin + len(use.form) :]
        around.append([re.sub(r"\s+", " ", part) for part in parts])
    for sense, _, before, form, after in rows:
        same = [
            number
            for number, (left, own, right) in enumerate(around)
            if own == form and left.endswith(before) and right.startswith(after)
        ]
        assert same, f"{before}*{form}*{after} is not in this corpus."
        found[same[0]] = sense
    return found


if __name__ == "__main__":
    main()
