"""Senses that a person confirmed or labelled, kept beside a corpus: what `sense="river"` asks for.

    in   groups after a person's edits, or labels learned from a person's
    out  NAME.senses/WORD-….json: for each sense the places of its uses, and how far to trust them

A sense is a group that a person named, by whatever edits it came about, or a label. They are of the
corpus as it was when they were kept; of another, they are refused, and made again from the edits.

**Reliability** is the share of uses that are sorted as a person would; the others stand anywhere.
Of groups it is the root of the trust figure: two groups in which each use is right with this
probability, and else in either, have that adjusted Rand index. Of labels it is how many are found
again when they are left out, beyond chance.
"""

import hashlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polyseme.errors import InputError
from polyseme.limits import LimitError, read_json
from polyseme.meanings.concordance.sentence_table import Integers
from polyseme.storage.files import disk_faults_explained, make_output, write_text
from polyseme.text.corpus import Corpus, beside, state_of

_FORMAT = 1
_Z = 1.959964  # of a 95 % interval


@dataclass(frozen=True)
class Reliability:
    """Which share of the uses is sorted as a person would, beyond chance."""

    value: float
    low: float
    """The true one is above with 97.5 % confidence."""

    @classmethod
    def of_groups(cls, ari: float, error: float) -> "Reliability":
        """From the trust figure: how well mixed words are told apart."""
        return cls(math.sqrt(max(0.0, ari)), math.sqrt(max(0.0, ari - _Z * error)))

    @classmethod
    def of_labels(
        cls, left_out: Mapping[str, tuple[int, int]], by_hand: float = 0.0
    ) -> "Reliability":
        """From how many labels would have been found without each.

        `by_hand`: which share of all uses a person labelled, which are right.
        """
        sizes, right = (np.array(each, float) for each in zip(*left_out.values(), strict=True))
        total = sizes.sum()
        chance = float(((sizes / total) ** 2).sum())
        share = float(right.sum() / total)
        low = share - _Z * math.sqrt(share * (1 - share) / total + 1 / total**2)
        beyond = (max(0.0, (each - chance) / max(1e-9, 1 - chance)) for each in (share, low))
        return cls(*(by_hand + (1 - by_hand) * each for each in beyond))


@dataclass(frozen=True, eq=False)
class KeptSenses:
    """The senses of a word in a corpus."""

    word: str
    senses: Mapping[str, Integers]
    """By name, (N, 5): shard, row group, row, first word, the one after the last; in order."""
    reliability: Reliability | None
    source: str
    """Where a person's judgments are: the file of edits or labels."""
    forms: frozenset[str] = frozenset()
    """The forms of all uses, casefolded: they also find these senses."""

    def was_searched_by(self, word: str) -> bool:
        """Whether the uses were searched for by this word."""
        return word.casefold() in self.word.casefold().split(" / ")

    def is_of(self, word: str) -> bool:
        """Whether they are those of a word: it was searched for, or a query found it."""
        return self.was_searched_by(word) or word.casefold() in self.forms

    def places(self, sense: str) -> Integers:
        """Those of a sense."""
        if sense not in self.senses:
            names = ", ".join(map(repr, self.senses))
            raise InputError(f"{self.word!r} has no sense {sense!r} here. Its senses: {names}.")
        return self.senses[sense]


def folder_of(corpus: Corpus) -> Path:
    """Where the senses of a corpus are."""
    return beside(corpus.folder, "senses")


def places_in(places: Integers, group: tuple[int, int]) -> Integers:
    """Of places those in a row group (its shard, its number there), without these two."""
    return places[(places[:, :2] == group).all(axis=1), 2:]


def keep_senses(
    corpus: Corpus,
    word: str,
    places: Integers,
    names: Sequence[str],
    reliability: Reliability | None,
    source: Path,
    forms: Collection[str] = (),
) -> KeptSenses:
    """Keep the sense of each of these uses; an empty name is none. `forms`: of the uses."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for number, name in enumerate(names):
        if name:
            numbers[name].append(number)
    found = {name: places[own] for name, own in sorted(numbers.items())}
    folded = frozenset(form.casefold() for form in forms)
    kept = KeptSenses(word, found, reliability, source.name, folded)
    folder = folder_of(corpus)
    with disk_faults_explained(folder):
        make_output(folder)
        values = {
            "format": _FORMAT,
            "state": state_of(corpus),
            "word": word,
            "forms": sorted(folded),
            "source": source.name,
            "reliability": None if reliability is None else [reliability.value, reliability.low],
            "senses": {name: places.tolist() for name, places in found.items()},
        }
        write_text(folder / _file_of(word), json.dumps(values, ensure_ascii=False) + "\n")
    return kept


def _file_of(word: str) -> str:
    unique = hashlib.sha256(word.casefold().encode()).hexdigest()[:10]
    readable = re.sub(r"[^\w]+", "-", word)[:40].strip("-") or "word"
    return f"{readable}-{unique}.json"


def read_senses(corpus: Corpus) -> list[KeptSenses]:
    """Those of all words, by the names of their files."""
    state = state_of(corpus)
    return [_read(path, state, corpus) for path in sorted(folder_of(corpus).glob("*.json"))]


def _read(path: Path, state: str, corpus: Corpus) -> KeptSenses:
    try:
        found = read_json(path)
        word, is_current = str(found["word"]), found["state"] == state
        trust = found["reliability"]
        senses = {
            str(name): np.array(places, np.int64).reshape(-1, 5)
            for name, places in found["senses"].items()
        }
        reliability = None if trust is None else Reliability(*trust)
        forms = frozenset(map(str, found.get("forms", ())))
        kept = KeptSenses(word, senses, reliability, str(found["source"]), forms)
    except (OSError, LimitError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"The senses in {path} cannot be read: {error}. Keep them again."
        ) from error
    if not is_current:
        raise InputError(
            f"The senses of {word!r} were kept for an earlier version of {corpus.folder}. Keep "
            f"them again: polyseme senses {word} --in {corpus.folder} --edits {kept.source} --keep"
        )
    return kept


def has_senses_of(corpus: Corpus, word: str) -> bool:
    """Whether senses of a word are kept."""
    return any(each.is_of(word) for each in read_senses(corpus))


def find_senses_of(corpus: Corpus, word: str | None, sense: str | None = None) -> KeptSenses:
    """The senses of a word; or, without one, of the only word that has this sense."""
    every = read_senses(corpus)
    found = [
        each
        for each in every
        if (sense is None or sense in each.senses) and (word is None or each.is_of(word))
    ]
    # Those of the word itself come before those of a query that finds it too.
    own = [each for each in found if word is not None and each.was_searched_by(word)]
    if len(found := own or found) == 1:
        return found[0]
    if found:
        names = ", ".join(each.word for each in found)
        raise InputError(f"Several have such senses: {names}. Name one of them.")
    known = "; ".join(f"{each.word}: {', '.join(each.senses)}" for each in every) or "none"
    of = f" of {word!r}" if word else ""
    none = f"No sense {sense!r}{of} is" if sense else f"No senses{of} are"
    raise InputError(
        f"{none} kept beside {corpus.folder}: {known}. "
        "Keep them with `polyseme senses WORD --edits FILE --keep`, or `polyseme label --keep`."
    )
