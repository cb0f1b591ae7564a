"""One reader per layout of labelled data, and the choice among them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

from pydantic import Field

from polyseme.errors import InputError
from polyseme.tasks.example_stats import ExampleStats
from polyseme.tasks.families.family import Example
from polyseme.tasks.readers import (
    choices,
    columns,
    conllu,
    coreference,
    labelled,
    propbank,
    segmented,
    senses,
    squad,
    table,
    trees,
)
from polyseme.tasks.readers.choices import ChoicesConfig
from polyseme.tasks.readers.columns import ColumnsConfig
from polyseme.tasks.readers.conllu import ConlluConfig
from polyseme.tasks.readers.coreference import CoreferenceColumnsConfig
from polyseme.tasks.readers.labelled import LabelledConfig
from polyseme.tasks.readers.lines import Noted, ReaderItems
from polyseme.tasks.readers.propbank import PropbankConfig
from polyseme.tasks.readers.segmented import SegmentedConfig
from polyseme.tasks.readers.senses import SenseLabelsConfig
from polyseme.tasks.readers.squad import SquadConfig
from polyseme.tasks.readers.table import TableConfig
from polyseme.tasks.readers.trees import TreesConfig
from polyseme.text.records import Rejected

ReaderConfig: TypeAlias = Annotated[
    ColumnsConfig
    | ConlluConfig
    | PropbankConfig
    | TableConfig
    | LabelledConfig
    | TreesConfig
    | SegmentedConfig
    | SenseLabelsConfig
    | CoreferenceColumnsConfig
    | SquadConfig
    | ChoicesConfig,
    Field(discriminator="kind"),
]
"""How a file of examples is laid out."""


class Loaded(NamedTuple):
    """The examples of a file, and where all its rows went."""

    examples: list[Example]
    stats: ExampleStats


def read_examples(path: Path, config: ReaderConfig, stats: ExampleStats) -> Iterator[Example]:
    """The examples of a file in order, one after the other; every row is counted in `account`."""
    unit = "question" if isinstance(config, SquadConfig) else "line"
    for item in _items(path, config):
        if isinstance(item, Rejected):
            stats.reject(item, str(path), unit)
            continue
        examples = item.examples if isinstance(item, Noted) else item
        stats.keep(len(examples))
        if isinstance(item, Noted):
            stats.notes[item.note] += 1
        yield from examples


def load_examples(path: Path, config: ReaderConfig) -> Loaded:
    """All examples of a file at once. One that has none is the wrong file or wrongly described."""
    stats = ExampleStats()
    examples = list(read_examples(path, config, stats))
    if not examples:
        faults = "".join(f"\n  {fault}" for fault in stats.faults[:3])
        raise InputError(
            f"{path} has no examples when read as {config.kind!r}: {stats.summary()}.{faults}\n"
            "Check the kind of the file and which columns hold what."
        )
    return Loaded(examples, stats)


def _items(path: Path, config: ReaderConfig) -> ReaderItems:
    match config:
        case ColumnsConfig():
            items = columns.read(path, config)
        case ConlluConfig():
            items = conllu.read(path, config)
        case PropbankConfig():
            items = propbank.read(path, config)
        case TableConfig():
            items = table.read(path, config)
        case LabelledConfig():
            items = labelled.read(path, config)
        case TreesConfig():
            items = trees.read(path, config)
        case SegmentedConfig():
            items = segmented.read(path, config)
        case SenseLabelsConfig():
            items = senses.read(path)
        case CoreferenceColumnsConfig():
            items = coreference.read(path, config)
        case SquadConfig():
            items = squad.read(path)
        case ChoicesConfig():
            items = choices.read(path, config)
    return items
