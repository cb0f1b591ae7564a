"""Export a model to ELMo weights for other programs, or to an ONNX graph.

AllenNLP, bilm-tf and simple_elmo read options.json, model.hdf5 and vocab.txt. Only a model that
reads bytes with an LSTM in each direction can be exported to them. Any model can be exported to
ONNX, for Triton, KServe and languages without PyTorch.

Examples:

  polyseme convert export models/elmo --out exported

  polyseme convert export en-base --format onnx --out exported
"""

import json
from pathlib import Path
from typing import ClassVar, Literal

from polyseme.commands.convert import ConvertResult, check_output, show
from polyseme.config import Settings
from polyseme.progress import NullProgress, Progress
from polyseme.storage.files import disk_faults_explained, write_text

__all__ = ["ConvertResult", "ExportConfig", "run", "show"]


class ExportConfig(Settings):
    """Which model to write, and where to."""

    arguments: ClassVar[tuple[str, ...]] = ("model",)

    model: Path
    """The model folder."""
    out: Path
    """The folder to write; new or empty."""
    format: Literal["hdf5", "onnx"] = "hdf5"
    """ELMo weights (hdf5), or an ONNX graph (onnx)."""


def run(config: ExportConfig, progress: Progress | None = None) -> ConvertResult:
    """Write options, weights and words."""
    check_output(config.out)
    with disk_faults_explained(config.out):
        return _export(config, progress or NullProgress())


def _export(config: ExportConfig, progress: Progress) -> ConvertResult:
    from polyseme.legacy.bilm import export_bilm
    from polyseme.legacy.opening import OPTIONS, WEIGHTS, WORDS
    from polyseme.legacy.weight_files import write_hdf5
    from polyseme.model import Model

    progress.start("Converting", 2)
    model = Model.load(config.model)
    if config.format == "onnx":
        from polyseme.embedding.onnx_export import GRAPH, export_onnx

        progress.update(1, "read")
        export_onnx(model, config.out)
        progress.update(2, "written")
        next_step = f"open {config.out / GRAPH} with onnxruntime, or serve the folder with Triton."
        return ConvertResult(config.out, "onnx", model, (), next_step)
    exported = export_bilm(model)
    progress.update(1, "read")
    config.out.mkdir(parents=True, exist_ok=True)
    write_hdf5(config.out / WEIGHTS, exported.arrays)
    write_text(config.out / WORDS, "\n".join(exported.words) + "\n")
    write_text(config.out / OPTIONS, json.dumps(exported.options, indent=1) + "\n")
    progress.update(2, "written")
    next_step = f"give {config.out / OPTIONS} and {config.out / WEIGHTS} to that program."
    return ConvertResult(config.out, "bilm-hdf5", model, exported.notes, next_step)
