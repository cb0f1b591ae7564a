"""Where the files of an old model are, whichever program wrote it, and what they hold together.

    in   a folder, a zip archive, or the weights' file with its options beside it
    out  an `OldModel`, and size and SHA-256 of every file it was made of

Only files whose names are known are read. Weights go through `reading.py`; what is in an archive is
copied out under our names first.
"""

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from polyseme.errors import ModelError
from polyseme.legacy.bilm import read_bilm
from polyseme.legacy.manylangs import read_manylangs
from polyseme.legacy.manylangs_files import (
    CHARACTER_TOKENS,
    CONFIG,
    WORD_TOKENS,
    architecture_file,
    read_architecture,
    read_dictionary,
)
from polyseme.legacy.old import OldModel
from polyseme.legacy.options import BilmOptions, parse, read_json
from polyseme.legacy.reading import extract_member, read_hdf5, read_state_dict
from polyseme.limits import read_text
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
    """The model at `path`. What is in an archive is copied for the while, below `scratch`."""
    if path.is_dir():
        return _read_folder(path, options)
    if not path.is_file():
        raise ModelError(f"There is no {path}. Name a folder, a zip archive or an HDF5 file.")
    if path.suffix.lower() != ".zip":
        return _read_bilm(path, options or _options_beside(path))
    with scratch_folder(scratch) as copies:
        _copy_out(path, copies)
        old, _ = _read_folder(copies, options)
    return old, {path.name: describe_file(path)}


def _copy_out(archive: Path, folder: Path) -> None:
    """Copy what is needed of an archive, whichever kind of model it holds."""
    names = [WEIGHTS, WORDS]
    try:
        extract_member(archive, OPTIONS, folder / OPTIONS, limit=LARGEST_LIST)
    except ModelError as error:
        try:
            extract_member(archive, CONFIG, folder / CONFIG, limit=LARGEST_LIST)
        except ModelError:
            raise error from None
        architecture, _ = architecture_file(folder)
        names = [_CHARACTERS_DIC, _WORDS_DIC, _EMBEDDER, _ENCODER, architecture.name]
    with zipfile.ZipFile(archive) as opened:  # its index was found sound just now
        there = set(opened.namelist())
    for name in there.intersection(names):
        extract_member(archive, name, folder / name, limit=LARGEST_MEMBER)


def _read_folder(folder: Path, options: Path | None) -> tuple[OldModel, Described]:
    if (folder / CONFIG).is_file() and (folder / _ENCODER).is_file():
        return _read_manylangs(folder)
    found = [folder / WEIGHTS] if (folder / WEIGHTS).is_file() else []
    found = found or sorted(folder.glob("*weights*.hdf5"))
    if len(found) != 1:
        told = ", ".join(path.name for path in found) or "none"
        raise ModelError(
            f"{folder} is not a known kind of old model: it has neither {CONFIG} with {_ENCODER} "
            f"(ELMoForManyLangs) nor one file of weights, {WEIGHTS} or *weights*.hdf5 (bilm-tf, "
            f"AllenNLP), but {told}. Name the file itself."
        )
    return _read_bilm(found[0], options or _options_beside(found[0]))


def _options_beside(weights: Path) -> Path:
    """Published weights have options of their own name, `..._options.json`."""
    named = weights.with_name(weights.name.replace("weights.hdf5", OPTIONS))
    return named if named != weights and named.is_file() else weights.with_name(OPTIONS)


def _read_bilm(weights: Path, options: Path) -> tuple[OldModel, Described]:
    values = parse(BilmOptions, read_json(options), options)
    listed = weights.with_name(WORDS)
    words = _read_words(listed) if listed.is_file() else None
    old = read_bilm(values, read_hdf5(weights), path=weights, words=words)
    return old, _describe([weights, options] + ([listed] if words is not None else []))


def _read_words(path: Path) -> list[str]:
    """A list of words, one a line, each once and without special tokens."""
    try:
        lines = read_text(path, LARGEST_LIST).split("\n")
    except ValueError as error:
        raise ModelError(f"{path} is not a list of words: {error}. Fix it or remove it.") from error
    words = dict.fromkeys(line.strip() for line in lines)
    return [word for word in words if word not in _NO_WORDS]


def _read_manylangs(folder: Path) -> tuple[OldModel, Described]:
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
        embedder=read_state_dict(folder / _EMBEDDER),
        encoder=read_state_dict(folder / _ENCODER),
        folder=folder,
    )
    return old, _describe(used)


def _describe(paths: Iterable[Path]) -> Described:
    return {path.name: describe_file(path) for path in paths}
