r"""Measure how far annotators agree: Krippendorff's alpha, each two of them, what is in dispute.

Reads the tables that `polyseme judge` wrote and people filled in, or folders of them; and DURel's
judgments (judgments.csv, with uses.csv for their sentences). Alpha is ordinal for pairs and nominal
for lines, with a 95 % interval. --within says about how many more judgments make it so narrow.

Written with --out, lines get what most people say as labels, for `polyseme label`, and pairs become
judged pairs for `polyseme same`.

Examples:

  polyseme agreement round1

  polyseme agreement round1 round2 --within 0.05 --out bank.csv

  polyseme agreement round1 --out bank.judgments.tsv

  polyseme agreement dwug_en/data/plane_nn
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field
from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.commands.judge import as_listed
from polyseme.config import Settings
from polyseme.display import PrintableText, counted, numbers, on_one_line, titled
from polyseme.meanings.settings import out_help
from polyseme.progress import SILENT, Progress

if TYPE_CHECKING:
    from polyseme.meanings.agreement import Estimate
    from polyseme.meanings.judgments import Agreement

_SHOWN = 10  # cells set aside that are told one by one
_FEW_ITEMS = 10  # of fewer, an interval says little


class AgreementConfig(Settings):
    """Which judgments, and what is to be known of them."""

    arguments: ClassVar[tuple[str, ...]] = ("files",)

    files: Annotated[tuple[Path, ...], BeforeValidator(as_listed)] = Field(min_length=1)
    """Tables that annotators filled in, DURel's judgments, or folders of them."""
    within: float | None = Field(None, gt=0, le=2)
    """How narrow the interval is to be: 0.05 for ±0.05."""
    lines: int = Field(5, ge=0, le=1_000)
    """How many items in dispute are shown."""
    seed: int = Field(1, ge=0)
    """Of the bootstrap."""
    out: Path | None = Field(
        None,
        description=out_help(
            "Write every item with its judgments and what most say to this file",
            {".judgments.tsv": "pairs for DURel"},
        ),
    )


@dataclass(frozen=True)
class AgreementResult:
    """What was found."""

    agreement: "Agreement"
    config: AgreementConfig

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**self.agreement.to_json(), "notes": _more(self)}


def run(config: AgreementConfig, progress: Progress = SILENT) -> AgreementResult:
    """Read, measure, write."""
    from polyseme.meanings.judgments import (
        check_judgments_format,
        measure_agreement,
        read_judgments,
        write_judgments,
    )

    del progress
    if config.out is not None:
        check_judgments_format(config.out)
    agreement = measure_agreement(read_judgments(config.files), seed=config.seed)
    if config.out is not None:
        write_judgments(agreement, config.out)
    return AgreementResult(agreement, config)


def show(result: AgreementResult) -> RenderableType:
    """Alpha, each two annotators, items in dispute, cells that were set aside."""
    agreement, config = result.agreement, result.config
    judgments = agreement.judgments
    said, people = judgments.num_judgments, counted(len(judgments.annotators), "annotator")
    items = f"{len(judgments.values):,} {judgments.kind}"
    told = [f"{counted(said, 'judgment')} of {items} by {people}."]
    if judgments.num_undecided:
        told.append(f"{counted(judgments.num_undecided, 'cell')}: cannot decide.")
    if judgments.num_open:
        told.append(f"{counted(judgments.num_open, 'empty cell')}.")
    parts: list[RenderableType] = [" ".join(told), _alpha(agreement)]
    if agreement.relatedness is not None and agreement.relatedness.num_items:
        mean = agreement.relatedness
        parts.append(
            f"Mean judgment: {_figure(mean)} (1 unrelated, 4 identical), of "
            f"{counted(mean.num_items, 'pair')}."
        )
    parts += _more(result)
    if agreement.words:
        parts.append(_words(agreement))
    if agreement.pairs:
        parts.append(_each_two(agreement))
    disputed = agreement.most_disputed
    if disputed and config.lines:
        number = min(config.lines, len(disputed))
        parts.append(on_one_line(f"Most in dispute, {number} of {len(disputed):,}:"))
    for key in disputed[: config.lines]:
        given = ", ".join(f"{one} {value}" for one, value in judgments.values[key].items())
        parts.append(PrintableText(f"{key.id}: {given}", "bold"))
        parts += [f"  {text}" for text in judgments.items[key].sentences]
    if judgments.rejected:
        cells = counted(len(judgments.rejected), "cell")
        parts.append(PrintableText(f"{cells} set aside:", "yellow"))
        parts += [PrintableText(f"  {each}", "yellow") for each in judgments.rejected[:_SHOWN]]
    if config.out is not None:
        parts.append(on_one_line(f"All with their judgments: {config.out}"))
    return Group(*parts)


