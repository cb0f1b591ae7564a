"""Which labels were taken for which: counted, and as a picture in a task's folder."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from polyseme.drawing import load_matplotlib
from polyseme.storage.files import scratch_for

NAME = "confusion.png"
_MOST_LABELS = 24  # in the picture: beyond, nobody can read it
_OTHERS = "others"


def confusion(gold: Iterable[str], predicted: Iterable[str]) -> Counter[tuple[str, str]]:
    """How often each gold label was given each label: (gold, predicted) -> count."""
    return Counter(zip(gold, predicted, strict=True))


def draw_confusion(folder: Path, gold: Sequence[str], predicted: Sequence[str]) -> list[str]:
    """The picture, rare labels together. Returns notes for the user."""
    frequent = {label for label, _ in Counter(gold).most_common(_MOST_LABELS)}

    def shown(label: str) -> str:
        return label if label in frequent else _OTHERS

    return _draw(folder / NAME, confusion(map(shown, gold), map(shown, predicted)))


def _draw(path: Path, counts: Counter[tuple[str, str]]) -> list[str]:
    """Rows are gold labels, each adding up to 1; columns what was predicted."""
    labels = list(dict.fromkeys(label for pair in counts for label in pair))
    figure_class, fonts, notes = load_matplotlib("".join(labels))
    num_gold: Counter[str] = Counter()
    for (gold, _), count in counts.items():
        num_gold[gold] += count
    labels.sort(key=lambda label: (label == _OTHERS, -num_gold[label], label))
    rows = [
        [counts.get((gold, predicted), 0) / max(1, num_gold[gold]) for predicted in labels]
        for gold in labels
    ]
    size = 2.5 + 0.35 * len(labels)
    figure = figure_class(figsize=(size, size), layout="constrained")
    axes = figure.subplots()
    axes.imshow(rows, cmap="Blues", vmin=0, vmax=1)
    places = range(len(labels))
    axes.set(xticks=places, yticks=places, xlabel="predicted", ylabel="gold")
    axes.set_xticklabels(labels, rotation=90)
    axes.set_yticklabels([f"{label} ({num_gold[label]:,})" for label in labels])
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_fontfamily(fonts)
    for y, row in enumerate(rows):
        for x, share in enumerate(row):
            if share >= 0.005:  # what would be written as 0.00 is left blank
                shade = "white" if share > 0.5 else "black"
                axes.text(x, y, f"{share:.2f}", ha="center", va="center", fontsize=6, color=shade)
    with scratch_for(path) as scratch:
        figure.savefig(scratch, dpi=130)
    return notes
