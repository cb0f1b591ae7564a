"""Import ELMo weights of other programs, or export a model to ELMo weights or ONNX.

The ELMo formats are those of AllenNLP, bilm-tf, simple_elmo and ELMoForManyLangs. Triton and
onnxruntime read ONNX.

Examples:

  polyseme convert import elmo_weights.hdf5 --out models/elmo --language en

  polyseme convert export en-base --format onnx --out exported
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.display import titled
from polyseme.errors import ModelError
from polyseme.storage.files import WORK

if TYPE_CHECKING:
    from polyseme.model import Model


@dataclass(frozen=True)
class ConvertResult:
    """What was found and written."""

    folder: Path
    kind: str
    model: "Model"
    notes: tuple[str, ...]
    next_step: str

    def to_json(self) -> dict[str, Any]:
        """Plain values: what the model is, what it lacks."""
        told = {"folder": str(self.folder), "kind": self.kind, **_counts(self.model)}
        return {**told, "notes": self.notes}


def show(result: ConvertResult) -> RenderableType:
    """What the model is, what it lacks, and what to do next."""
    counts = _counts(result.model)
    table = Table()
    table.add_column("")
    table.add_column("", justify="right")
    labels = (
        "parameters",
        "layers with context",
        "dimensions of each layer",
        "words listed",
        "character ids",
    )
    for label, number in zip(labels, counts.values(), strict=True):
        table.add_row(label, f"{number:,}")
    shown = titled(f"{result.folder}: {result.kind}", table)
    return Group(shown, *result.notes, f"Next: {result.next_step}")


def _counts(model: "Model") -> dict[str, int]:
    from polyseme.model import count_parameters

    return {
        "num_parameters": count_parameters(model.network),
        "num_layers": model.config.encoder.num_layers - 1,
        "dim": model.config.encoder.output_dim,
        "num_words": len(model.vocabulary.words),
        "num_characters": model.vocabulary.num_characters,
    }


def check_output(folder: Path) -> None:
    """Refuse to write among other things; what a run before left unfinished is none."""
    if not folder.is_dir():
        return
    there = sorted(path.name for path in folder.iterdir() if path.name != WORK)
    if there:
        raise ModelError(
            f"{folder} holds other things ({', '.join(there[:3])}). Choose a new or empty folder."
        )
