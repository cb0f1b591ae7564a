"""Export a corpus as vertical text for CWB, CQPweb or Sketch Engine, with the senses you named.

One line per word. The columns are the word, its attributes, and `sense` if you kept senses
(`polyseme senses --keep`). Prints the command that compiles it with CWB.

Examples:

  polyseme export corpus/en --out en.vrt

  polyseme export corpus/en --where "year<1860" --out old.vrt
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import Group, RenderableType

from polyseme.config import Folder, Settings
from polyseme.display import counted
from polyseme.meanings.settings import Conditions
from polyseme.progress import SILENT, Progress

if TYPE_CHECKING:
    from polyseme.meanings.vertical import VerticalCounts


class ExportConfig(Settings):
    """What is written, and where."""

    arguments: ClassVar[tuple[str, ...]] = ("corpus",)

    corpus: Folder
    """The corpus folder."""
    where: Conditions = ()
    """Only sentences whose metadata meet this condition. Repeat the option for more conditions; all
    must be met."""
    out: Path
    """The file of vertical text: en.vrt."""


@dataclass(frozen=True)
class ExportResult:
    """What was written, and how CWB compiles it."""

    counts: "VerticalCounts"
    command: str
    config: ExportConfig

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self.counts), "cwb": self.command, "out": str(self.config.out)}


def run(config: ExportConfig, progress: Progress = SILENT) -> ExportResult:
    """Write it."""
    from polyseme.meanings.concordance.conditions import parse_where
    from polyseme.meanings.concordance.kept_senses import read_senses
    from polyseme.meanings.concordance.search import CorpusColumns
    from polyseme.meanings.vertical import encode_command, write_vertical
    from polyseme.text.corpus import Corpus

    corpus = Corpus.open(config.corpus)
    where = parse_where(config.where, CorpusColumns(corpus))
    senses = read_senses(corpus)
    counts = write_vertical(corpus, senses, where, config.out, progress)
    command = encode_command(corpus, config.out, has_senses=bool(senses))
    return ExportResult(counts, command, config)


def show(result: ExportResult) -> RenderableType:
    """How much was written, and what to do with it."""
    counts = result.counts
    told = (
        f"{counted(counts.words, 'word')} in {counted(counts.sentences, 'sentence')} of "
        f"{counted(counts.texts, 'text')} written to {result.config.out}; "
        f"{counted(counts.senses, 'word')} with a sense."
    )
    return Group(told, f"To compile it: {result.command}")
