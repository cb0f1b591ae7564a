"""Questions on passages in SQuAD's JSON, as CMRC 2018, DRCD and XQuAD have it, too.

    {"data": [{"paragraphs": [{"context": "...", "qas": [
        {"id": "1", "question": "...", "answers": [{"text": "...", "answer_start": 17}]}]}]}]}

The whole file is in memory while it is read; it may have 64 MB (SQuAD 2.0 has 42). An answer that
does not stand where the file says is looked for near that place. One that stands nowhere can still
be measured against, but nothing is learned from it: such questions are counted and told.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeGuard

from polyseme.config import Settings
from polyseme.errors import InputError
from polyseme.limits import JSON_BYTES, parse_json, read_text
from polyseme.tasks.families.question_answering import Answer, Question
from polyseme.tasks.readers.lines import Noted, ReaderItem, ReaderItems
from polyseme.tasks.texts import LONGEST_LINE_LABELLED
from polyseme.text.records import Rejected, quote

NOT_IN_TEXT = "an answer that is not in the text"
_LONGEST_QUESTION = 20_000  # characters


class SquadConfig(Settings):
    """Questions whose answers are spans of a passage, in the JSON of SQuAD 1.1. Questions without
    an answer, as SQuAD 2.0 has them, are counted and rejected."""

    kind: Literal["squad"] = "squad"


def read(path: Path) -> ReaderItems:
    """An example per question."""
    if not path.is_file():
        raise InputError(f"There is no file {path} (looked in {Path.cwd()}).")
    try:
        values = parse_json(read_text(path, JSON_BYTES).removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON that can be read: {error}.") from error
    articles = values.get("data") if isinstance(values, dict) else values
    for number, (context, asked) in enumerate(_questions(articles), start=1):
        yield _example(number, context, asked)


def _questions(articles: Any) -> Iterator[tuple[Any, Any]]:
    """Each question with its passage; what is not laid out so comes as it is."""
    for article in _list(articles):
        paragraphs = article.get("paragraphs") if isinstance(article, dict) else None
        for paragraph in _list(paragraphs):
            is_paragraph = isinstance(paragraph, dict)
            asked = paragraph.get("qas") if is_paragraph else paragraph
            for each in asked if isinstance(asked, list) else [None]:
                yield (paragraph.get("context") if is_paragraph else None), each


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _example(number: int, context: Any, asked: Any) -> ReaderItem:
    question = asked.get("question") if isinstance(asked, dict) else None
    if not _is_text(context, LONGEST_LINE_LABELLED):
        return Rejected(number, "no-passage", quote(str(context)))
    if not _is_text(question, _LONGEST_QUESTION):
        return Rejected(number, "no-question", quote(str(question)))
    answers = [found for told in _list(asked.get("answers")) if (found := _answer(told, context))]
    if not answers:
        return Rejected(number, "no-answer", quote(question))
    example = Question(question, context, tuple(answers), str(asked.get("id", "")))
    if all(answer.start < 0 for answer in answers):
        return Noted((example,), NOT_IN_TEXT)
    return (example,)


def _is_text(value: Any, longest: int) -> TypeGuard[str]:
    """Whether it is text that UTF-8 can hold, not empty, and not too long."""
    if not isinstance(value, str) or not value.strip() or len(value) > longest:
        return False
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _answer(told: Any, context: str) -> Answer | None:
    text = told.get("text") if isinstance(told, dict) else None
    if not _is_text(text, len(context)):
        return None
    start = told.get("answer_start")
    return Answer(text, _find(context, text, start if isinstance(start, int) else 0))


def _find(context: str, text: str, start: int) -> int:
    """The place nearest to the one stated; -1 if there is none."""
    start = min(max(start, 0), len(context))
    before = context.rfind(text, 0, start + len(text))
    after = context.find(text, start)
    if before < 0 or after < 0:
        return max(before, after)
    return before if start - before <= after - start else after
