"""The span of a passage that answers a question (after Clark and Gardner 2018, as ELMo's authors).

    question, passage   read by the same BiLSTM: S rows, B questions, then all windows
    attention           from each to the other (BiDAF), then of the passage to itself
    pointers            a BiLSTM for the first word of the answer, another for the last; log p of
                        each adds up to one over all windows of a passage

A long passage is cut into windows that overlap; first and last word are chosen among the words of
all its windows. Of very long passages only those windows are read that share most with the
question.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from rich.console import RenderableType
from torch import Tensor, nn
from torch.nn import functional

from polyseme.config import Settings
from polyseme.display import PrintableText, html_words, sentence, summary
from polyseme.encoders.lstm import Lstm, LstmConfig
from polyseme.errors import InputError
from polyseme.progress import SILENT, Progress
from polyseme.tasks.embeddings.embeddings import Embeddings
from polyseme.tasks.embeddings.features import ByteDropout, InputDims, TaskInputs
from polyseme.tasks.families.family import Columns, ExampleFeatures, Network, TaskBatch, TaskFamily
from polyseme.tasks.families.labels import (
    COLOURS,
    Context,
    ContextConfig,
    check_finite,
    number_in_example,
    select_rows,
)
from polyseme.tasks.measures import ANSWER_MEASURES, AnswerScores, AnswerUnit
from polyseme.tasks.texts import (
    LONGEST_LINE_LABELLED,
    TextReader,
    Window,
    WordTuple,
    check_length,
    choose_windows,
)

_NEVER = -1e4  # log p of what is not there: finite, so that its gradient is 0 and not nan


class FoundSpan(NamedTuple):
    """An answer: the window, its first and its last word in it, and how probable it is."""

    window: int
    first: int
    last: int
    probability: float


class Likeness(nn.Module):
    """How well each word of one text goes with each of another: w1 x + w2 y + w3 (x * y)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.first = nn.Linear(dim, 1, bias=False)
        self.second = nn.Linear(dim, 1, bias=False)
        self.both = nn.Parameter(torch.ones(dim))  # at first the plain product

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        """(S, T, D), (S, U, D) -> (S, T, U)"""
        together = torch.bmm(one * self.both, other.transpose(1, 2))
        found: Tensor = self.first(one) + self.second(other).transpose(1, 2) + together
        return found


