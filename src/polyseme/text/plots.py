"""The same figures as a picture, with a font that has the words' script."""

from pathlib import Path

from polyseme.drawing import load_matplotlib
from polyseme.errors import ConfigError
from polyseme.storage.files import scratch_for
from polyseme.text.corpus import Corpus
from polyseme.text.statistics import Coverage, Frequent, bin_lengths

_COLOUR = "#2f6690"


def plot_corpus(
    path: Path, corpus: Corpus, coverage: list[Coverage], frequent: list[Frequent]
) -> list[str]:
    """Draw sentence lengths, coverage and frequent words; returns notes for the user."""
    text = "".join(row.word for row in frequent)
    figure_class, fonts, notes = load_matplotlib(text, purpose="--plot")
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ConfigError(f"--plot {path}: the name must end in .png, .pdf or .svg.")
    figure = figure_class(figsize=(13, max(4.5, 0.23 * len(frequent))), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    bins = bin_lengths(corpus.read_stats["sentence_lengths"], width=2)
    places = range(0, 2 * len(bins), 2)
    left.bar(places, [b.sentences for b in bins], 2.0, align="edge", color=_COLOUR)
    length = "words in the sentence (last bar: 100 and more)"
    left.set(title="Sentence length", ylabel="sentences", xlabel=length)
    sizes, shares = [row.size for row in coverage], [100 * row.share for row in coverage]
    middle.plot(sizes, shares, marker="o", color=_COLOUR)
    middle.set(
        title="Coverage",
        xlabel="most frequent words in the vocabulary",
        ylabel="% of the text",
        xscale="log",
    )
    middle.grid(visible=True, alpha=0.3)
    right.barh([row.word for row in frequent], [row.count for row in frequent], color=_COLOUR)
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
