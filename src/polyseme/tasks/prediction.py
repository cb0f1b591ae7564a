"""Texts in, labels out, with a trained task; a file of any length in bounded memory.

in    texts, or a file with one a line (two with a tab between them for pairs)
out   `Predicted` for each sentence, or JSON lines
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.engines import hold_file
from polyseme.errors import ConfigError, InputError, ModelError
from polyseme.files import scratch_for
from polyseme.model import preparation_of
from polyseme.progress import Progress
from polyseme.tasks.account import Account
from polyseme.tasks.examples import Classified, Example, Paired, Tagged, Words
from polyseme.tasks.networks.tagging import TaggingConfig
from polyseme.tasks.readers.lines import numbered_lines
from polyseme.tasks.spans import OUTSIDE
from polyseme.tasks.task import Task
from polyseme.text.records import Rejected
from polyseme.text.sentences import cut_long
from polyseme.vectors.reading import Reader

_MARK = "*"
LONGEST_LINE_LABELLED = 1 << 20
"""Characters of a text; it takes about five seconds to tag the words of half of it."""
LONGEST_TEXT = 20_000
"""Words of a text that has one label: its vectors are in memory together."""
LONGEST_OF_PAIR = 4_096
"""Words of each of two texts: every word of one is compared with every word of the other."""


@dataclass(frozen=True)
class Predicted:
    """A sentence, a text or a pair, with what was found."""

    texts: tuple[str, ...]
    """What was given, its words with spaces between them."""
    words: Words
    labels: tuple[str, ...] | None = None
    """A label for every word, in a task that tags."""
    label: str | None = None
    """The one label, in all others."""
    marks_spans: bool = False
    marked: int | None = None

    def as_json(self) -> dict[str, Any]:
        """What is written."""
        if self.label is not None:
            return {"texts": list(self.texts), "label": self.label}
        told: dict[str, Any] = {"words": list(self.words), "labels": list(self.labels or ())}
        return told if self.marked is None else {**told, "marked": self.marked}


class Predictor:
    """A task that labels what people write."""

    def __init__(self, task: Task) -> None:
        self.task = task
        model = task.config.words_like
        if model is None:
            raise ConfigError(
                "Nothing says how this task's words are found in running text: it was trained "
                "without a model. Name one when training: data.words_like."
            )
        if "is_on_pairs" not in task.facts:
            raise ModelError(
                "This task does not tell whether it is on pairs of texts: train it again."
            )
        self._reader = Reader(preparation_of(model))

    def given(self, texts: Sequence[str]) -> Iterator[Example]:
        """Texts as examples without a right answer."""
        if self.task.facts.get("is_on_pairs", False):
            if len(texts) % 2:
                raise InputError(
                    f"This task compares two texts; {len(texts)} cannot be paired. Quote each."
                )
            pairs = zip(texts[::2], texts[1::2], strict=True)
            return (self._pair(first, second) for first, second in pairs)
        return (example for text in texts for example in self._examples(text))

    def predict(self, examples: Iterable[Example]) -> Iterator[Predicted]:
        """What is found, in order."""
        network = self.task.config.network
        marks_spans = isinstance(network, TaggingConfig) and network.scheme != "none"
        for example, labels in self.task.predict(examples):
            match example:
                case Tagged(words, _, marked):
                    yield Predicted((" ".join(words),), words, labels, None, marks_spans, marked)
                case Classified(text):
                    assert isinstance(text, tuple)
                    yield Predicted((" ".join(text),), text, None, labels[0])
                case Paired(first, second):
                    yield Predicted((" ".join(first), " ".join(second)), (), None, labels[0])

    def label_file(self, path: Path, out: Path, progress: Progress) -> Account:
        """Label a file of texts; the result appears whole or not at all."""
        account = Account()
        progress.start("Labelling", path.stat().st_size if path.is_file() else 0)
        self.write(self.predict(self._of_file(path, account, progress)), out)
        return account

    def write(self, found: Iterable[Predicted], out: Path) -> None:
        """JSON lines; refused while another process writes to the same file."""
        with (
            hold_file(out),
            scratch_for(out) as scratch,
            scratch.open("w", encoding="utf-8", newline="\n") as stream,
        ):
            for each in found:
                stream.write(json.dumps(each.as_json(), ensure_ascii=False) + "\n")

    def _of_file(self, path: Path, account: Account, progress: Progress) -> Iterator[Example]:
        """A line that cannot be used is counted and told."""
        done = 0
        for line in numbered_lines(path, "utf-8"):
            if isinstance(line, Rejected):
                account.reject(line, str(path))
                continue
            done += len(line.text.encode()) + 1
            progress.update(done)
            if not line.text.strip():
                continue
            try:
                examples = self._of_line(line.text)
            except InputError as error:
                unfit = Rejected(line.number, "unfit", line.text, str(error))
                account.reject(unfit, str(path))
                continue
            account.keep(len(examples))
            yield from examples

    def _of_line(self, text: str) -> list[Example]:
        if not self.task.facts.get("is_on_pairs", False):
            return list(self._examples(text))
        first, tab, second = text.partition("\t")
        if not tab:
            raise InputError("no tab between two texts")
        return [self._pair(first, second)]

    def _pair(self, first: str, second: str) -> Paired:
        return Paired(self._words(first, LONGEST_OF_PAIR), self._words(second, LONGEST_OF_PAIR), "")

    def _words(self, text: str, longest: int) -> Words:
        _check_length(len(text), LONGEST_LINE_LABELLED, "characters")
        words = self._reader.words(text)
        _check_length(len(words), longest, "words")
        if not words:
            raise InputError(f"There is no word in {text[:60]!r}.")
        return words

    def _sentences(self, text: str) -> Iterator[Words]:
        """Sentences to be tagged; those that a corpus would have cut are cut alike."""
        _check_length(len(text), LONGEST_LINE_LABELLED, "characters")
        for found in self._reader.read([text]):
            for begin, end in cut_long(0, len(found.words), self._reader.max_words):
                yield tuple(found.words[begin:end])

    def _examples(self, text: str) -> Iterator[Example]:
        """Sentences to be tagged, or the text to be classified."""
        network = self.task.config.network
        is_marked = getattr(network, "is_marked", False)
        if not isinstance(network, TaggingConfig):
            words = self._words(text, LONGEST_TEXT)
            marked, words = _find_mark(words) if is_marked else (None, words)
            yield Classified(words, "", marked)
            return
        at_characters = self.task.config.feed.units is not None
        for found in self._sentences(text):
            words = tuple("".join(found)) if at_characters else found
            marked, words = _find_mark(words) if is_marked else (None, words)
            yield Tagged(words, (OUTSIDE,) * len(words), marked)


def _check_length(number: int, longest: int, what: str) -> None:
    if number > longest:
        raise InputError(
            f"A text has {number:,} {what}; up to {longest:,} are labelled at once. Cut it into "
            "parts, one a line."
        )


def _find_mark(words: Words) -> tuple[int, Words]:
    """The word between two asterisks, and all words without them."""
    places = [place for place, word in enumerate(words) if word == _MARK]
    if len(places) == 2 and places[1] == places[0] + 2:
        return places[0], tuple(word for word in words if word != _MARK)
    for place, word in enumerate(words):
        if len(word) > 2 and word.startswith(_MARK) and word.endswith(_MARK):
            return place, (*words[:place], word[1:-1], *words[place + 1 :])
    raise InputError(
        f"This task is about one word of each sentence. Put asterisks around it: "
        f"{' '.join(words[:12])!r} has none."
    )
