"""Read a word by its meanings: its uses in groups, each with names, figures and typical lines.

Groups are found by what the model expects in the word's place, by the words that could stand there
and by what the sentence is about. Each is named by substitutes | collocates. They are groups of
uses, not the senses of a dictionary: how many there are is a choice (--finer, --coarser, --groups).

Examples:

  polyseme senses play --in corpus/en --model models/en-mini

  polyseme senses 打 --in corpus/zh --model models/zh-mini --groups 4

  polyseme senses bank --in corpus/en --model models/en-mini --out bank.csv
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field
from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.config import Settings
from polyseme.errors import ConfigError
from polyseme.meanings.export import check_format, write_uses
from polyseme.meanings.query import Query
from polyseme.printable import PrintableText
from polyseme.progress import NullProgress, Progress, duration
from polyseme.tables import on_one_line, titled
from polyseme.text.corpus import Corpus

if TYPE_CHECKING:
    from polyseme.meanings.named_groups import NamedGroup, Senses

_LINE = 36  # characters on either side of the word


class SensesConfig(Settings):
    """Which word, where, by which model, and how fine."""

    arguments: ClassVar[tuple[str, ...]] = ("word",)

    word: str
    """The word, or a term of several words."""
    in_: Path
    """The corpus that is read."""
    model: str
    """The model that describes the uses: a folder, or hf:FOLDER for one of Hugging Face."""
    forms: tuple[str, ...] = ()
    """Other forms that count as the word: play,plays,played."""
    regex: bool = False
    """Whether the word is a pattern that a whole word must match."""
    case_sensitive: bool = False
    """Tell capital letters apart."""
    where: tuple[str, ...] = ()
    """Only sentences whose metadata meet these comparisons: year<1860."""
    finer: int = Field(0, ge=0, le=8)
    """Steps towards more groups."""
    coarser: int = Field(0, ge=0, le=8)
    """Steps towards fewer groups."""
    groups: int | None = Field(None, ge=1, le=100)
    """Exactly so many groups."""
    lines: int = Field(3, ge=0, le=1000)
    """Typical lines of each group that are shown."""
    seed: int = 1
    """Of the sample that is taken of very many uses, and of the grouping."""
    out: Path | None = None
    """Write every use with its group into this file: .csv, .tsv or .xlsx."""
    json_: bool = False
    """Print one JSON object instead of a table."""


@dataclass(frozen=True)
class SensesResult:
    """The groups, and how long it took to find them."""

    senses: "Senses"
    config: SensesConfig
    seconds: float


def run(config: SensesConfig, progress: Progress | None = None) -> SensesResult:
    """Find the uses, describe and group them, name the groups."""
    from polyseme.embedding.loading import load_for_corpus
    from polyseme.meanings.features import UseDescriber
    from polyseme.meanings.named_groups import find_senses
    from polyseme.meanings.uses import find_uses

    progress = progress or NullProgress()
    began = time.monotonic()
    if config.groups is not None and (config.finer or config.coarser):
        raise ConfigError("Give --groups, or --finer and --coarser, not both.")
    if config.out is not None:
        check_format(config.out)
    corpus = Corpus.open(config.in_)
    query = Query((config.word, *config.forms), config.regex, config.case_sensitive)
    uses = find_uses(corpus, query, where=config.where)
    senses = find_senses(
        uses,
        UseDescriber(load_for_corpus(config.model, corpus)),
        finer=config.finer - config.coarser,
        num_groups=config.groups,
        seed=config.seed,
        progress=progress,
    )
    if config.out is not None:
        write_uses(senses.table(), config.out)
    return SensesResult(senses, config, time.monotonic() - began)


def show(result: SensesResult) -> RenderableType:
    """The groups, then lines of each."""
    senses, config = result.senses, result.config
    if config.json_:
        return on_one_line(json.dumps(senses.to_json(), ensure_ascii=False))
    table = Table()
    for name in ("", "uses", "share", "stability"):
        table.add_column(name, justify="right")
    table.add_column("substitutes | collocates", overflow="fold")
    for group in senses.groups:
        figures = (str(group.number), f"{group.size:,}", f"{group.share:.0%}")
        table.add_row(*figures, f"{group.stability:.2f}", PrintableText(group.name))
    title = f"{config.word}: {len(senses.uses):,} uses in {len(senses.groups)} groups"
    parts: list[RenderableType] = [titled(title, table)]
    parts += [_lines(senses, group, config.lines) for group in senses.groups if config.lines]
    parts += [PrintableText(note, "yellow") for note in senses.notes]
    if config.out is not None:
        parts.append(on_one_line(f"All uses with their groups: {config.out}"))
    parts.append(PrintableText(f"Took {duration(result.seconds)}."))
    return Group(*parts)


def _lines(senses: "Senses", group: "NamedGroup", number: int) -> RenderableType:
    """Typical uses, the word in the middle."""
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True, width=_LINE, overflow="ellipsis")
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, width=_LINE, overflow="ellipsis")
    for use in senses.lines(group.number, number):
        begin = use.starts[use.begin]
        left, right = use.text[:begin], use.text[begin + len(use.form) :]
        table.add_row(
            PrintableText(left[-_LINE:].lstrip()),
            PrintableText(use.form, "bold"),
            PrintableText(right[:_LINE].strip()),
        )
    return titled(f"Group {group.number}", table)
