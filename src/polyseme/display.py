"""How results look: a line in a console, a table, a page of a notebook, a picture.

Words, labels and paths come from users' files and may hold escape sequences, line ends or
characters that turn the direction of writing. Raw, they would forge messages or hide what is there:
control characters are shown as escapes (`terminal.py` sees to it), and all that HTML would obey is
escaped. No scripts, links or images.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from rich.console import ConsoleOptions, Group, RenderResult
from rich.table import Column, Table
from rich.text import Text

from polyseme.errors import extra_needed_for

# C0, DEL and C1; soft hyphen, zero-width and bidirectional controls; line and paragraph separators;
# byte-order mark, annotations, tags; lone surrogates, as which Python carries bytes of file names
# that are not UTF-8. Not U+200C and U+200D: Persian, Indic scripts and emoji are spelt with them.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    """`text` on one line, each control character in it as Python would write it: `\\x1b`."""
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def json_line(value: Any) -> str:
    """A value as JSON on one line, its control characters escaped as JSON does: `\\u00ad`."""
    # All of them stand inside strings, where an escape means the character.
    text = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: json.dumps(found[0])[1:-1], text)


class PrintableText(Text):
    """Rich's text with styles, of printable characters only. Rich's own drops some controls."""

    def __init__(self, text: str = "", *styles: Any, **options: Any) -> None:
        super().__init__(printable(text), *styles, **options)

    def append(self, text: Text | str, style: Any = None) -> "PrintableText":
        """Add a stretch of text in a style."""
        super().append(printable(text) if isinstance(text, str) else text, style)
        return self


def numbers(*names: str | Text) -> list[Column]:
    """Columns of a table whose cells are numbers: set to the right."""
    return [Column(name, justify="right") for name in names]


def titled(title: str, table: Table) -> Group:
    """A table below its title, which may be wider: a path in it stays in one piece."""
    return Group(on_one_line(title, style="table.title"), table)


def on_one_line(line: str, style: str = "") -> PrintableText:
    """A line that is never wrapped, so that a path or JSON in it can be copied."""
    return PrintableText(line, style, no_wrap=True, overflow="ignore")


@dataclass(frozen=True)
class JsonLines:
    """Values as JSON, one a line; each is made when its line is printed."""

    values: Iterable[Any]

    def lines(self) -> Iterator[PrintableText]:
        """A line for each value."""
        return (on_one_line(json_line(value)) for value in self.values)

    def __rich_console__(self, console: object, options: ConsoleOptions) -> RenderResult:
        del console, options
        yield from self.lines()


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
    with extra_needed_for(purpose):
        from matplotlib import font_manager
        from matplotlib.figure import Figure
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


_LONGEST = 60  # characters of a sentence in a line


def summary(name: str, *facts: str) -> str:
    """A `repr`: `<Corpus: en, 12 sentences>`; empty facts are left out."""
    return printable(f"<{name}: {', '.join(fact for fact in facts if fact)}>")


def sentence(words: Sequence[str]) -> str:
    """Words as a line, shortened."""
    line = " ".join(words)
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def counted(number: int, noun: str) -> str:
    """A number and what it counts: 1 use, 1,200 uses."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def describe_groups(num_uses: int, num_groups: int) -> str:
    """How many uses there are, in how many groups."""
    return f"{counted(num_uses, 'use')} in {counted(num_groups, 'group')}"


def describe_layers(num_layers: int, dim: int) -> str:
    """The size of vectors in words."""
    return f"{counted(num_layers, 'layer')} of {counted(dim, 'dimension')}"


def html_table(title: str, rows: Iterable[Sequence[object]], header: Sequence[str] = ()) -> str:
    """A table below its title. Numbers are set to the right."""
    head = "".join(f"<th>{html_text(cell)}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    top = f"<thead><tr>{head}</tr></thead>" if header else ""
    return f"<div><b>{html_text(title)}</b><table>{top}<tbody>{body}</tbody></table></div>"


def html_words(words: Iterable[tuple[str, str, str]]) -> str:
    """Words one after the other: each with a note below it ("" for none) and a colour of ours."""
    parts = []
    for word, note, colour in words:
        assert colour == "" or colour.isalpha(), colour
        style = f' style="background:{colour}"' if colour else ""
        below = f"<sub>{html_text(note)}</sub>" if note else ""
        parts.append(f"<span{style}>{html_text(word)}{below}</span>")
    return f"<div>{' '.join(parts)}</div>"


def html_spans(words: Sequence[str], spans: Iterable[tuple[int, int, str, str]]) -> str:
    """Words one after the other, and spans of them marked, none of which crosses another: where it
    begins, the word after it, a note, and a colour of ours."""
    opens, closes = [""] * (len(words) + 1), [""] * (len(words) + 1)
    for start, stop, note, colour in sorted(spans, key=lambda span: (span[1] - span[0], span[0])):
        assert colour.isalpha(), colour
        # From the shortest on: what opens is put outside of it, and what closes, too.
        opens[start] = f'<span style="background:{colour}">[{opens[start]}'
        closes[stop] += f"]<sub>{html_text(note)}</sub></span>"
    shown = map(html_text, words)
    marked = (opens[place] + word + closes[place + 1] for place, word in enumerate(shown))
    return f"<div>{' '.join(marked)}</div>"


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f'<td style="text-align:right">{value:,}</td>'
    if isinstance(value, float):
        return f'<td style="text-align:right">{value:,.2f}</td>'
    return f'<td style="text-align:left">{html_text(value)}</td>'


def html_text(value: object) -> str:
    """Anything as text and nothing else: all that HTML would obey is escaped."""
    return escape(printable(str(value)), quote=True)
