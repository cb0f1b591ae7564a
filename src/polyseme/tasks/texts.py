"""What people write, for a family to make examples of: words found as in training, limits kept.

Where every row of a file went is counted:
    read = kept + rejected         sentences, rows or lines; blank ones are not counted
    examples                       may be more than `kept`: a sentence has many predicates

Windows of a long text: parts of it that overlap and are read at once.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from polyseme.embedding.loading import preparation_from
from polyseme.errors import ConfigError, InputError
from polyseme.text.preprocessing import TextPreprocessor, original_offsets
from polyseme.text.records import Rejected

_FAULTS_KEPT = 20


@dataclass
class ExampleStats:
    """Counts of one file, or of several read one after the other."""

    read: int = 0
    kept: int = 0
    examples: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """Why units were rejected, and how many for each reason."""
    notes: Counter[str] = field(default_factory=Counter)
    """What is remarkable in units that were kept, and how many of each."""
    faults: list[str] = field(default_factory=list)
    """The first of them in words, each with its file and line."""

    @property
    def rejected(self) -> int:
        """How many units gave no example."""
        return self.reasons.total()

    def keep(self, examples: int) -> None:
        """Count one unit that gave examples."""
        self.read += 1
        self.kept += 1
        self.examples += examples

    def reject(self, rejected: Rejected, name: str, unit: str = "line") -> None:
        """Count one unit that gave none; `name` is that of the file, `unit` what is counted."""
        self.read += rejected.units
        self.reasons[rejected.reason] += rejected.units
        if len(self.faults) < _FAULTS_KEPT:
            detail = f" ({rejected.detail})" if rejected.detail else ""
            quoted = f": {rejected.quote[:80]!r}" if rejected.quote else ""
            place = f"{name}, {unit} {rejected.place}"
            self.faults.append(f"{place}: {rejected.reason}{detail}{quoted}")

    def withdraw(self, reason: str, fault: str) -> None:
        """Reject a unit of one example that was kept before."""
        self.kept -= 1
        self.examples -= 1
        self.reasons[reason] += 1
        if len(self.faults) < _FAULTS_KEPT:
            self.faults.append(f"{fault}: {reason}")

    def summary(self) -> str:
        """One line for the user; says nothing of reasons if nothing was rejected."""
        noted = [f"{count:,} with {note}" for note, count in self.notes.most_common()]
        total = ", ".join([f"{self.examples:,} examples", *noted])
        if not self.reasons:
            return total
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.most_common())
        return f"{total}; {self.rejected:,} of {self.read:,} rows rejected: {reasons}"


WordTuple: TypeAlias = tuple[str, ...]
TextInput: TypeAlias = str | tuple[str, ...]
"""A text, or those that are read together: a pair, a question with its passage."""
_ASTERISK = "*"
LONGEST_LINE_LABELLED = 1 << 20
"""Characters of a text; it takes about five seconds to tag the words of half of it."""
LONGEST_DOCUMENT_LABELLED = 4 << 20
"""Characters of a text that is read in windows, a paragraph at a time."""
LONGEST_TEXT = 20_000
"""Words of a text that has one label: its vectors are in memory together."""
LONGEST_OF_PAIR = 4_096
"""Words of each of two texts: every word of one is compared with every word of the other."""


class PlacedWords(NamedTuple):
    """The words of a text, and where each begins and ends in the text as it was given."""

    words: WordTuple
    starts: tuple[int, ...]
    stops: tuple[int, ...]


class TextReader:
    """Running text in, words out, found as a model's were. Loads a segmenter when needed."""

    def __init__(self, tokenizer_from: Path | None, *, at_characters: bool = False) -> None:
        """`at_characters`: labels stand at characters."""
        self._tokenizer_from, self._at_characters = tokenizer_from, at_characters

    @cached_property
    def preprocess(self) -> TextPreprocessor:
        """Text in; words, sentences and their offsets out."""
        if self._tokenizer_from is None:
            raise ConfigError(
                "No tokenizer is set for running text. Name a model, a corpus or a language in "
                "data.tokenizer_from, and train with it."
            )
        return TextPreprocessor.of_model(preparation_from(self._tokenizer_from))

    def split(self, text: str) -> WordTuple:
        """The words of all sentences of a text; there may be none."""
        return tuple(self.preprocess(text).words.words)

    @cached_property
    def placed(self) -> Callable[[str], PlacedWords]:
        """The words of a text with their places; the last texts are remembered, since one passage
        has many questions. Where labels stand at characters, those are the words."""
        return lru_cache(maxsize=4)(self._placed)

    def _placed(self, text: str) -> PlacedWords:
        if self._at_characters:
            self.preprocess.normalize(text)  # or an error, as for all text
            found = [place for place, character in enumerate(text) if not character.isspace()]
            characters = tuple(text[place] for place in found)
            return PlacedWords(characters, tuple(found), tuple(place + 1 for place in found))
        done = self.preprocess(text)
        if not done.words.words:
            return PlacedWords((), (), ())
        origin = original_offsets(text, done.text, lambda part: self.preprocess.normalize(part)[0])
        after = np.append(origin, len(text))
        begins = np.array(done.words.starts)
        ends = begins + [len(word) for word in done.words.words]
        stops = np.maximum(after[ends], after[ends - 1] + 1)
        starts = tuple(after[begins].tolist())
        return PlacedWords(tuple(done.words.words), starts, tuple(stops.tolist()))

    def words(self, text: str, longest: int = LONGEST_TEXT) -> WordTuple:
        """The same of what a person wrote: not too long, and not empty."""
        check_length(len(text), LONGEST_LINE_LABELLED, "characters")
        words = self.split(text)
        check_length(len(words), longest, "words")
        if not words:
            raise InputError(f"There is no word in {text[:60]!r}.")
        return words

    def check_length(self, text: str) -> None:
        """Refuse what is longer than a long novel."""
        check_length(len(text), LONGEST_DOCUMENT_LABELLED, "characters")

    def sentences(self, text: str) -> Iterator[WordTuple]:
        """The sentences of a text; those that a corpus would have split are split alike.

        Where labels stand at characters, those are the words.
        """
        check_length(len(text), LONGEST_LINE_LABELLED, "characters")
        for found in self.preprocess(text).stored():
            yield tuple("".join(found.words)) if self._at_characters else tuple(found.words)


