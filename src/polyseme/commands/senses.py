"""Group the uses of a word by meaning, and show each group with its name, size and typical lines.

Uses are grouped by what the model expects in the word's place, by likely substitutes and by the
topic of the surrounding text. A group's name is substitutes | collocates | frames. Groups are not
dictionary senses: how many there are is your choice (--finer, --coarser, --groups).

Examples:

  polyseme senses play --in corpus/en --model models/en-mini

  polyseme senses play --in corpus/en --model models/en-mini --report play.html

  polyseme senses 打 --in corpus/zh --model models/zh-mini --groups 4

  polyseme senses bank --in corpus/en --model models/en-mini --out bank.csv

  polyseme senses bank --in corpus/en --index index/en

  polyseme senses bank --in corpus/en --model models/en-mini --edits bank.jsonl --out bank.conllu
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field
from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.commands import Result
from polyseme.commands.uses import UseLines
from polyseme.config import Settings
from polyseme.display import PrintableText, counted, describe_groups, numbers, on_one_line, titled
from polyseme.errors import ConfigError
from polyseme.meanings.settings import SENSE_FILES, FindConfig, GroupingConfig, out_help
from polyseme.progress import SILENT, Progress, duration

if TYPE_CHECKING:
    from polyseme.meanings.groups.calibration import Kept
    from polyseme.meanings.groups.senses import EditableGroups, Senses
    from polyseme.text.corpus import Corpus


class SensesConfig(Settings):
    """Which word, where, by which model, and how fine."""

    arguments: ClassVar[tuple[str, ...]] = ("word",)

    find: FindConfig
    """What to look for."""
    grouping: GroupingConfig
    """How to group."""
    edits: Path | None = None
    """Apply the edits in this file, written by `polyseme edit` or the explorer."""
    keep: bool = False
    """Keep the groups that you named beside the corpus, for --sense of other commands."""
    lines: int = Field(3, ge=0, le=1000)
    """Typical lines of each group that are shown."""
    out: Path | None = Field(
        None, description=out_help("Write every use with its group into this file", SENSE_FILES)
    )
    report: Path | None = None
    """Write a report to keep or share: one .html file with the groups, their lines and a map of the
    uses, which works offline."""


def run(config: SensesConfig, progress: Progress = SILENT) -> "Result[Senses, SensesConfig]":
    """Find the uses, describe and group them, name the groups."""
    from polyseme.meanings.groups.sense_files import check_senses_format, write_senses

    began = time.monotonic()
    if config.out is not None:
        check_senses_format(config.out)
    if config.report is not None:
        check_report(config.report)
    senses = group_by_meaning(config.find, config.grouping, progress)
    if config.edits is not None:
        senses = senses.edited(config.edits)
    if config.keep:
        _keep(senses, config)
    if config.out is not None:
        write_senses(senses, config.out)
    if config.report is not None:
        _write_report(senses, config)
    return Result(senses, config, time.monotonic() - began)


def _keep(senses: "Senses", config: SensesConfig) -> None:
    from polyseme.meanings.groups.senses import keep_groups

    if config.edits is None or senses.uses.corpus is None:
        raise ConfigError("--keep is for groups that you named: give the file of --edits.")
    keep_groups(senses.uses.corpus, senses, config.edits)


def check_report(path: Path) -> None:
    """Refuse a page that no browser would know for one."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"A report is an HTML file: {path.name!r} does not end in .html.")


def _write_report(senses: "Senses", config: SensesConfig) -> None:
    from polyseme.meanings.report import senses_page, write_page

    assert config.report is not None
    grouping = config.grouping
    edits = [("edits", config.edits)] if config.edits is not None else []
    made = how_it_was_made("senses", config.find, grouping.model or f"that of {grouping.index}")
    settings = [*made, *edits, *_given(grouping)]
    language = language_of(config.find)
    write_page(config.report, senses_page(senses, settings, language=language, seed=grouping.seed))


def _given(grouping: GroupingConfig) -> list[tuple[str, object]]:
    """Settings of the grouping that are not as they are by default, and the seed."""
    fields = GroupingConfig.model_fields
    values = grouping.model_dump(exclude={"model", "index"})
    given = {name: value for name, value in values.items() if value != fields[name].default}
    return [*(given | {"seed": grouping.seed}).items()]


def language_of(find: FindConfig) -> str:
    """The code of the corpus's language, by which a browser chooses its fonts."""
    from polyseme.text.corpus import Corpus

    return Corpus.open(find.corpus).config.language


