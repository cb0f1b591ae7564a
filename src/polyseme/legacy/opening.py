"""Where the files of an old model are, whichever program wrote it, and what they hold together.

    in   a folder, a zip archive, or the weights' file with its options beside it
    out  an `OldModel`, size and SHA-256 of every file it was made of, and a model card

Only files whose names are known are read. What is in an archive is first copied out under our
names.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from polyseme.errors import ModelError
from polyseme.legacy.bilm import BilmOptions, read_bilm
from polyseme.legacy.manylangs import (
    CHARACTER_TOKENS,
    CONFIG,
    WORD_TOKENS,
    architecture_file,
    read_architecture,
    read_dictionary,
    read_manylangs,
)
from polyseme.legacy.old_model import OldModel, parse, read_json
from polyseme.legacy.weight_files import read_hdf5, read_state_dict
from polyseme.limits import read_text
from polyseme.model import Model, count_parameters
from polyseme.storage import archives
from polyseme.storage.files import describe_file, scratch_folder

OPTIONS, WEIGHTS, WORDS = "options.json", "model.hdf5", "vocab.txt"
"""The files of a bilm model as simple_elmo names them."""
_CHARACTERS_DIC, _WORDS_DIC = "char.dic", "word.dic"
_EMBEDDER, _ENCODER = "token_embedder.pkl", "encoder.pkl"
LARGEST_MEMBER = (1 << 32) - 1
"""Bytes of a file in an archive, unpacked."""
LARGEST_LIST = 32 << 20
"""Bytes of a list of words or of options; published ones have 8 MB."""
_NO_WORDS = {"<S>", "</S>", "<UNK>", "!!!MAXTERMID", ""}

Described = dict[str, dict[str, Any]]


def read_old(
    path: Path, *, options: Path | None = None, scratch: Path
) -> tuple[OldModel, Described]:
    """The model at `path`. What is unpacked or parsed is kept for the while below `scratch`."""
    if path.is_dir():
        return _read_folder(path, options, scratch)
    if not path.is_file():
        raise ModelError(f"There is no {path}. Name a folder, a zip archive or an HDF5 file.")
    if path.suffix.lower() != ".zip":
        return _read_bilm(path, options or _options_beside(path), scratch)
    with scratch_folder(scratch) as copies:
        _copy_out(path, copies)
        old, _ = _read_folder(copies, options, scratch)
    return old, {path.name: describe_file(path)}


def _copy_out(archive: Path, folder: Path) -> None:
    """Copy what is needed of an archive, whichever kind of model it holds."""
    try:
        with archives.Archive(archive) as opened:
            there = set(opened.names)
        if OPTIONS in there or CONFIG not in there:
            names = [WEIGHTS, WORDS]
            archives.extract_member(archive, OPTIONS, folder / OPTIONS, limit=LARGEST_LIST)
        else:
            archives.extract_member(archive, CONFIG, folder / CONFIG, limit=LARGEST_LIST)
            architecture, _ = architecture_file(folder)
            names = [_CHARACTERS_DIC, _WORDS_DIC, _EMBEDDER, _ENCODER, architecture.name]
        for name in there.intersection(names):
            archives.extract_member(archive, name, folder / name, limit=LARGEST_MEMBER)
    except archives.MissingMemberError as error:
        raise ModelError(f"In {archive}: {error}.") from error
    except archives.ArchiveError as error:
        raise ModelError(
            f"{archive} was refused: {error}. Copy it again from where it was published, or "
            "unpack it yourself and name the files in it."
        ) from error


def _read_folder(folder: Path, options: Path | None, scratch: Path) -> tuple[OldModel, Described]:
    if (folder / CONFIG).is_file() and (folder / _ENCODER).is_file():
        return _read_manylangs(folder, scratch)
    found = [folder / WEIGHTS] if (folder / WEIGHTS).is_file() else []
    found = found or sorted(folder.glob("*weights*.hdf5"))
    if len(found) != 1:
        told = ", ".join(path.name for path in found) or "none"
        raise ModelError(
            f"{folder} is not a known kind of old model: it has neither {CONFIG} with {_ENCODER} "
            f"(ELMoForManyLangs) nor one file of weights, {WEIGHTS} or *weights*.hdf5 (bilm-tf, "
            f"AllenNLP), but {told}. Name the file itself."
        )
    return _read_bilm(found[0], options or _options_beside(found[0]), scratch)


def _options_beside(weights: Path) -> Path:
    """Published weights have options of their own name, `..._options.json`."""
    named = weights.with_name(weights.name.replace("weights.hdf5", OPTIONS))
    return named if named != weights and named.is_file() else weights.with_name(OPTIONS)


def _read_bilm(weights: Path, options: Path, scratch: Path) -> tuple[OldModel, Described]:
    values = parse(BilmOptions, read_json(options), options)
    listed = weights.with_name(WORDS)
    words = _read_words(listed) if listed.is_file() else None
    old = read_bilm(values, read_hdf5(weights, scratch=scratch), path=weights, words=words)
    return old, _describe([weights, options] + ([listed] if words is not None else []))


def _read_words(path: Path) -> list[str]:
    """A list of words, one a line, each once and without special tokens."""
    try:
        lines = read_text(path, LARGEST_LIST).split("\n")
    except ValueError as error:
        raise ModelError(f"{path} is not a list of words: {error}. Fix it or remove it.") from error
    words = dict.fromkeys(line.strip() for line in lines)
    return [word for word in words if word not in _NO_WORDS]


def _read_manylangs(folder: Path, scratch: Path) -> tuple[OldModel, Described]:
    options = read_architecture(folder)
    used = [folder / name for name in (CONFIG, _EMBEDDER, _ENCODER)]
    dictionaries = {}
    if options.token_embedder.word_dim:
        used.append(folder / _WORDS_DIC)
        dictionaries["word"] = read_dictionary(used[-1], WORD_TOKENS, single=False)
    if options.token_embedder.char_dim:
        used.append(folder / _CHARACTERS_DIC)
        dictionaries["char"] = read_dictionary(used[-1], CHARACTER_TOKENS, single=True)
    architecture, _ = architecture_file(folder)
    used += [architecture] if architecture.is_file() else []
    old = read_manylangs(
        options,
        dictionaries,
        embedder=read_state_dict(folder / _EMBEDDER, scratch=scratch),
        encoder=read_state_dict(folder / _ENCODER, scratch=scratch),
        folder=folder,
    )
    return old, _describe(used)


def _describe(paths: Iterable[Path]) -> Described:
    return {path.name: describe_file(path) for path in paths}


# The card: where the weights came from, and what nobody here knows

_UNKNOWN = """## Limitations

