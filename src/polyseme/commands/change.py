"""Ask whether a word changed between two sets of texts, and which of its meanings moved.

The uses of both sides are grouped together; then the sides are compared: how far they are apart
(APD, PRT), how often chance alone would do that (documents shuffled between the sides, where there
are enough), and the share of each group on either side. Texts of two periods also differ in topic
and genre: read the lines before you call it change of meaning.

Examples:

  polyseme change train --in corpus/novels --model models/en-mini \\
      --before "year<1860" --after "year>=1900"

  polyseme change bank --in corpus/en --model models/en-mini --before genre=news --after genre=law
"""

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.config import Settings
from polyseme.meanings.settings import FindConfig
from polyseme.printable import PrintableText
from polyseme.progress import NullProgress, Progress, duration
from polyseme.tables import on_one_line, titled

if TYPE_CHECKING:
    from polyseme.meanings.sides import WordChange


class ChangeConfig(Settings):
    """Which word, which two sides, by which model."""

    arguments: ClassVar[tuple[str, ...]] = ("word",)

    find: FindConfig
    """What to look for."""
    model: str
    """The model that describes the uses: a folder, or hf:FOLDER for one of Hugging Face."""
    before: tuple[str, ...]
    """What the metadata of one side meet: year<1860."""
    after: tuple[str, ...]
    """What the metadata of the other side meet: year>=1900."""
    shuffle: Literal["documents", "uses"] | None = None
    """What is shuffled to see what chance does. Without it documents, if each side has five."""
    seed: int = 1
    """Of samples, groups and shuffles."""
    json_: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True)
class ChangeResult:
    """What was found, and how long it took."""

    found: "WordChange"
    config: ChangeConfig
    seconds: float


def run(config: ChangeConfig, progress: Progress | None = None) -> ChangeResult:
    """Find the uses of both sides, group them together, compare the sides."""
    from polyseme.embedding.loading import load_for_corpus
    from polyseme.meanings.features import UseDescriber
    from polyseme.meanings.query import Comparison
    from polyseme.meanings.sides import compare_sides
    from polyseme.meanings.uses import find_uses
    from polyseme.text.corpus import Corpus

    began = time.monotonic()
    corpus = Corpus.open(config.find.in_)
    sides = [[Comparison.parse(text) for text in given] for given in (config.before, config.after)]
    for condition in (condition for side in sides for condition in side):
        condition.check_column(("document", *corpus.config.meta))
    uses = find_uses(corpus, config.find.query, where=config.find.where)
    before, after = map(uses.matching, sides)
    found = compare_sides(
        uses,
        before,
        after,
        UseDescriber(load_for_corpus(config.model, corpus)),
        unit=config.shuffle,
        seed=config.seed,
        progress=progress or NullProgress(),
    )
    return ChangeResult(found, config, time.monotonic() - began)


def show(result: ChangeResult) -> RenderableType:
    """The measures, then the groups with their share on either side."""
    found, config = result.found, result.config
    if config.json_:
        return on_one_line(json.dumps(found.to_json(), ensure_ascii=False))
    before, after = (" and ".join(side) for side in (config.before, config.after))
    table = Table()
    table.add_column("", justify="right")
    for side in (before, after):
        table.add_column(PrintableText(side), justify="right")
    table.add_column("")
    table.add_column("substitutes | collocates", overflow="fold")
    names = {group.number: group.name for group in found.senses.groups}
    for each in sorted(found.change.groups, key=lambda each: int(each.group)):
        shares = (f"{side.count:,} ({side.share:.0%})" for side in (each.before, each.after))
        name = PrintableText(names[int(each.group)])
        table.add_row(each.group, *shares, each.movement, name)
    parts = [titled(f"{found.senses.uses.query}: {before} against {after}", table), _verdict(found)]
    parts += [PrintableText(note, "yellow") for note in found.senses.notes]
    return Group(*parts, PrintableText(f"Took {duration(result.seconds)}."))


def _verdict(found: "WordChange") -> RenderableType:
    """The figures, and what they can and cannot say."""
    facts = Table.grid(padding=(0, 2))
    for name, value in found.change.facts():
        facts.add_row(name, PrintableText(value))
    p = found.change.p_value
    said = (
        f"The sides differ by more than chance explains (p = {p:.3f})."
        if p < 0.05
        else f"Chance alone explains such a difference (p = {p:.3f})."
    )
    caveat = (
        "Sides may differ in topic and genre as well: read the lines behind a group."
        if found.change.unit == "documents"
        else "Uses were shuffled, not documents, so an author's style may pass for change."
    )
    return Group(facts, PrintableText(said, "bold"), PrintableText(caveat))
