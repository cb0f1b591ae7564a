"""One reader per layout of labelled data, and the choice among them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

from pydantic import Field

from polyseme.errors import InputError
from polyseme.tasks.families.family import Example
from polyseme.tasks.readers import (
    columns,
    labelled,
    squad,
    table,
)
from polyseme.tasks.readers.columns import (
    ColumnsConfig,
    ConlluConfig,
    CoreferenceColumnsConfig,
    PropbankConfig,
)
from polyseme.tasks.readers.labelled import (
    LabelledConfig,
    SegmentedConfig,
    SenseLabelsConfig,
    TreesConfig,
)
from polyseme.tasks.readers.lines import Noted, ReaderItems
from polyseme.tasks.readers.squad import SquadConfig
from polyseme.tasks.readers.table import ChoicesConfig, TableConfig
from polyseme.tasks.texts import ExampleStats
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
            items = columns.read_conllu(path, config)
        case PropbankConfig():
            items = columns.read_propbank(path, config)
        case TableConfig():
            items = table.read(path, config)
        case LabelledConfig():
            items = labelled.read(path, config)
        case TreesConfig():
            items = labelled.read_trees(path, config)
        case SegmentedConfig():
            items = labelled.read_segmented(path, config)
        case SenseLabelsConfig():
            items = labelled.read_senses(path)
        case CoreferenceColumnsConfig():
            items = columns.read_coreference(path, config)
        case SquadConfig():
            items = squad.read(path)
        case ChoicesConfig():
            items = table.read_choices(path, config)
    return items