- Its training data and its tokenization are unknown. Text that is tokenized differently gets worse
  vectors, without a warning.
- Its perplexity is unknown: the softmax is not part of such files, so it cannot be evaluated.
"""
_STATE = """## Differences from the original program

Here every sentence starts from a zero state, so that its vectors depend on it alone. The programs
these weights were made for carry the state of the LSTMs from batch to batch, so that their vectors
of a sentence differ a little with what was embedded before it.
"""


def write_card(model: Model, name: str, *, files: Described, notes: Iterable[str]) -> str:
    """The card as Markdown."""
    metadata, encoder = model.metadata, model.config.encoder
    lines = [
        f"# {name}",
        "",
        f"{metadata['about']} Converted from old weights by `polyseme convert`, without training.",
        "",
        "## Source",
        "",
        f"- Format of the old files: {metadata['kind']}.",
        *(
            f"- `{old}`, {told['bytes']:,} bytes, SHA-256 `{told['sha256']}`."
            for old, told in files.items()
        ),
        f"- Licence: {metadata['licence'] or 'not stated in such files; ask where you got them'}.",
        "",
        "## Model",
        "",
        (
            f"- {count_parameters(model.network):,} parameters; layer 0 and "
            f"{encoder.num_layers - 1} layers with context, "
            f"{encoder.output_dim} dimensions in each."
        ),
        f"- {len(model.vocabulary.words):,} words in its vocabulary; reads {_reads(model)}.",
        *(f"- {note}" for note in notes),
        "",
        _UNKNOWN,
        _STATE,
    ]
    return "\n".join(lines)


def _reads(model: Model) -> str:
    kinds = {"bytes": "every word, byte by byte", "none": "listed words only"}
    known = f"words, in {model.vocabulary.num_characters:,} character ids"
    return kinds.get(model.config.vocabulary.characters, known)