def how_it_was_made(
    command: str, find: FindConfig, model: str | None
) -> "list[tuple[str, object]]":
    """What a reader needs to make a page again: what was looked for, where, and by which model."""
    from polyseme import __version__
    from polyseme.text.corpus import Corpus

    stats = Corpus.open(find.corpus).read_stats
    size = f"{counted(stats['words'], 'word')} in {counted(stats['documents'], 'document')}"
    where = [("only where", ", ".join(find.where))] if find.where else []
    return [
        ("command", f"polyseme {command}, version {__version__}"),
        ("looked for", find.query),
        *where,
        ("corpus", f"{find.corpus.name}: {size}"),
        *([("model", model)] if model else []),
    ]


def group_by_meaning(
    find: FindConfig, grouping: GroupingConfig, progress: Progress = SILENT
) -> "Senses":
    """The uses of a word in a corpus, in groups; which are kept beside the corpus, to be edited."""
    from polyseme.meanings.groups.senses import find_senses
    from polyseme.meanings.index.use_index import find_source
    from polyseme.text.corpus import Corpus

    corpus = Corpus.open(find.corpus)
    source = find_source(
        corpus,
        find.query,
        where=find.where,
        model=grouping.model,
        layer=grouping.layer,
        index=grouping.index,
    )
    senses = find_senses(
        source.uses,
        source.encoder,
        finer=grouping.finer - grouping.coarser,
        num_groups=grouping.groups,
        seed=grouping.seed,
        progress=progress,
    )
    names = {group.id: group.name for group in senses.groups}
    ids = [str(number) for number in senses.labels]
    _kept_groups(find, grouping, corpus, source.encoder.fingerprint).write(
        {"names": names, "groups": ids}
    )
    return replace(senses, source_notes=source.notes)


def editable_groups(
    find: FindConfig, grouping: GroupingConfig, progress: Progress = SILENT
) -> "EditableGroups":
    """The groups that were kept for this question, or are found now; without the model if kept."""
    from polyseme.embedding.loading import fingerprint_of
    from polyseme.meanings.concordance.uses import find_uses
    from polyseme.meanings.groups.senses import EditableGroups, draw_uses
    from polyseme.meanings.index.use_index import open_for
    from polyseme.storage.installed import default_model
    from polyseme.text.corpus import Corpus

    corpus = Corpus.open(find.corpus)
    index = open_for(grouping.index, corpus, grouping.model) if grouping.index else None
    if index is not None:
        model = index.files.manifest["model"]
    else:
        model = fingerprint_of(grouping.model or default_model(corpus.config.language))
    kept = _kept_groups(find, grouping, corpus, model).read(
        lambda found: (list(map(str, found["groups"])), dict(found["names"]))
    )
    if kept is None:
        return group_by_meaning(find, grouping, progress).editable
    if index is not None:
        uses = index.find(corpus, find.query, where=find.where).uses
    else:
        uses = find_uses(corpus, find.query, where=find.where)
    return EditableGroups.of_ids(draw_uses(uses, grouping.seed), *kept)


def _kept_groups(
    find: FindConfig, grouping: GroupingConfig, corpus: "Corpus", fingerprint: str
) -> "Kept":
    from polyseme.meanings.groups.calibration import VERSION, Kept

    asked = find.model_dump(mode="json", exclude={"corpus"})
    how = grouping.model_dump(mode="json", exclude={"model", "index"})
    is_indexed = grouping.index is not None
    return Kept.of(corpus, "groups", VERSION, fingerprint, is_indexed, asked, how)


def show(result: "Result[Senses, SensesConfig]") -> RenderableType:
    """The groups, then lines of each."""
    senses, config = result.found, result.config
    parts: list[RenderableType] = [groups_table(senses)]
    for group in senses.groups if config.lines else ():
        lines = senses.grouping.most_typical(group.number - 1, config.lines)
        parts += [on_one_line(f"Group {group.id}"), UseLines(senses.uses.select(lines))]
    parts += [PrintableText(note, "yellow") for note in senses.notes]
    if config.keep:
        parts.append("Kept: the groups that you named, for --sense.")
    if config.out is not None:
        parts.append(on_one_line(f"All uses with their groups: {config.out}"))
    if config.report is not None:
        parts.append(on_one_line(f"To read in a browser: {config.report}"))
    return Group(*parts, f"Took {duration(result.seconds)}.")


def groups_table(senses: "Senses") -> RenderableType:
    """A row for each group: its figures and its name."""
    table = Table(*numbers("", "uses", "share", "stability"))
    table.add_column("substitutes | collocates | frames", overflow="fold")
    for group in senses.groups:
        stability = "" if group.stability is None else f"{group.stability:.2f}"
        figures = (PrintableText(group.id), f"{group.size:,}", f"{group.share:.0%}", stability)
        table.add_row(*figures, PrintableText(group.name))
    title = f"{senses.uses.query}: {describe_groups(len(senses.uses), len(senses.groups))}"
    return titled(title, table)
