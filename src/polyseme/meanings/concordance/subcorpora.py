"""Named parts of a corpus: `subcorpus=letters` in a condition stands for the one that was kept.

    NAME.subcorpora.toml    beside the corpus NAME: letters = "genre=letter and year<1900"

A condition is kept with no other name in it, so that none can lead in a circle.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import tomli_w

from polyseme.errors import ConfigError, InputError
from polyseme.limits import TOML_BYTES, LimitError, parse_toml, read_text
from polyseme.meanings.concordance.conditions import SUBCORPUS, Condition
from polyseme.storage.files import disk_faults_explained, write_text
from polyseme.text.corpus import Corpus, beside

_NAME = re.compile(r"[\w.-]{1,100}")


def path_of(corpus: Corpus) -> Path:
    """Where the names of a corpus are kept."""
    return beside(corpus.folder, "subcorpora.toml")


def read_subcorpora(corpus: Corpus) -> dict[str, str]:
    """Each name with its condition."""
    path = path_of(corpus)
    try:
        found = parse_toml(read_text(path, TOML_BYTES))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, LimitError) as error:
        raise InputError(f"The subcorpora in {path} cannot be read: {error}.") from error
    if wrong := [name for name, text in found.items() if not isinstance(text, str)]:
        raise InputError(f'{wrong[0]!r} in {path} is no condition. Expected: letters = "year<1900"')
    return found


def keep_subcorpus(corpus: Corpus, name: str, where: Condition) -> None:
    """Keep a condition under a name, in the place of what had it."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is not a valid name for a subcorpus: use letters, digits, - and _."
        )
    if SUBCORPUS in corpus.config.meta:
        raise ConfigError(
            f"{corpus.folder} has its own column {SUBCORPUS!r}, and conditions refer to that."
        )
    _write(corpus, {**read_subcorpora(corpus), name: str(where)})


def remove_subcorpus(corpus: Corpus, name: str) -> None:
    """Forget a name. The corpus stays as it is."""
    kept = read_subcorpora(corpus)
    if name not in kept:
        names = ", ".join(kept) or "none"
        raise InputError(f"{corpus.folder} has no subcorpus {name!r}; it has: {names}.")
    _write(corpus, {each: text for each, text in kept.items() if each != name})


def _write(corpus: Corpus, kept: Mapping[str, str]) -> None:
    path = path_of(corpus)
    with disk_faults_explained(path.parent):
        write_text(path, tomli_w.dumps(dict(sorted(kept.items()))))
