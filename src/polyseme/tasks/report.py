"""How training went and what came of it, as pictures and numbers in the task's folder.

curve.png      loss and error on the development data
layers.png     the weight of each layer of the model in every mix, and gamma
metrics.json   all figures

and the pictures of the task's family, such as confusion.png.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from polyseme.drawing import load_matplotlib
from polyseme.storage.files import canonical_json, scratch_for, write_text
from polyseme.tasks.families.family import Example
from polyseme.tasks.task import Task
from polyseme.tasks.train_module import ERROR
from polyseme.training.runlog import NAME as RUN_LOG
from polyseme.training.runlog import draw_curve

_COLOUR = "#2f6690"


def write_report(task: Task, folder: Path, dev: Sequence[Example]) -> list[str]:
    """Write all of it. Returns notes for the user; raises MissingExtraError without matplotlib."""
    predicted = task.decode(task.data(dev, use_cache=True))
    scores = task.family.score(dev, predicted)
    told = {name: value for name, value in task.metadata.items() if name != "made_from"}
    told |= {f"dev_{name}": rows for name, rows in scores.tables().items()}
    write_text(folder / "metrics.json", canonical_json(told))
    draw_curve(
        folder / RUN_LOG,
        folder / "curve.png",
        str(folder),
        measure=ERROR,
        label=f"1 - {task.config.measured_by} on the development data",
        scale="linear",
    )
    if task.metadata["mixes"]:
        draw_mixes(folder / "layers.png", task.metadata["mixes"])
    return task.family.draw(folder, dev, predicted)


def draw_mixes(path: Path, mixes: Mapping[str, Any]) -> None:
    """A bar for each layer, a group for each mix."""
    figure_class, _, _ = load_matplotlib()
    figure = figure_class(figsize=(1.5 + 2.5 * len(mixes), 3.2), layout="constrained")
    for axes, (place, mix) in zip(
        figure.subplots(1, len(mixes), squeeze=False)[0], mixes.items(), strict=True
    ):
        layers = range(len(mix["weights"]))
        bars = axes.bar(layers, mix["weights"], color=_COLOUR)
        axes.bar_label(bars, fmt="{:.2f}", fontsize=8)
        axes.set(title=f"{place}, gamma {mix['gamma']:.2f}", xlabel="layer", xticks=layers)
        axes.set_ylim(0, 1.05 * max(mix["weights"]) + 0.02)
    with scratch_for(path) as scratch:
        figure.savefig(scratch, dpi=120)
