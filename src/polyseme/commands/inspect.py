"""Show corpus statistics: counts, sentence lengths, coverage, frequent words.

Examples:

  polyseme inspect corpus/en

  polyseme inspect corpus/en --plot corpus.png

  polyseme inspect corpus/en --verify
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.config import Folder, Settings
from polyseme.display import numbers
from polyseme.errors import ConfigError, CorpusError
from polyseme.progress import SILENT, Progress
from polyseme.text.corpus import Corpus
from polyseme.text.records import list_reasons
from polyseme.text.word_counts import Bin, Coverage, Frequent, bin_lengths, coverage, most_frequent


class InspectConfig(Settings):
    """Which corpus to look at, and how."""

    arguments: ClassVar[tuple[str, ...]] = ("corpus",)

    corpus: Folder
    """The corpus folder."""
    top: int = Field(default=20, ge=1, le=1000)
    """How many of the most frequent words to show."""
    plot: Path | None = None
    """Also draw the figures to this PNG, PDF or SVG file (`pip install matplotlib`)."""
    verify: bool = False
    """Read every file and compare it with the hash in the manifest."""


@dataclass(frozen=True)
class InspectResult:
    """What was found out about a corpus."""

    corpus: Corpus
    lengths: list[Bin]
    coverage: list[Coverage]
    frequent: list[Frequent]
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """The tables as values."""
        corpus = self.corpus
        return {
            "language": corpus.config.language,
            "segmenter": dict(corpus.preparation.segmenter),
            "annotators": corpus.annotators,
            **corpus.read_stats,
            "coverage": [asdict(row) for row in self.coverage],
            "frequent": [asdict(row) for row in self.frequent],
            "notes": self.notes,
        }


def run(config: InspectConfig, progress: Progress = SILENT) -> InspectResult:
    """Gather the figures; with `verify`, refuse a damaged corpus."""
    corpus = Corpus.open(config.corpus)
    notes = []
    if config.verify:
        progress.start("Verifying", len(corpus.manifest["files"]))
        damaged = corpus.check_files(progress.update)
        if damaged:
            raise CorpusError(
                f"{len(damaged)} of {len(corpus.manifest['files'])} files are missing or changed: "
                f"{', '.join(damaged[:5])}. Run the same prepare command again: it repairs them."
            )
        notes.append(f"All {len(corpus.manifest['files']):,} files are intact.")
    result = InspectResult(
        corpus,
        bin_lengths(corpus.read_stats["sentence_lengths"], width=10),
        coverage(corpus.vocabulary, corpus.read_stats["words"]),
        most_frequent(corpus.vocabulary, config.top),
        notes,
    )
    if config.plot is not None:
        notes.extend(_plot(config.plot, result))
        notes.append(f"Figures drawn to {config.plot}.")
    return result


def show(result: InspectResult) -> RenderableType:
    """All tables, the narrow ones side by side where the terminal is wide enough."""
    tables = [_summary(result), _lengths(result), _coverage(result), _frequent(result)]
    return Group(Columns(tables, padding=(0, 3)), *result.notes)


def _summary(result: InspectResult) -> Table:
    counts = result.corpus.read_stats
    segmenter = result.corpus.preparation.segmenter
    table = Table(title="Corpus", title_justify="left", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right")
    table.add_row("language", result.corpus.config.language)
    table.add_row("segmenter", f"{segmenter['name']} {segmenter['version']}")
    for name, by in result.corpus.annotators.items():
        table.add_row(name, f"{by['name']} {by.get('version') or by.get('sha256', '')[:12]}")
    for label in ("documents", "sentences", "words", "distinct_words", "characters"):
        table.add_row(label.replace("_", " "), f"{counts[label]:,}")
    table.add_row("held-out documents", f"{counts['held_out_documents']:,}")
    table.add_row("held-out words", f"{counts['held_out_words']:,}")
    table.add_section()
    for label in ("read", "blank", "quarantined", "kept", "joined"):
        table.add_row(label, f"{counts[label]:,}")
    for reason, number in list_reasons(counts["quarantine_reasons"]):
        table.add_row(f"  {reason}", number)
    table.add_row("sentences split", f"{counts['sentences_split']:,}")
    return table


def _lengths(result: InspectResult) -> Table:
    table = Table(*numbers("", ""), title="Words per sentence", title_justify="left")
    table.show_header = False
    table.add_column("")
    most = max((b.sentences for b in result.lengths), default=0) or 1
    for b in result.lengths:
        bar = "█" * round(24 * b.sentences / most)
        table.add_row(b.label, f"{b.sentences:,}", bar or ("▏" if b.sentences else ""))
    return table


def _coverage(result: InspectResult) -> Table:
    columns = numbers("vocabulary", "of all words", "rarest count")
    table = Table(*columns, title="Coverage of the text", title_justify="left")
    for row in result.coverage:
        table.add_row(f"{row.size:,}", f"{row.share:.2%}", f"{row.rarest:,}")
    return table


def _frequent(result: InspectResult) -> Table:
    columns = numbers("count", "share")
    table = Table("word", *columns, title="Most frequent words", title_justify="left")
    total = result.corpus.read_stats["words"] or 1
    for row in result.frequent:
        table.add_row(row.word, f"{row.count:,}", f"{row.count / total:.2%}")
    return table


def _plot(path: Path, result: InspectResult) -> list[str]:
    """Draw sentence lengths, coverage and frequent words; returns notes for the user."""
    from polyseme.display import load_matplotlib
    from polyseme.storage.files import scratch_for

    corpus, frequent = result.corpus, result.frequent
    text = "".join(row.word for row in frequent)
    figure_class, fonts, notes = load_matplotlib(text, purpose="--plot")
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ConfigError(f"--plot {path}: the name must end in .png, .pdf or .svg.")
    figure = figure_class(figsize=(13, max(4.5, 0.23 * len(frequent))), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    bins = bin_lengths(corpus.read_stats["sentence_lengths"], width=2)
    places = range(0, 2 * len(bins), 2)
    left.bar(places, [b.sentences for b in bins], 2.0, align="edge", color="#2f6690")
    length = "words in the sentence (last bar: 100 and more)"
    left.set(title="Sentence length", ylabel="sentences", xlabel=length)
    sizes, shares = (
        [row.size for row in result.coverage],
        [100 * row.share for row in result.coverage],
    )
    middle.plot(sizes, shares, marker="o", color="#2f6690")
    middle.set(
        title="Coverage",
        xlabel="most frequent words in the vocabulary",
        ylabel="% of the text",
        xscale="log",
    )
    middle.grid(visible=True, alpha=0.3)
    right.barh([row.word for row in frequent], [row.count for row in frequent], color="#2f6690")
    right.invert_yaxis()
    right.set(title="Most frequent words", xlabel="count")
    figure.suptitle(corpus.folder.name)
    for axes, axis in ((left, "y"), (right, "x")):
        axes.ticklabel_format(axis=axis, style="plain")
        getattr(axes, f"{axis}axis").set_major_formatter("{x:,.0f}")
    right.locator_params(axis="x", nbins=4)
    for label in right.get_yticklabels():
        label.set_fontfamily(fonts)
    with scratch_for(path) as scratch:
        figure.savefig(scratch, dpi=150)
    return notes
