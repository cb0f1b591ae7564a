"""Import ELMo weights of other programs, or export a model to ELMo weights or ONNX.

The ELMo formats are those of AllenNLP, bilm-tf, simple_elmo and ELMoForManyLangs. Triton and
onnxruntime read ONNX.

Examples:

  polyseme convert import elmo_weights.hdf5 --out models/elmo --language en

  polyseme convert export en-base --format onnx --out exported
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.config import Settings, build
from polyseme.display import numbers, titled
from polyseme.errors import ConfigError, ModelError
from polyseme.progress import SILENT, Progress
from polyseme.storage.files import WORK, disk_faults_explained, write_text
from polyseme.text.settings import CorpusConfig, SegmenterName

if TYPE_CHECKING:
    from polyseme.model import Model
    from polyseme.text.preprocessing import Preparation


class ImportConfig(Settings):
    """Which weights to import, and how to tokenize text for them."""

    arguments: ClassVar[tuple[str, ...]] = ("weights",)

    weights: Path
    """The ELMo weights: a folder, a zip archive or an HDF5 file."""
    out: Path
    """The folder to write; new or empty."""
    options: Path | None = None
    """The options file of the weights; by default the one in the same folder."""
    language: str | None = None
    """Language of the texts to embed, as a code: en, de, zh, ... Without it, the model accepts
    only lists of words: such files do not record a tokenizer."""
    segmenter: SegmenterName | None = None
    """Word segmenter (tokenizer), with --language; default: jieba for zh, otherwise spacy."""
    licence: str = ""
    """Licence of the weights, for the model card."""


class ExportConfig(Settings):
    """Which model to write, and where to."""

    arguments: ClassVar[tuple[str, ...]] = ("model",)

    model: Path
    """The model folder."""
    out: Path
    """The folder to write; new or empty."""
    format: Literal["hdf5", "onnx"] = "hdf5"
    """ELMo weights (hdf5), or an ONNX graph (onnx)."""


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


def import_(config: ImportConfig, progress: Progress = SILENT) -> ConvertResult:
    """Import ELMo weights from AllenNLP, bilm-tf, simple_elmo or ELMoForManyLangs.

    Reads bilm-tf and AllenNLP weights (HDF5 with options.json, or simple_elmo's zip) and folders of
    ELMoForManyLangs. No code in such files is run: a separate process parses them.

    Examples:

      polyseme convert import elmo_weights.hdf5 --out models/elmo --language en

      polyseme convert import 179.zip --out models/elmo-xx
    """
    _check_output(config.out)
    with disk_faults_explained(config.out):
        return _import(config, progress)


def export(config: ExportConfig, progress: Progress = SILENT) -> ConvertResult:
    """Export a model to ELMo weights for other programs, or to an ONNX graph.

    AllenNLP, bilm-tf and simple_elmo read options.json, model.hdf5 and vocab.txt. Only a model that
    reads bytes with an LSTM in each direction can be exported to them. Any model can be exported to
    ONNX, for Triton, KServe and languages without PyTorch.

    Examples:

      polyseme convert export models/elmo --out exported

      polyseme convert export en-base --format onnx --out exported
    """
    _check_output(config.out)
    with disk_faults_explained(config.out):
        return _export(config, progress)


def show(result: ConvertResult) -> RenderableType:
    """What the model is, what it lacks, and what to do next."""
    counts = _counts(result.model)
    table = Table("", *numbers(""))
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


def _check_output(folder: Path) -> None:
    """Refuse to write among other things; what a run before left unfinished is none."""
    if not folder.is_dir():
        return
    there = sorted(path.name for path in folder.iterdir() if path.name != WORK)
    if there:
        raise ModelError(
            f"{folder} holds other things ({', '.join(there[:3])}). Choose a new or empty folder."
        )


def _import(config: ImportConfig, progress: Progress) -> ConvertResult:
    from polyseme.legacy.opening import read_old, write_card

    preparation = _preparation(config)
    progress.start("Converting", 2)
    old, files = read_old(config.weights, options=config.options, scratch=config.out)
    progress.update(1, "read")
    about = f"A model for {old.kind.replace(' / ', ' and ')}."
    metadata = {"about": about, "kind": old.kind, "licence": config.licence, "files": files}
    model = old.model(preparation, metadata)
    notes = old.notes if preparation else (*old.notes, _WORDS_ONLY)
    card = write_card(model, config.out.name, files=files, notes=notes)
    model.save(config.out, card=card)
    progress.update(2, "written")
    next_step = f"polyseme embed CORPUS --model {config.out} --out VECTORS"
    return ConvertResult(config.out, old.kind, model, notes, next_step)


_WORDS_ONLY = (
    "It takes lists of words, not raw text: how words were found is not known. "
    "Import with --language to choose."
)


def _preparation(config: ImportConfig) -> "Preparation | None":
    """How raw text will be prepared, as a trained model knows it; None if not at all."""
    from polyseme.text.preprocessing import Preparation, TextPreprocessor

    if config.language is None:
        if config.segmenter is not None:
            raise ConfigError("A segmenter needs a language: add --language.")
        return None
    values = {"language": config.language, "segmenter": config.segmenter}
    settings = build(CorpusConfig, values)
    TextPreprocessor(settings)  # refuses at once what no text could be prepared with
    return Preparation.of(settings)


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
