r"""Uses of an ambiguous word with their senses, in the layout of CoarseWSD-20.

    NAME.data.txt      7 \t both seasons are available for download from apple 's itunes store .
    NAME.gold.txt      0
    classes_map.txt    {"0": "apple_apple_inc.", "1": "apple_apple"}

The first number is the word's place, from 0. The three files lie in one folder.
"""

import itertools
from pathlib import Path
from typing import Literal

from polyseme.config import Settings
from polyseme.errors import InputError
from polyseme.limits import read_json
from polyseme.tasks.families.classification import Classified
from polyseme.tasks.readers.lines import ReaderItem, ReaderItems, numbered_lines
from polyseme.text.formats.tables import NumberedLine
from polyseme.text.records import Rejected, quote

_DATA, _GOLD, _NAMES = ".data.txt", ".gold.txt", "classes_map.txt"


class SenseLabelsConfig(Settings):
    """Uses of one word: the path is that of the data file, the senses lie beside it."""

    kind: Literal["senses"] = "senses"


def read(path: Path) -> ReaderItems:
    """An example per use, its word as target and its sense by name."""
    if not path.name.endswith(_DATA):
        raise InputError(f"{path} does not end in {_DATA}; its senses would be in *{_GOLD}.")
    gold = path.with_name(path.name.removesuffix(_DATA) + _GOLD)
    names = _names(path.with_name(_NAMES))
    both = itertools.zip_longest(numbered_lines(path, "utf-8"), numbered_lines(gold, "utf-8"))
    for number, (use, sense) in enumerate(both, start=1):
        if isinstance(use, Rejected):
            yield use
        elif isinstance(sense, Rejected):
            yield sense
        elif use and use.text.strip() and sense and sense.text.strip():
            yield _example(use, sense.text.strip(), names)
        elif (use and use.text.strip()) or (sense and sense.text.strip()):
            raise InputError(
                f"Line {number} has text in only one of {path} and {gold.name}, so which use has "
                "which sense can no longer be told. Both must have the same number of lines."
            )


def _example(line: NumberedLine, sense: str, names: dict[str, str]) -> ReaderItem:
    place, _, text = line.text.partition("\t")
    words = tuple(text.split())
    if not place.isdecimal() or int(place) >= len(words):
        detail = f"there is no word {place} among {len(words)}"
        return Rejected(line.number, "no-such-word", quote(line.text), detail)
    if names and sense not in names:
        return Rejected(line.number, "no-such-sense", quote(line.text), f"sense {sense!r}")
    return (Classified(words, names.get(sense, sense), target_index=int(place)),)


def _names(path: Path) -> dict[str, str]:
    """Names of the senses by number; none if there is no such file."""
    if not path.is_file():
        return {}
    try:
        names = read_json(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not JSON: {error}.") from error
    if not isinstance(names, dict):
        raise InputError(f"{path} holds no names of senses, but {type(names).__name__}.")
    return {str(key): str(value) for key, value in names.items()}
