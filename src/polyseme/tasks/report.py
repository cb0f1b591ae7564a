"""How training went and what came of it, as pictures and numbers in the task's folder.

curve.png      loss and error on the development data
layers.png     how much of each layer of the model every mix takes, and its scale
confusion.png  which labels were taken for which, on the development data
metrics.json   all figures
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from polyseme.drawing import load_matplotlib
from polyseme.files import canonical_json, scratch_for, write_text
from polyseme.pretraining.curve import draw_curve
from polyseme.tasks.examples import Example
from polyseme.tasks.labels import due
from polyseme.tasks.measures import confusion
from polyseme.tasks.spans import OUTSIDE
from polyseme.tasks.task import Task
from polyseme.training.runlog import NAME as RUN_LOG

_MOST_LABELS = 24  # in the picture: beyond, nobody can read it
_OTHERS = "others"
_COLOUR = "#2f6690"


def write_report(task: Task, folder: Path, dev: Sequence[Example]) -> list[str]:
    """Write all of it. Returns notes for the user; raises MissingExtraError without matplotlib."""
    found = task.answer(task.data(dev, kept=True))
    tally = task.tally_of(dev, found)
    told = {name: value for name, value in task.facts.items() if name != "made_from"}
    labels = [row._asdict() for row in tally.by_label()]
    write_text(folder / "metrics.json", canonical_json({**told, "dev_by_label": labels}))
    draw_curve(
        folder / RUN_LOG,
        folder / "curve.png",
        str(folder),
        measured_as=f"1 - {task.config.measured_by} on the development data",
        scale="linear",
    )
    if task.facts["mixes"]:
        draw_mixes(folder / "layers.png", task.facts["mixes"])
    return draw_confusion(folder / "confusion.png", _taken_for(task, dev, found))


def draw_mixes(path: Path, mixes: Mapping[str, Any]) -> None:
    """A bar for each layer, a group for each place where a mix is put."""
    figure_class, _, _ = load_matplotlib()
    figure = figure_class(figsize=(1.5 + 2.5 * len(mixes), 3.2), layout="constrained")
    for axes, (place, told) in zip(
        figure.subplots(1, len(mixes), squeeze=False)[0], mixes.items(), strict=True
    ):
        layers = range(len(told["layers"]))
        bars = axes.bar(layers, told["layers"], color=_COLOUR)
        axes.bar_label(bars, fmt="{:.2f}", fontsize=8)
        axes.set(title=f"{place}, scale {told['scale']:.2f}", xlabel="layer", xticks=layers)
        axes.set_ylim(0, 1.05 * max(told["layers"]) + 0.02)
    with scratch_for(path) as scratch:
        figure.savefig(scratch, dpi=120)


def draw_confusion(path: Path, counts: Mapping[tuple[str, str], int]) -> list[str]:
    """Rows are what was due, each adding up to 1; columns what was found."""
    labels = list(dict.fromkeys(label for pair in counts for label in pair))
    figure_class, fonts, notes = load_matplotlib("".join(labels))
    due_of: Counter[str] = Counter()
    for (wanted, _), count in counts.items():
        due_of[wanted] += count
    labels.sort(key=lambda label: (label == _OTHERS, -due_of[label], label))
    rows = [
        [counts.get((wanted, found), 0) / max(1, due_of[wanted]) for found in labels]
        for wanted in labels
    ]
    size = 2.5 + 0.35 * len(labels)
    figure = figure_class(figsize=(size, size), layout="constrained")
    axes = figure.subplots()
    axes.imshow(rows, cmap="Blues", vmin=0, vmax=1)
    places = range(len(labels))
    axes.set(xticks=places, yticks=places, xlabel="found", ylabel="due")
    axes.set_xticklabels(labels, rotation=90)
    axes.set_yticklabels([f"{label} ({due_of[label]:,})" for label in labels])
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


def _taken_for(
    task: Task, examples: Sequence[Example], found: Sequence[Sequence[str]]
) -> Counter[tuple[str, str]]:
    """Kinds of label, word by word; rare ones together."""
    network = task.config.network
    has_spans = getattr(network, "scheme", "none") != "none"

    def kind(label: str) -> str:
        return label.partition("-")[2] or label if has_spans and label != OUTSIDE else label

    wanted = [kind(label) for example in examples for label in due(example, network)]
    given = [kind(label) for labels in found for label in labels]
    common = {label for label, _ in Counter(wanted).most_common(_MOST_LABELS)}

    def shown(label: str) -> str:
        return label if label in common else _OTHERS

    return confusion(map(shown, wanted), map(shown, given))
