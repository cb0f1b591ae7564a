"""What every picture needs: matplotlib, if it is installed, and fonts that fit."""

from typing import Any

from polyseme.errors import MissingExtraError

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


def load_matplotlib(
    text: str = "", *, purpose: str = "Drawing"
) -> tuple[Any, list[str], list[str]]:
    """The figure class (drawing needs no screen), the fonts to use, and a note if one lacks.

    `text`: all that will be written, so that its script is known.
    """
    try:
        from matplotlib import font_manager
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError.of("matplotlib", purpose=purpose) from error
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
