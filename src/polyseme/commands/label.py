"""Label uses with senses of your own: label some lines, and a classifier labels the rest.

Write some uses to a table (`polyseme uses bank --in corpus/en --sample 20 --out mine.csv`), add a
column `label`, fill it in with whatever you call the senses, and run this. Every use gets the most
probable label and a confidence. The lines to look at next are shown, and marked in the table that
is written: fill in more labels there, and run it again. 20 labels are a good beginning.

Examples:

  polyseme label bank --in corpus/en --model models/en-mini --labels mine.csv --out labelled.csv

  polyseme label bank --in corpus/en --index index/en --labels bank.edits.jsonl --next 20
"""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field
from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.commands import Result
from polyseme.commands.uses import UseLines
from polyseme.config import OptionalFolder, Settings
from polyseme.display import PrintableText, counted, numbers, on_one_line, titled
from polyseme.embedding.settings import ModelName
from polyseme.meanings.settings import FindConfig, out_help
from polyseme.progress import SILENT, Progress

if TYPE_CHECKING:
    from polyseme.meanings.labels import LabelledUses


class LabelConfig(Settings):
    """Which uses, which labels, by which model."""

    arguments: ClassVar[tuple[str, ...]] = ("word",)

    find: FindConfig
    """What to look for."""
    model: ModelName = None
    index: OptionalFolder = None
    """Read the uses from this index (`polyseme index`) instead of embedding them."""
    labels: Path
    """Your labels: a table as `polyseme uses --out` writes it, with a column `label`; or a log of
    edits (.jsonl) that labels uses."""
    next: int = Field(10, ge=0, le=1_000)
    """How many lines to look at next."""
    at_random: bool = False
    """Sample those lines at random: only then do labels show how frequent each sense is."""
    seed: int = 1
    """Of samples."""
    keep: bool = False
    """Keep the labels of all uses beside the corpus, for --sense of other commands."""
    out: Path | None = Field(
        None, description=out_help("Write every use with its label and confidence to this file")
    )


def run(config: LabelConfig, progress: Progress = SILENT) -> "Result[LabelledUses, LabelConfig]":
    """Find the uses, read the labels, learn."""
    from polyseme.meanings.concordance.export import check_format, write_table
    from polyseme.meanings.index.use_index import find_source
    from polyseme.meanings.labels import keep_labels, label_uses, read_labels
    from polyseme.text.corpus import Corpus

    if config.out is not None:
        check_format(config.out)
    source = find_source(
        Corpus.open(config.find.corpus),
        config.find.query,
        where=config.find.where,
        model=config.model,
        index=config.index,
    )
    found = label_uses(
        source.uses,
        read_labels(config.labels, source.uses),
        source.encoder,
        num_next=config.next,
        at_random=config.at_random,
        seed=config.seed,
        progress=progress,
    )
    if config.keep:
        learned, corpus = found.learned, Corpus.open(config.find.corpus)
        keep_labels(corpus, found.uses, learned.labels, found.left_out, config.labels)
    if config.out is not None:
        write_table(found.table(), config.out)
    return Result(found, config, notes=source.notes)


def show(result: "Result[LabelledUses, LabelConfig]") -> RenderableType:
    """How many uses have each label, and the lines to look at next."""
    found, config = result.found, result.config
    parts: list[RenderableType] = [_table(found), _trust(found)]
    parts += [PrintableText(note, "yellow") for note in result.notes]
    if found.next:
        parts += [on_one_line("Look at these lines next:"), UseLines(found.uses.select(found.next))]
    if config.keep:
        parts.append("Kept: the labels of all uses, for --sense.")
    if config.out is not None:
        parts.append(on_one_line(f"All uses with their labels: {config.out}"))
        if found.next:
            parts.append(
                "Fill in the column `label` where `look_next` has a number, and pass this table "
                "again with --labels."
            )
    return Group(*parts)


def _table(found: "LabelledUses") -> RenderableType:
    columns = numbers("by hand", "correct (CV)", "uses", "share", "confidence")
    table = Table("label", *columns)
    learned = found.learned
    for label, (by_hand, right) in found.left_out.items():
        rows = [number for number, own in enumerate(learned.labels) if own == label]
        others = [number for number in rows if number not in learned.given]
        mean = f"{learned.confidence[others].mean():.2f}" if others else ""
        shown = (str(by_hand), f"{right} of {by_hand}", f"{len(rows):,}")
        table.add_row(PrintableText(label), *shown, f"{len(rows) / len(found.uses):.0%}", mean)
    return titled(f"{found.uses.query}: {counted(len(found.uses), 'use')} labelled", table)


def _trust(found: "LabelledUses") -> str:
    """What the figures say, and what they do not."""
    from polyseme.meanings.labels import FEW_LABELS

    given = found.learned.given
    if len(found.left_out) == 1:
        return "All labels are the same: label a use of another sense."
    told = (
        f"{found.right_when_left_out:.0%} of your {len(given)} labels are predicted correctly in "
        "cross-validation."
    )
    if len(given) < FEW_LABELS:
        told += f" Confidences are too high with fewer than {FEW_LABELS} labels."
    return told
