"""Import ELMo weights from AllenNLP, bilm-tf, simple_elmo or ELMoForManyLangs.

Reads bilm-tf and AllenNLP weights (HDF5 with options.json, or simple_elmo's zip) and folders of
ELMoForManyLangs. No code in such files is run: a separate process parses them.

Examples:

  polyseme convert import elmo_weights.hdf5 --out models/elmo --language en

  polyseme convert import 179.zip --out models/elmo-xx
"""

from pathlib import Path
from typing import ClassVar

from polyseme.commands.convert import ConvertResult, check_output, show
from polyseme.config import Settings, build
from polyseme.errors import ConfigError
from polyseme.progress import NullProgress, Progress
from polyseme.storage.files import disk_faults_explained
from polyseme.text.preprocessing import Preparation, TextPreprocessor
from polyseme.text.settings import CorpusConfig, SegmenterName

__all__ = ["ConvertResult", "ImportConfig", "run", "show"]


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


def run(config: ImportConfig, progress: Progress | None = None) -> ConvertResult:
    """Read the old files, and write a model folder."""
    check_output(config.out)
    with disk_faults_explained(config.out):
        return _import(config, progress or NullProgress())


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


def _preparation(config: ImportConfig) -> Preparation | None:
    """How raw text will be prepared, as a trained model knows it; None if not at all."""
    if config.language is None:
        if config.segmenter is not None:
            raise ConfigError("A segmenter needs a language: add --language.")
        return None
    values = {"language": config.language, "segmenter": config.segmenter}
    settings = build(CorpusConfig, values)
    TextPreprocessor(settings)  # refuses at once what no text could be prepared with
    return Preparation.of(settings)