def group_texts(texts: Sequence[TextInput], num_texts: int | None) -> list[tuple[str, ...]]:
    """The texts of each example, where an example has so many; of any number, if it is None."""
    if num_texts == 1 and not all(isinstance(text, str) for text in texts):
        raise InputError("This task labels single texts: give a text, or a list of texts.")
    if num_texts is None and not all(isinstance(text, str) for text in texts):
        return [(text,) if isinstance(text, str) else tuple(text) for text in texts]
    flat = [part for text in texts for part in ((text,) if isinstance(text, str) else text)]
    size = num_texts or max(1, len(flat))
    if len(flat) % size:
        raise InputError(
            f"This task reads {size} texts together; {len(flat)} cannot be divided by "
            "that. Quote each."
        )
    return [tuple(flat[begin : begin + size]) for begin in range(0, len(flat), size)]


def split_line(line: str, num_texts: int | None) -> tuple[str, ...]:
    """The texts of a line of a file, with a tab between them."""
    texts = line.split("\t", -1 if num_texts is None else num_texts - 1)
    if num_texts is not None and len(texts) < num_texts:
        raise InputError(f"no tab between {num_texts} texts")
    return tuple(texts)


def find_target(words: WordTuple) -> tuple[int, WordTuple]:
    """The word between two asterisks, and all words without them."""
    places = [place for place, word in enumerate(words) if word == _ASTERISK]
    if len(places) == 2 and places[1] == places[0] + 2:
        return places[0], tuple(word for word in words if word != _ASTERISK)
    for place, word in enumerate(words):
        if len(word) > 2 and word.startswith(_ASTERISK) and word.endswith(_ASTERISK):
            return place, (*words[:place], word[1:-1], *words[place + 1 :])
    raise InputError(
        f"This task is about one word of each sentence. Put asterisks around it: "
        f"{' '.join(words[:12])!r} has none."
    )


def check_length(number: int, longest: int, what: str) -> None:
    """Refuse a text of too many words or characters."""
    if number > longest:
        raise InputError(
            f"A text has {number:,} {what}; up to {longest:,} are labelled at once. Cut it into "
            "parts, one per line."
        )


Window: TypeAlias = tuple[int, int]
"""Words from the first up to but not including the second."""


def choose_windows(
    words: Sequence[str], question: Sequence[str], *, size: int, overlap: int, most: int
) -> list[Window]:
    """All windows of the words, in order; of more than `most`, those that share most with the
    question, a word counting the more the fewer windows it is in (tf-idf without tf)."""
    begins = range(0, max(1, len(words) - overlap), size - overlap)
    found = [(begin, min(begin + size, len(words))) for begin in begins]
    if len(found) <= most:
        return found
    asked = {word.lower() for word in question}
    shared = [asked & {word.lower() for word in words[begin:end]} for begin, end in found]
    num_with = Counter(word for each in shared for word in each)
    # Sorted, so that the sum has the same last bits whatever the order of a set.
    weights = [
        sum(math.log(1 + len(found) / num_with[word]) for word in sorted(each)) for each in shared
    ]
    best = sorted(range(len(found)), key=lambda number: (-weights[number], number))[:most]
    return [found[number] for number in sorted(best)]
