"""Make models of old ELMo weights, and old weights of models.

AllenNLP, bilm-tf, simple_elmo and ELMoForManyLangs wrote and read such weights.

Examples:

  polyseme convert import elmo_weights.hdf5 models/elmo --language en

  polyseme convert export models/elmo exported
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.errors import ModelError
from polyseme.storage.files import WORK
from polyseme.tables import titled

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


def show(result: ConvertResult) -> RenderableType:
    """What the model is, what it lacks, and what to do next."""
    from polyseme.model import count_parameters

    encoder, vocabulary = result.model.config.encoder, result.model.vocabulary
    table = Table()
    table.add_column("")
    table.add_column("", justify="right")
    rows = [
        ("parameters", f"{count_parameters(result.model.network):,}"),
        ("layers with context", f"{result.model.config.encoder.num_layers - 1}"),
        ("dimensions of each layer", f"{encoder.output_dim:,}"),
        ("words listed", f"{len(vocabulary.words):,}"),
        ("character ids", f"{vocabulary.num_characters:,}"),
    ]
    for row in rows:
        table.add_row(*row)
    shown = titled(f"{result.folder}: {result.kind}", table)
    return Group(shown, *result.notes, f"Next: {result.next_step}")


def check_output(folder: Path) -> None:
    """Refuse to write among other things; what a run before left unfinished is none."""
    if not folder.is_dir():
        return
    there = sorted(path.name for path in folder.iterdir() if path.name != WORK)
    if there:
        raise ModelError(
            f"{folder} holds other things ({', '.join(there[:3])}). Choose a new or empty folder."
        )
