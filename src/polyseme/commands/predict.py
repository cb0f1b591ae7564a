"""Label texts with a trained task: names marked, opinions told, pairs compared.

Text is split into sentences and words as the model's corpus was. A file has one text a line, for a
task on pairs two with a tab between them. Where a task is about one word (semantic roles), mark it:
She *gave* him a book.

Examples:

  polyseme predict tasks/ner "Ada Lovelace lived in London."

  polyseme predict tasks/nli "A man sleeps." "Nobody is awake."

  polyseme predict tasks/ner --file letters.txt --out letters.jsonl
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType

from polyseme.config import Settings
from polyseme.errors import ConfigError
from polyseme.files import disk_faults_explained
from polyseme.printable import PrintableText
from polyseme.progress import NullProgress, Progress
from polyseme.tasks.account import Account
from polyseme.tasks.spans import OUTSIDE, find_spans

if TYPE_CHECKING:
    from polyseme.tasks.prediction import Predicted

_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")


class PredictConfig(Settings):
    """Which task, on what."""

    task: Path
    """The folder of the trained task; of several seeds, the best on the development data."""
    inputs: tuple[str, ...] = ()
    """Texts, each quoted; two for a task on pairs."""
    file: Path | None = None
    """A file of texts instead, one a line."""
    out: Path | None = None
    """JSON lines to write to, one for each sentence; required with a file."""
    model_: Path | None = None
    """Where the model that the task was trained with lies now, if it is not found by itself."""


@dataclass(frozen=True)
class Predictions:
    """What was found; of a file only how much, the rest being on disk."""

    found: "list[Predicted]"
    account: Account | None = None
    out: Path | None = None


def run(config: PredictConfig, progress: Progress | None = None) -> Predictions:
    """Label all texts."""
    progress = progress or NullProgress()
    if bool(config.inputs) == bool(config.file):
        raise ConfigError("Give texts, or --file with texts: one of the two.")
    if config.file is not None and config.out is None:
        raise ConfigError("With --file, name where the labels go: --out labels.jsonl")
    from polyseme.tasks.prediction import Predictor
    from polyseme.tasks.seeds import best_in
    from polyseme.tasks.task import Task

    predictor = Predictor(Task.load(best_in(config.task), model=config.model_))
    if config.file is None:
        found = list(predictor.predict(predictor.given(config.inputs)))
        if config.out is not None:
            with disk_faults_explained(config.out.parent):
                predictor.write(found, config.out)
        return Predictions(found, None, config.out)
    assert config.out is not None
    with disk_faults_explained(config.out.parent):
        account = predictor.label_file(config.file, config.out, progress)
    return Predictions([], account, config.out)


def show(result: Predictions) -> RenderableType:
    """Sentences with their labels in colour."""
    lines: list[RenderableType] = [_coloured(found) for found in result.found]
    if result.account is not None:
        lines += [result.account.summary(), *result.account.faults]
    if result.out is not None:
        lines.append(f"Labels: {result.out}")
    return Group(*lines)


def _coloured(found: "Predicted") -> PrintableText:
    text = PrintableText()
    if found.label is not None:
        text.append(f"{found.label}  ", style="bold cyan")
        return text.append(" | ".join(found.texts))
    assert found.labels is not None
    if not found.marks_spans:
        for word, label in zip(found.words, found.labels, strict=True):
            text.append(word)
            text.append(f"/{label} ", style="cyan")
        return text
    spans = {span.start: span for span in find_spans(found.labels)}
    kinds = sorted({span.kind for span in spans.values()})
    place = 0
    while place < len(found.words):
        span = spans.get(place)
        if span is None:
            text.append(found.words[place] + " ")
            place += 1
            continue
        style = _COLOURS[kinds.index(span.kind) % len(_COLOURS)]
        text.append(" ".join(found.words[span.start : span.stop]), style=f"bold {style}")
        text.append(f"[{span.kind or OUTSIDE}] ", style=style)
        place = span.stop
    return text
