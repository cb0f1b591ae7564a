"""Predict words that fit in place of a word (lexical substitution).

Mark the word with asterisks, or name it with --word. The model sees the words to its left and
right, but not the word itself.

Examples:

  polyseme substitutes "He sat on the *bank* of the river." --model models/en-mini

  polyseme substitutes 他喜欢吃*苹果*和香蕉。 --model models/zh-mini --top 20
"""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field
from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.commands import Result
from polyseme.config import Settings
from polyseme.display import PrintableText, numbers, titled
from polyseme.embedding.settings import ModelName
from polyseme.progress import SILENT, Progress
from polyseme.storage.installed import chosen_model
from polyseme.text.streams import texts_of

if TYPE_CHECKING:
    from polyseme.meanings.substitutes import Substitutes


class SubstitutesConfig(Settings):
    """Which word of which sentence, by which model."""

    arguments: ClassVar[tuple[str, ...]] = ("inputs",)

    inputs: tuple[str, ...]
    """Sentences, each quoted, one word of each between asterisks; - reads them from standard input,
    one per line."""
    model: ModelName = None
    word: str = ""
    """The word, if none is marked."""
    top: int = Field(10, ge=1, le=100_000)
    """How many words are shown."""


def run(
    config: SubstitutesConfig, progress: Progress = SILENT
) -> "Result[list[Substitutes], SubstitutesConfig]":
    """Read each sentence, and ask the model."""
    from polyseme.embedding.loading import load_embedder
    from polyseme.meanings.concordance.uses import read_marked
    from polyseme.meanings.substitutes import find_substitutes

    texts = texts_of(config.inputs)
    embedder = load_embedder(chosen_model(config.model, texts, progress))
    uses = [read_marked(embedder, text, config.word) for text in texts]
    return Result([find_substitutes(embedder, use, config.top) for use in uses], config)


def show(result: "Result[list[Substitutes], SubstitutesConfig]") -> RenderableType:
    """A table for each sentence."""
    return Group(*map(_table, result.found))


def _table(found: "Substitutes") -> RenderableType:
    table = Table("word", *numbers("probability"), show_edge=False, pad_edge=False)
    for word, probability in found.words:
        table.add_row(PrintableText(word, overflow="fold"), f"{probability:.1%}")
    parts: list[RenderableType] = [titled(f"Instead of {found.use.form!r}", table)]
    if found.own is not None:
        rank, own = found.own
        parts.append(f"{found.use.form!r} itself: rank {rank:,}, {own:.2%}")
    return Group(*parts)
