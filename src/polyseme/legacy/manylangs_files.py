"""The small files of an ELMoForManyLangs folder: its architecture and its dictionaries."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from polyseme.errors import ModelError
from polyseme.legacy.options import ManyLangsOptions, parse, read_json
from polyseme.limits import read_text

CONFIG = "config.json"
CHARACTER_TOKENS = ("<pad>", "<eow>", "<bow>", "<bos>", "<eos>", "<oov>", "<oov>")
"""The characters whose rows our padding, begin, end, BOS, EOS, MASK and UNK read."""
WORD_TOKENS = ("<pad>", "<bos>", "<eos>", "<oov>", "<oov>")
"""The words whose rows our PAD, BOS, EOS, UNK and MASK read."""
_IDEOGRAPHIC_SPACE = "\u3000"
LARGEST_DICTIONARY = 32 << 20
"""Bytes of word.dic and char.dic; those of published models have up to 12 MB."""
_PUBLISHED = {
    "encoder": {
        "name": "elmo",
        "projection_dim": 512,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 4096,
        "n_layers": 2,
    },
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "n_highway": 2,
        "word_dim": 100,
        "char_dim": 50,
        "max_characters_per_token": 50,
    },
}
# The program came with these two, which are the same; models name them but do not hold them.
_PACKAGED = {
    "cnn_50_100_512_4096_sample.json": _PUBLISHED,
    "cnn_0_100_512_4096_sample.json": _PUBLISHED,
}


@dataclass(frozen=True)
class Dictionary:
    """What has a row in a table of theirs."""

    entries: list[str]
    """All but the special tokens, in the order of their rows."""
    rows: list[int]
    """Row of each special token of ours, then of each entry: their table put in our order."""
    size: int
    """How many rows their table has."""


def architecture_file(folder: Path) -> tuple[Path, str]:
    """Where the architecture that `config.json` names would be, and how it was named.

    Released folders name a path on their maker's machine; of such a one only the last part counts.
    Nothing outside the folder is ever read.
    """
    named = read_json(folder / CONFIG).get("config_path")
    if not isinstance(named, str) or not PureWindowsPath(named).name:
        raise ModelError(f"{folder / CONFIG} names no architecture (config_path).")
    path = PurePosixPath(named)
    is_inside = not path.is_absolute() and ".." not in path.parts
    if is_inside and (folder / path).is_file():
        return folder / path, named
    return folder / PureWindowsPath(named).name, named


def read_architecture(folder: Path) -> ManyLangsOptions:
    """The architecture that `config.json` names: in the folder, or one that program came with."""
    path, named = architecture_file(folder)
    if path.is_file():
        return parse(ManyLangsOptions, read_json(path), path)
    if path.name in _PACKAGED:
        return parse(ManyLangsOptions, dict(_PACKAGED[path.name]), folder / CONFIG)
    raise ModelError(
        f"{folder / CONFIG} names the architecture {named}, which is not in the folder. Put "
        f"{path.name} there; it comes with the program, in configs/."
    )


def read_dictionary(path: Path, special_tokens: tuple[str, ...], *, single: bool) -> Dictionary:
    """A `.dic` file: what it numbers, with `special_tokens` first. If `single`, characters only."""
    ids = _numbered(path)
    missing = set(special_tokens) - ids.keys()
    if missing:
        raise ModelError(f"{path} lacks {', '.join(sorted(missing))}. Copy the folder again.")
    if min(ids.values()) < 0 or len(set(ids.values())) < len(ids):
        raise ModelError(f"{path} gives a number twice or one below 0. Copy the folder again.")
    by_row = sorted(ids.keys() - set(special_tokens), key=ids.__getitem__)
    # An entry of several characters is never met where one is looked up.
    entries = [entry for entry in by_row if len(entry) == 1] if single else by_row
    rows = [ids[name] for name in (*special_tokens, *entries)]
    return Dictionary(entries, rows, 1 + max(ids.values()))


def _numbered(path: Path) -> dict[str, int]:
    """Each entry with its number, read exactly as that program does."""
    if not path.is_file():
        raise ModelError(f"There is no {path}. Take the whole folder.")
    ids = {}
    try:
        for line in read_text(path, LARGEST_DICTIONARY).splitlines():
            fields = line.strip().split("\t")
            # Its strip also takes a space that is itself the entry: the ideographic one.
            entry, number = fields if len(fields) > 1 else (_IDEOGRAPHIC_SPACE, fields[0])
            ids[entry] = int(number)
    except ValueError as error:
        raise ModelError(f"{path} is damaged: {error}. Copy the folder again.") from error
    return ids