def _figure(estimate: "Estimate") -> str:
    if math.isnan(estimate.low):
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f}, 95 % interval {estimate.low:.3f} to {estimate.high:.3f}"


def _alpha(agreement: "Agreement") -> str:
    alpha, level = agreement.alpha, agreement.judgments.level
    if not alpha.num_items:
        return "No two annotators judged the same item, so that there is no agreement to measure."
    items = counted(alpha.num_items, "item")
    if math.isnan(alpha.value):
        return (
            f"All judgments of the {items} that two or more judged are the same: alpha is not "
            "defined without any difference."
        )
    return (
        f"Krippendorff's alpha ({level}): {_figure(alpha)}, of {items} that two or more judged. 1 "
        "is agreement, 0 chance."
    )


def _more(result: AgreementResult) -> list[str]:
    """About how many more judgments are needed."""
    within, agreement = result.config.within, result.agreement
    if within is None:
        return []
    judges = agreement.judges_per_item
    found = [_more_of("alpha", agreement.alpha, within, judges)]
    if agreement.relatedness is not None:
        number = agreement.judgments.num_judgments / len(agreement.judgments.values)
        found.append(_more_of("the mean judgment", agreement.relatedness, within, number))
    return found


def _more_of(name: str, estimate: "Estimate", within: float, judges: float) -> str:
    wanted = estimate.items_for(within)
    if wanted is None or estimate.num_items < _FEW_ITEMS:
        return f"These judgments do not tell how many more are needed for {name}."
    now = f"The interval of {name} is ±{estimate.half_width:.3f} now"
    if wanted <= estimate.num_items:
        return f"{now}: no more than ±{within:g}, so that no more judgments are needed."
    more = wanted - estimate.num_items
    return (
        f"{now}, from {counted(estimate.num_items, 'item')}. For ±{within:g}, about {more:,} more "
        f"items like these are needed, {math.ceil(more * judges):,} judgments at {judges:.1f} for "
        "each."
    )


def _each_two(agreement: "Agreement") -> RenderableType:
    columns = numbers("items", "the same", "alpha")
    table = Table("annotators", *columns, show_edge=False, pad_edge=False)
    for two in agreement.pairs:
        alpha = "" if math.isnan(two.alpha) else f"{two.alpha:.3f}"
        figures = f"{two.num_items:,}", f"{two.same:.0%}", alpha
        table.add_row(PrintableText(f"{two.first}, {two.second}"), *figures)
    return titled("Each two annotators", table)


def _words(agreement: "Agreement") -> RenderableType:
    columns = numbers("items", "alpha", "95 % interval", "mean judgment")
    table = Table("word", *columns, show_edge=False, pad_edge=False)
    for word in agreement.words:
        alpha, mean = word.alpha, word.relatedness
        interval = "" if math.isnan(alpha.low) else f"{alpha.low:.3f} to {alpha.high:.3f}"
        value = "" if math.isnan(alpha.value) else f"{alpha.value:.3f}"
        related = "" if mean is None or not mean.num_items else f"{mean.value:.2f}"
        table.add_row(PrintableText(word.lemma), f"{alpha.num_items:,}", value, interval, related)
    return titled("Each word", table)
