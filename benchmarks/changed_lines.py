"""The words that changed most, each with the use of either side that the other side lacks most.

    python -m benchmarks.changed_lines changes.csv corpus/novels models/en-mini \\
        --before "year<1860" --after "year>=1900"

Reads what `polyseme change --all --out changes.csv` wrote and prints a table in Markdown. The uses
of both sides are described together; shown is the one whose vector lies farthest towards the mean
of its own side and away from the other's. Nobody chose the lines.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from polyseme.meanings.concordance.uses import Use, Uses, find_uses
from polyseme.meanings.groups.grouping import join_views
from polyseme.meanings.index.sources import load_describer
from polyseme.text.corpus import Corpus

_AROUND = 8  # words on either side of the use


def main() -> None:
    arguments = _parser().parse_args()
    corpus = Corpus.open(arguments.corpus)
    describer = load_describer(arguments.model, corpus)
    with arguments.changes.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row, _ in zip(csv.DictReader(file), range(arguments.words), strict=False)]
    print(f"| word | q | {arguments.before} | {arguments.after} |\n|---|---:|---|---|")
    for row in rows:
        sides = [
            _sample(find_uses(corpus, row["word"], where=[where]), arguments.uses)
            for where in (arguments.before, arguments.after)
        ]
        sentences = [words for uses in sides for words in uses.sentences()]
        spans = np.concatenate([uses.spans for uses in sides])
        vectors = join_views(describer(sentences, spans))
        parts = np.split(vectors, [len(sides[0])])
        away = parts[0].mean(axis=0) - parts[1].mean(axis=0)
        lines = [
            _line(uses[int((part @ away * sign).argmax())])
            for uses, part, sign in zip(sides, parts, (1, -1), strict=True)
        ]
        print(f"| *{row['word']}* | {float(row['q']):.3f} | {lines[0]} | {lines[1]} |")


def _sample(uses: Uses, number: int) -> Uses:
    return uses.select(np.random.default_rng(1).permutation(len(uses))[:number])


def _line(use: Use) -> str:
    left = " ".join(use.words[: use.begin][-_AROUND:])
    right = " ".join(use.words[use.end :][:_AROUND])
    return f"{left} **{use.form}** {right} ({use.metadata.get('year', '')})".replace("|", "\\|")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("changes", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("model")
    parser.add_argument("--before", required=True)
    parser.add_argument("--after", required=True)
    parser.add_argument("--words", type=int, default=20)
    parser.add_argument("--uses", type=int, default=60)
    return parser


if __name__ == "__main__":
    main()
