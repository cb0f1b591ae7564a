"""How many labels it takes to teach senses, and whether it matters which lines are labelled.

    python -m benchmarks.labels models/en-mini DATA --out senses

CoarseWSD-20: of each word up to 1,000 training uses are a user's lines without labels, and its test
uses are what is measured: macro-F1 and accuracy, the mean of all words. The first five lines are
drawn at random; then `polyseme label` asks for the next, in tens at most, by how uncertain they
are or at random, as its option --at-random has it. Five beginnings of each word. Beside them, what
a user who labels nothing has: the frequent sense of everything. Draws labels.png.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from sklearn.metrics import f1_score

import polyseme
from benchmarks.gains import unpacked
from benchmarks.senses import describe, model_and_data
from benchmarks.senses_data import LabelledUse, read_coarsewsd
from polyseme.drawing import load_matplotlib
from polyseme.meanings.annotation.labels import learn_labels
from polyseme.meanings.features.use_features import Floats
from polyseme.meanings.groups.grouping import join_views
from polyseme.storage.files import write_text

NUMBERS = (5, 10, 20, 50)
WAYS: tuple[Literal["random", "uncertain"], ...] = ("random", "uncertain")
Names = npt.NDArray[np.str_]
_POOL = 1_000
_AT_ONCE = 10


def main() -> None:
    arguments = model_and_data(__doc__).parse_args()
    embedder = polyseme.load(arguments.model, threads=arguments.threads)
    uses = list(read_coarsewsd(unpacked(arguments.data, "coarsewsd20", arguments.out / "data")))
    by_word: dict[str, list[LabelledUse]] = defaultdict(list)
    for use in uses:
        by_word[use.word].append(use)
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for word, own in sorted(by_word.items()):
        pool = [use for use in own if use.is_train]
        chosen = np.random.default_rng(0).permutation(len(pool))[:_POOL]
        taken = [*(pool[n] for n in chosen), *(use for use in own if not use.is_train)]
        features = describe(embedder, [(use.words, use.span) for use in taken]).features
        senses = np.array([use.sense for use in taken])
        for way, number, macro, right in _curves(join_views(features), senses, len(chosen)):
            scores[f"{way}, macro-F1"][str(number)].append(macro)
            scores[f"{way}, accuracy"][str(number)].append(right)
        scores["most frequent, accuracy"]["0"].append(_most_frequent(senses, len(chosen)))
        print(word, flush=True)
    means = {
        name: {number: float(np.mean(values)) for number, values in row.items()}
        for name, row in scores.items()
    }
    for name, row in means.items():
        print(f"{name:26}", "  ".join(f"{number}: {value:.3f}" for number, value in row.items()))
    write_text(arguments.out / "labels.json", json.dumps(means, indent=1))
    _draw(means, arguments.out / "labels.png")


def _curves(
    vectors: Floats, senses: Names, num_pool: int
) -> Iterator[tuple[str, int, float, float]]:
    for start in range(5):
        first = np.random.default_rng(start).permutation(num_pool)[: NUMBERS[0]]
        for way in WAYS:
            given = {int(n): str(senses[n]) for n in first}
            for number in NUMBERS:
                while len(given) < number:
                    _label_more(vectors[:num_pool], senses, given, way, number, start)
                found = np.array(learn_labels(vectors, given).labels)[num_pool:]
                gold = senses[num_pool:]
                macro = f1_score(gold, found, average="macro", labels=np.unique(gold))
                yield way, number, float(macro), float((found == gold).mean())


def _label_more(
    pool: Floats,
    senses: Names,
    given: dict[int, str],
    way: Literal["random", "uncertain"],
    number: int,
    seed: int,
) -> None:
    """A user's next lines: asked for, read, labelled as the data has it."""
    step = min(_AT_ONCE, number - len(given))
    asked = learn_labels(pool, given).next_to_label(step, how=way, seed=seed * 1_000 + len(given))
    given.update({n: str(senses[n]) for n in asked})


def _most_frequent(senses: Names, num_pool: int) -> float:
    names, counts = np.unique(senses[:num_pool], return_counts=True)
    return float((senses[num_pool:] == names[counts.argmax()]).mean())


def _draw(means: dict[str, dict[str, float]], path: Path) -> None:
    figure_class, _, _ = load_matplotlib()
    figure = figure_class(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    names = {"random": "lines drawn at random", "uncertain": "lines that polyseme asks for"}
    for way, marker in zip(WAYS, ("o", "s"), strict=True):
        row = means[f"{way}, macro-F1"]
        axes.plot([int(n) for n in row], list(row.values()), marker=marker, label=names[way])
    axes.set_xlabel("labelled lines of a word")
    axes.set_ylabel("macro-F1, mean of 20 words")
    axes.set_xticks(NUMBERS)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
