"""What a result looks like where a person works: a line in a console, a table in a notebook.

Words, labels and paths come from users' files. They are text and nothing else: control characters
are shown as escapes, and all that HTML would obey is escaped. No scripts, links or images.
"""

from collections.abc import Iterable, Sequence
from html import escape

from polyseme.printable import printable

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
