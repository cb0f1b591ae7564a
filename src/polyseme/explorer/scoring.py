"""Score: a sentence with each word coloured by how expected it was, and what could stand there."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from polyseme.embedding.embedder import Embedder
from polyseme.explorer.desk import Desk
from polyseme.explorer.language import PageError, told_as
from polyseme.explorer.pages import use_number
from polyseme.meanings.concordance.marked_use import MarkedUse
from polyseme.meanings.substitutes import find_substitutes
from polyseme.pretraining.scores import score_sentences
from polyseme.printable import printable

_STEPS = (4, 8, 12, 16)  # bits of surprise at which the colour changes
_MOST_WORDS = 300
_NUM_SUBSTITUTES = 16


@dataclass(frozen=True)
class ScoredWord:
    """A word of a scored sentence."""

    number: int
    """Among all words of the text."""
    word: str
    bits: float
    """Of surprise: the mean of both directions."""

    @property
    def step(self) -> int:
        """0 for expected words to 4 for very surprising ones."""
        return sum(self.bits >= edge for edge in _STEPS)


@dataclass(frozen=True)
class ScoredSentence:
    """Its words, and the bits of all of it."""

    words: list[ScoredWord]
    total: float


def score(request: Request) -> Response:
    """A text that the reader wrote."""
    desk = Desk.of(request)
    view = desk.view(request)
    scored = _score(desk, view.text) if view.text.strip() else []
    return desk.render(request, "score.html", view, scored=scored)


def substitutes(request: Request) -> Response:
    """What the model would put in the place of one of the words."""
    desk = Desk.of(request)
    view = desk.view(request)
    sentences = _sentences(desk, view.text)
    number = use_number(request, sum(map(len, sentences)))
    for words in sentences:
        if number < len(words):
            break
        number -= len(words)
    use = MarkedUse(tuple(words), number, number + 1)
    with told_as("no_probability"):
        found = find_substitutes(desk.workspace.describer().embedder, use, _NUM_SUBSTITUTES)
    shown = [(printable(word), probability) for word, probability in found.words]
    return desk.render(
        request, "substitutes.html", view, word=printable(use.form), own=found.own, found=shown
    )


def _sentences(desk: Desk, text: str) -> list[list[str]]:
    preprocessor = desk.workspace.describer().embedder.preprocessor
    sentences = [list(sentence.words) for sentence in preprocessor(text).stored()]
    if not sentences:
        raise PageError("no_word")
    if sum(map(len, sentences)) > _MOST_WORDS:
        raise PageError("too_many_words", most=_MOST_WORDS)
    return sentences


def _score(desk: Desk, text: str) -> list[ScoredSentence]:
    embedder = desk.workspace.describer().embedder
    if not isinstance(embedder, Embedder) or embedder.model.config.objective.kind not in (
        "bidirectional",
        "causal",
    ):
        raise PageError("no_probability")
    found, number = [], 0
    for scored in score_sentences(embedder.model, _sentences(desk, text)):
        told = scored.as_json()
        columns = [told[part]["words"] for part in scored.parts]
        words = []
        for word, *bits in zip(scored.words, *columns, strict=True):
            words.append(ScoredWord(number, printable(word), -sum(bits) / len(bits)))
            number += 1
        found.append(ScoredSentence(words, -told["total"]))
    return found
