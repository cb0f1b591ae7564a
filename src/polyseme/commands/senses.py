"""Read a word by its meanings: its uses in groups, each with names, figures and typical lines.

Groups are found by what the model expects in the word's place, by the words that could stand there
and by what the sentence is about. Each is named by substitutes | collocates. They are groups of
uses, not the senses of a dictionary: how many there are is a choice (--finer, --coarser, --groups).

Examples:

  polyseme senses play --in corpus/en --model models/en-mini

  polyseme senses 打 --in corpus/zh --model models/zh-mini --groups 4

  polyseme senses bank --in corpus/en --model models/en-mini --out bank.csv

  polyseme senses bank --in corpus/en --index index/en

  polyseme senses bank --in corpus/en --model models/en-mini --edits bank.jsonl --out bank.conllu
"""

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field
from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.commands.uses import UseLines
from polyseme.config import Settings
from polyseme.meanings.settings import FindConfig, GroupingConfig
from polyseme.printable import PrintableText
from polyseme.progress import NullProgress, Progress, duration
from polyseme.tables import on_one_line, titled

if TYPE_CHECKING:
    from polyseme.meanings.named_groups import Senses


class SensesConfig(Settings):
    """Which word, where, by which model, and how fine."""

    arguments: ClassVar[tuple[str, ...]] = ("word",)

    find: FindConfig
    """What to look for."""
    grouping: GroupingConfig
    """How to group."""
    edits: Path | None = None
    """Do the edits of this file again: what `polyseme edit` or the explorer wrote."""
    lines: int = Field(3, ge=0, le=1000)
    """Typical lines of each group that are shown."""
    out: Path | None = None
    """Write every use with its group into this file: .csv, .tsv or .xlsx for a table; .conllu for
    sentences with Sense=1 in the last column; .uses.tsv, .judgments.tsv and .clusters.tsv as DURel
    reads them; .vec for a vector of each group, as word2vec wrote them."""
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
    from polyseme.meanings.sense_files import check_senses_format, write_senses

    began = time.monotonic()
    if config.out is not None:
        check_senses_format(config.out)
    senses = group_by_meaning(config.find, config.grouping, progress)
    if config.edits is not None:
        senses = senses.edited(config.edits)
    if config.out is not None:
        write_senses(senses, config.out)
    return SensesResult(senses, config, time.monotonic() - began)


def group_by_meaning(
    find: FindConfig, grouping: GroupingConfig, progress: Progress | None = None
) -> "Senses":
    """The uses of a word in a corpus, in groups."""
    from polyseme.meanings.named_groups import find_senses
    from polyseme.meanings.sources import find_described
    from polyseme.text.corpus import Corpus

    source = find_described(
        Corpus.open(find.in_),
        find.query,
        where=find.where,
        model=grouping.model,
        layer=grouping.layer,
        index=grouping.index,
    )
    senses = find_senses(
        source.uses,
        source.describer,
        finer=grouping.finer - grouping.coarser,
        num_groups=grouping.groups,
        seed=grouping.seed,
        progress=progress or NullProgress(),
    )
    return replace(senses, source_notes=source.notes)


def show(result: SensesResult) -> RenderableType:
    """The groups, then lines of each."""
    senses, config = result.senses, result.config
    if config.json_:
        return on_one_line(json.dumps(senses.to_json(), ensure_ascii=False))
    parts: list[RenderableType] = [groups_table(senses)]
    for group in senses.groups if config.lines else ():
        lines = senses.grouping.most_typical(group.number - 1, config.lines)
        parts += [on_one_line(f"Group {group.id}"), UseLines(senses.uses.select(lines))]
    parts += [PrintableText(note, "yellow") for note in senses.notes]
    if config.out is not None:
        parts.append(on_one_line(f"All uses with their groups: {config.out}"))
    parts.append(PrintableText(f"Took {duration(result.seconds)}."))
    return Group(*parts)


def groups_table(senses: "Senses") -> RenderableType:
    """A row for each group: its figures and its name."""
    table = Table()
    for name in ("", "uses", "share", "stability"):
        table.add_column(name, justify="right")
    table.add_column("substitutes | collocates", overflow="fold")
    for group in senses.groups:
        stability = "" if group.stability is None else f"{group.stability:.2f}"
        figures = (PrintableText(group.id), f"{group.size:,}", f"{group.share:.0%}", stability)
        table.add_row(*figures, PrintableText(group.name))
    title = f"{senses.uses.query}: {len(senses.uses):,} uses in {len(senses.groups)} groups"
    return titled(title, table)