class SpanPointer(Network):
    """First and last word of the answer."""

    def __init__(self, config: ContextConfig, dims: InputDims, *, max_answer: int) -> None:
        super().__init__()
        self.max_answer = max_answer
        self.context = Context(config, dims)
        dim, read = config.dim, self.context.dim
        one = LstmConfig(num_layers=1, proj_size=dim)
        self.to_question = Likeness(read)
        self.attended = nn.Linear(4 * read + 1, dim)
        self.to_itself = Likeness(dim)
        self.self_attended = nn.Linear(3 * dim, dim)
        self.read_start = Lstm(one, "joint")
        self.start = nn.Linear(dim, 1)
        self.read_end = Lstm(one, "joint", input_size=2 * dim)
        self.end = nn.Linear(dim, 1)
        self.dropout = ByteDropout(config.dropout)

    def scores(self, inputs: TaskInputs, batch: TaskBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Of the first and the last word, and which words there are: each (S - B, T)"""
        asked = select_rows(inputs, slice(0, len(batch)))
        windows = select_rows(inputs, slice(len(batch), None))
        owner = batch.example_of[len(batch) :]
        questions, is_word = self.context(asked)[owner], asked.mask[owner]
        mask = windows.mask
        shared = batch["is_asked"][owner, number_in_example(owner)]  # (S - B, T)
        passage = self._attend(self.context(windows), mask, questions, is_word)
        passage = self.attended(torch.cat([passage, shared[..., None]], dim=-1)).relu()
        passage = (passage + self._attend_itself(passage, mask)) * mask[..., None]
        lengths = mask.sum(dim=1)
        [first] = self.read_start(self.dropout(passage), lengths)
        [last] = self.read_end(self.dropout(torch.cat([passage, first], dim=-1)), lengths)
        return self.start(first)[..., 0], self.end(last)[..., 0], mask

    def _attend(self, passage: Tensor, mask: Tensor, questions: Tensor, is_word: Tensor) -> Tensor:
        """Each word with what it finds in the question, and with the words the question finds."""
        likeness = self.to_question(passage, questions)  # (S - B, T, U)
        likeness = likeness.masked_fill(~is_word[:, None, :], -torch.inf)
        found = torch.bmm(likeness.softmax(dim=-1), questions * is_word[..., None])
        wanted = likeness.amax(dim=-1).masked_fill(~mask, -torch.inf).softmax(dim=-1)  # (S - B, T)
        asked_for = torch.bmm(wanted[:, None, :], passage * mask[..., None])  # (S - B, 1, D)
        return torch.cat([passage, found, passage * found, passage * asked_for], dim=-1)

    def _attend_itself(self, passage: Tensor, mask: Tensor) -> Tensor:
        """What each word finds among the others of its window."""
        likeness = self.to_itself(passage, passage)
        is_same = torch.eye(passage.shape[1], dtype=torch.bool, device=passage.device)
        # Not -inf: a window of one word has no other, and its softmax would be nan.
        likeness = likeness.masked_fill(is_same, _NEVER).masked_fill(~mask[:, None, :], -torch.inf)
        found = torch.bmm(likeness.softmax(dim=-1), passage * mask[..., None])
        both = torch.cat([passage, found, passage * found], dim=-1)
        merged: Tensor = self.self_attended(both).relu()
        return merged

    def losses(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """-log p of the first word, and of the last: (B,). 0 where the answer is in no window."""
        starts, ends, mask = self.scores(inputs, batch)
        owner = batch.example_of[len(batch) :]
        number = number_in_example(owner)
        gold = batch["gold"][owner, number]  # (S - B, 2)
        is_there = gold[:, 0] > 0
        shape = (len(batch), batch["gold"].shape[1])
        lost = torch.zeros(len(batch), device=owner.device)
        for scores, place in ((starts, gold[:, 0]), (ends, gold[:, 1])):
            log_p = _log_p(scores.float(), mask, owner, len(batch))
            own = log_p.gather(1, (place - 1).clamp(min=0)[:, None])[:, 0]
            # Where windows overlap, the answer may be found in either of them.
            table = own.new_full(shape, _NEVER)
            table = table.index_put((owner, number), torch.where(is_there, own, _NEVER))
            lost = lost - table.logsumexp(dim=1)
        num_gold = torch.zeros_like(lost).index_add(0, owner, is_there.to(lost.dtype))
        return torch.where(num_gold > 0, lost, 0.0)

    def decode(self, inputs: TaskInputs, batch: TaskBatch) -> list[FoundSpan]:
        """The most probable span of each passage with at most so many words."""
        starts, ends, mask = self.scores(inputs, batch)
        check_finite(torch.stack([starts, ends])[:, mask])
        owner = batch.example_of[len(batch) :]
        first = _log_p(starts.float(), mask, owner, len(batch))
        last = _log_p(ends.float(), mask, owner, len(batch))
        span = min(self.max_answer, last.shape[1])
        ahead = functional.pad(last, (0, span - 1), value=-torch.inf).unfold(1, span, 1)
        best, which = (first[..., None] + ahead).flatten(1).max(dim=1)  # (S - B,)
        found: dict[int, FoundSpan] = {}
        told = (owner, number_in_example(owner), which, best.exp())
        for example, window, place, p in zip(*(part.tolist() for part in told), strict=True):
            begin = place // span
            if example not in found or p > found[example].probability:
                found[example] = FoundSpan(window, begin, begin + place % span, p)
        return [found[example] for example in range(len(batch))]


def _log_p(scores: Tensor, mask: Tensor, owner: Tensor, num_examples: int) -> Tensor:
    """(S, T) -> (S, T): log-softmax over the words of all rows of an example; -inf at padding."""
    scores = scores.masked_fill(~mask, -torch.inf)
    highest = scores.new_full((num_examples,), -torch.inf)
    highest = highest.scatter_reduce(0, owner, scores.amax(dim=1), "amax").detach()
    shifted = (scores - highest[owner, None]).exp().sum(dim=1)
    total = scores.new_zeros(num_examples).index_add(0, owner, shifted)
    return scores - (highest + total.log())[owner, None]


_LONGEST_QUESTION = 256  # words of it that are read
_AROUND = 80  # characters shown on both sides of an answer


class QuestionAnsweringConfig(Settings):
    """The span of a passage that answers a question, as in SQuAD."""

    kind: Literal["question_answering"] = "question_answering"
    context: ContextConfig = ContextConfig(dim=128, dropout=0.2)
    """Layers that read question and passage; the pointers have the same dimension."""
    window: int = Field(384, ge=2, le=4_096)
    """Maximum number of words of a passage read at a time; longer ones are split."""
    overlap: int = Field(128, ge=0)
    """Words that a window has in common with the next."""
    max_windows: int = Field(8, ge=1, le=256)
    """Windows of one passage that are read; of more, those with most words of the question."""
    max_answer: int = Field(30, ge=1, le=4_096)
    """Words of the longest answer that is given; characters, where those are the words."""
    unit: AnswerUnit = "words"
    """How answers are compared: by words as in SQuAD, or by characters as in CMRC for Chinese."""

    @model_validator(mode="after")
    def _windows_go_on(self) -> "QuestionAnsweringConfig":
        if self.overlap >= self.window:
            raise ValueError(f"overlap ({self.overlap}) must be less than window ({self.window})")
        return self


class Answer(NamedTuple):
    """A gold answer and the character of the passage it begins at; -1 if it is not in there."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question, a passage and, where they are known, answers."""

    question: str
    passage: str
    answers: tuple[Answer, ...] = ()
    id: str = ""
    question_words: WordTuple = ()
    words: WordTuple = ()
    """Those of the passage; both once they are found."""
    starts: tuple[int, ...] = ()
    stops: tuple[int, ...] = ()
    """The characters of the passage that each word begins at and ends before."""

    def with_words(self, reader: TextReader, /) -> Self:
        """With the words of question and passage."""
        asked = reader.placed(self.question).words
        return replace(self, question_words=asked, **reader.placed(self.passage)._asdict())

    @property
    def sentences(self) -> tuple[WordTuple, ...]:
        """Question and passage."""
        return self.question_words, self.words

    @property
    def gold(self) -> Window | None:
        """The words that the first answer found in the passage touches; None if there is none."""
        for text, start in self.answers:
            first = bisect_right(self.stops, start)
            end = bisect_left(self.starts, start + len(text))
            if start >= 0 and first < end:
                return first, end
        return None


@dataclass(frozen=True, repr=False)
class PredictedAnswer:
    """The answer found: characters `start` up to `stop` of the passage."""

    question: str
    passage: str
    start: int
    stop: int
    probability: float
    id: str = ""

    @property
    def answer(self) -> str:
        """Its text, as it stands in the passage."""
        return self.passage[self.start : self.stop]

    def __repr__(self) -> str:
        told = f"{self.answer} {self.probability:.2f}"
        return summary("Predicted", told, sentence(self.question.split()))

    def _repr_html_(self) -> str:
        before, after = self._around()
        shown = [(self.question, "", COLOURS[1]), (before, "", ""), (self.answer, "", COLOURS[0])]
        return html_words([*shown, (after, "", "")])

    def __rich__(self) -> RenderableType:
        before, after = self._around()
        text = PrintableText()
        text.append(f"{self.answer}  ", style="bold cyan")
        text.append(f"{self.probability:.2f}  characters {self.start}-{self.stop}  ", style="dim")
        text.append(before)
        text.append(self.answer, style="cyan")
        return text.append(after)

    def _around(self) -> tuple[str, str]:
        before = self.passage[max(0, self.start - _AROUND) : self.start]
        return before, self.passage[self.stop : self.stop + _AROUND]

    def as_json(self) -> dict[str, Any]:
        """What is written; the passage is not repeated."""
        told = {
            "question": self.question,
            "answer": self.answer,
            "start": self.start,
            "stop": self.stop,
            "probability": self.probability,
        }
        return {"id": self.id, **told} if self.id else told


@dataclass(frozen=True)
class QuestionAnswering(TaskFamily[Question, PredictedAnswer]):
    """The span that answers a question."""

    example_types: ClassVar = (Question,)
    measures: ClassVar = ANSWER_MEASURES
    probabilities: ClassVar = "always"
    num_texts: ClassVar = 2
    """A question, then its passage."""
    config: QuestionAnsweringConfig

    def fit(self, examples: Sequence[Question]) -> Self:
        """Nothing is learned beforehand; but there must be something to learn from."""
        if all(example.gold is None for example in examples):
            raise InputError(
                f"None of the answers to {len(examples):,} questions is a span of its passage. Is "
                "this a data set for extractive question answering, such as SQuAD?"
            )
        return self

    def windows(self, example: Question) -> list[Window]:
        """The parts of the passage that are read."""
        own = self.config
        return choose_windows(
            example.words,
            example.question_words,
            size=own.window,
            overlap=own.overlap,
            most=own.max_windows,
        )

    def prepare(
        self,
        examples: Sequence[Question],
        embeddings: Embeddings,
        *,
        use_cache: bool = True,
        progress: Progress = SILENT,
    ) -> ExampleFeatures:
        """A row for each question and each window; questions on one passage share its rows."""
        distinct: dict[WordTuple, int] = {}
        found = []
        for example in examples:
            windows = [example.words[begin:end] for begin, end in self.windows(example)]
            texts = [example.question_words[:_LONGEST_QUESTION], *windows]
            found.append([distinct.setdefault(words, len(distinct)) for words in texts])
        rows = np.full((max(map(len, found)), len(found)), -1, np.int64)
        for number, own in enumerate(found):
            rows[: len(own), number] = own
        features = embeddings.prepare(list(distinct), use_cache=use_cache, progress=progress)
        return ExampleFeatures(features, rows)

    def encode(self, examples: Sequence[Question], *, with_gold: bool) -> Columns:
        """`is_asked` (B, W, T): 1 at words of a window that are in the question, too. `gold`
        (B, W, 2): first and last word of the answer in each window, counted from 1; 0 where it is
        not whole in there."""
        columns: dict[str, Any] = {"is_asked": [self._is_asked(example) for example in examples]}
        if with_gold:
            columns["gold"] = [self._gold(example) for example in examples]
        return columns

    def _is_asked(self, example: Question) -> np.ndarray[Any, Any]:
        windows = self.windows(example)
        asked = {word.lower() for word in example.question_words}
        found = np.zeros((len(windows), max(end - begin for begin, end in windows)), np.float32)
        for number, (begin, end) in enumerate(windows):
            found[number, : end - begin] = [w.lower() in asked for w in example.words[begin:end]]
        return found

    def _gold(self, example: Question) -> np.ndarray[Any, Any]:
        windows, gold = self.windows(example), example.gold
        places = np.zeros((len(windows), 2), np.int64)
        for number, (begin, end) in enumerate(windows):
            if gold is not None and begin <= gold[0] and gold[1] <= end:
                places[number] = gold[0] - begin + 1, gold[1] - begin
        return places

    def network(self, dims: InputDims) -> SpanPointer:
        """Attention and pointers."""
        return SpanPointer(self.config.context, dims, max_answer=self.config.max_answer)

    def predicted(self, example: Question, found: FoundSpan) -> PredictedAnswer:
        """The characters of the passage that the words stand on."""
        begin, _ = self.windows(example)[found.window]
        start, stop = example.starts[begin + found.first], example.stops[begin + found.last]
        texts = example.question, example.passage
        return PredictedAnswer(*texts, start, stop, found.probability, example.id)

    def score(
        self, examples: Sequence[Question], predicted: Sequence[PredictedAnswer]
    ) -> AnswerScores:
        """Exact match and F1."""
        gold = [[answer.text for answer in example.answers] for example in examples]
        in_text = [any(answer.start >= 0 for answer in e.answers) for e in examples]
        answers = (each.answer for each in predicted)
        return AnswerScores.of(answers, gold, self.config.unit, in_text=in_text)

    def of_texts(self, texts: tuple[str, ...], reader: TextReader) -> Iterator[Question]:
        """The question and its passage."""
        for text in texts:
            check_length(len(text), LONGEST_LINE_LABELLED, "characters")
        example = Question(texts[0], texts[1]).with_words(reader)
        for words, text in zip(example.sentences, texts, strict=True):
            if not words:
                raise InputError(f"There is no word in {text[:60]!r}. Give a question, a passage.")
        yield example
