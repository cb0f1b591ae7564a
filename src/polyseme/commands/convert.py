"""Make a model of old ELMo weights, or write a model as old programs read it.

Reads bilm-tf and AllenNLP weights (HDF5 with options.json, or simple_elmo's zip) and folders of
ELMoForManyLangs. Untrusted files are parsed in a locked process, which needs Linux.

Examples:

  polyseme convert elmo_weights.hdf5 models/elmo --language en

  polyseme convert 179.zip models/elmo-xx

  polyseme convert models/elmo exported --to bilm-hdf5
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.config import Settings, build
from polyseme.errors import ConfigError, ModelError
from polyseme.files import WORK, disk_faults_explained, write_text
from polyseme.progress import NullProgress, Progress
from polyseme.tables import titled
from polyseme.text.prepare import describe_preparation
from polyseme.text.running import RunningText
from polyseme.text.settings import CorpusConfig, SegmenterName

if TYPE_CHECKING:
    from polyseme.model import Model


class ConvertConfig(Settings):
    """What to convert, into what."""

    model: Path
    """The old model: a folder, a zip archive or an HDF5 file. With --to, a model folder."""
    folder: Path
    """The folder to write; new or empty."""
    to: Literal["polyseme", "bilm-hdf5"] = "polyseme"
    """What to write: a model of ours, or options.json, model.hdf5 and vocab.txt, which AllenNLP,
    bilm-tf and simple_elmo read."""
    options: Path | None = None
    """The old model's options file; by default the one beside the weights."""
    language: str | None = None
    """Language of the texts that will be embedded, as a code: en, de, zh, ... Without it, the
    model takes lists of words only: old files do not say how words were found."""
    segmenter: SegmenterName | None = None
    """What will find the words, with a language; default: jieba for zh, otherwise spacy."""
    licence: str = ""
    """Licence of the old weights, for the model card."""


@dataclass(frozen=True)
class Converted:
    """What was found and written."""

    folder: Path
    kind: str
    model: "Model"
    notes: tuple[str, ...]
    next_step: str


def run(config: ConvertConfig, progress: Progress | None = None) -> Converted:
    """Convert in either direction."""
    progress = progress or NullProgress()
    _check_folder(config.folder)
    with disk_faults_explained(config.folder):
        if config.to == "polyseme":
            return _from_old(config, progress)
        return _to_old(config, progress)


def show(result: Converted) -> RenderableType:
    """What the model is, what it lacks, and what to do next."""
    from polyseme.model import count_parameters

    encoder, lexicon = result.model.config.encoder, result.model.lexicon
    table = Table()
    table.add_column("")
    table.add_column("", justify="right")
    rows = [
        ("parameters", f"{count_parameters(result.model.network):,}"),
        ("layers with context", f"{result.model.config.encoder.num_layers - 1}"),
        ("dimensions of each layer", f"{encoder.output_width:,}"),
        ("words listed", f"{len(lexicon.words):,}"),
        ("character ids", f"{lexicon.num_characters:,}"),
    ]
    for row in rows:
        table.add_row(*row)
    told = titled(f"{result.folder}: {result.kind}", table)
    return Group(told, *result.notes, f"Next: {result.next_step}")


def _check_folder(folder: Path) -> None:
    """Refuse to write among other things; what a run before left unfinished is none."""
    if not folder.is_dir():
        return
    there = sorted(path.name for path in folder.iterdir() if path.name != WORK)
    if there:
        raise ModelError(
            f"{folder} holds other things ({', '.join(there[:3])}). Choose a new or empty folder."
        )


def _from_old(config: ConvertConfig, progress: Progress) -> Converted:
    from polyseme.legacy.card import write_card
    from polyseme.legacy.opening import read_old

    preparation = _preparation(config)
    progress.start("Converting", 2)
    old, files = read_old(config.model, options=config.options, scratch=config.folder)
    progress.update(1, "read")
    about = f"A model for {old.kind.replace(' / ', ' and ')}."
    facts = {"about": about, "kind": old.kind, "licence": config.licence, "files": files}
    model = old.model(preparation, facts)
    notes = old.notes if preparation else (*old.notes, _WORDS_ONLY)
    card = write_card(model, config.folder.name, files=files, notes=notes)
    model.save(config.folder, card=card)
    progress.update(2, "written")
    next_step = f"polyseme embed {config.folder} CORPUS --out VECTORS"
    return Converted(config.folder, old.kind, model, notes, next_step)


_WORDS_ONLY = (
    "It takes lists of words, not raw text: how words were found is not known. "
    "Convert with --language to choose."
)


def _preparation(config: ConvertConfig) -> dict[str, Any]:
    """How raw text will be prepared, as a trained model knows it; {} if not at all."""
    if config.language is None:
        if config.segmenter is not None:
            raise ConfigError("A segmenter needs a language: add --language.")
        return {}
    values = {"language": config.language, "segmenter": config.segmenter}
    settings = build(CorpusConfig, values)
    described = describe_preparation(settings)
    preparation = {"settings": settings.model_dump(mode="json"), "preparation": described}
    RunningText(preparation)  # refuses at once what no text could be prepared with
    return preparation


def _to_old(config: ConvertConfig, progress: Progress) -> Converted:
    if config.language or config.segmenter or config.options or config.licence:
        raise ConfigError("With --to bilm-hdf5 only the model and the folder are given.")
    from polyseme.legacy.export import export_bilm
    from polyseme.legacy.opening import OPTIONS, WEIGHTS, WORDS
    from polyseme.legacy.reading import write_hdf5
    from polyseme.model import Model

    progress.start("Converting", 2)
    model = Model.load(config.model)
    exported = export_bilm(model)
    progress.update(1, "read")
    config.folder.mkdir(parents=True, exist_ok=True)
    write_hdf5(config.folder / WEIGHTS, exported.arrays)
    write_text(config.folder / WORDS, "\n".join(exported.words) + "\n")
    write_text(config.folder / OPTIONS, json.dumps(exported.options, indent=1) + "\n")
    progress.update(2, "written")
    next_step = f"give {config.folder / OPTIONS} and {config.folder / WEIGHTS} to that program."
    return Converted(config.folder, "bilm-hdf5", model, exported.notes, next_step)
