"""The same figures as a picture, with a font that has the words' script."""

from pathlib import Path
from typing import Any

from polyseme.errors import ConfigError, MissingExtraError
from polyseme.text.corpus import Corpus
from polyseme.text.statistics import Coverage, Frequent, bin_lengths

# Fonts with Chinese, in the order of preference; one comes with every common system.
_CHINESE_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Source Han Sans SC",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "Arial Unicode MS",
)
_COLOUR = "#2f6690"


def plot_corpus(
    path: Path, corpus: Corpus, coverage: list[Coverage], frequent: list[Frequent]
) -> list[str]:
    """Draw sentence lengths, coverage and frequent words; returns notes for the user."""
    figure_class, fonts, notes = _load_matplotlib("".join(row.word for row in frequent))
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ConfigError(f"--plot {path}: the name must end in .png, .pdf or .svg.")
    figure = figure_class(figsize=(13, max(4.5, 0.23 * len(frequent))), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    bins = bin_lengths(corpus.accounting["sentence_lengths"], width=2)
    places = range(0, 2 * len(bins), 2)
    left.bar(places, [b.sentences for b in bins], 2.0, align="edge", color=_COLOUR)
    left.set(title="Sentence length", ylabel="sentences")
    left.set_xlabel("words in the sentence (last bar: 100 and more)")
    middle.plot(
        [row.size for row in coverage],
        [100 * row.share for row in coverage],
        marker="o",
        color=_COLOUR,
    )
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
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return notes


def _load_matplotlib(text: str) -> tuple[Any, list[str], list[str]]:
    """The figure class (drawing needs no screen), the fonts to use, and a note if one lacks."""
    try:
        from matplotlib import font_manager
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError.of("matplotlib", extra="plot", purpose="--plot") from error
    if not any("\u2e80" <= character <= "\U000323af" for character in text):
        return Figure, ["sans-serif"], []
    installed = set(font_manager.get_font_names())
    chinese = [name for name in _CHINESE_FONTS if name in installed]
    if chinese:
        return Figure, [chinese[0], "sans-serif"], []
    note = (
        "No font with Chinese characters was found: they are drawn as boxes. Install one, for "
        "example Noto Sans CJK, and draw again."
    )
    return Figure, ["sans-serif"], [note]
