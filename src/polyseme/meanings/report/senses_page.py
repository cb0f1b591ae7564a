"""The groups of a word's uses as a page: an overview, a map, and each group with its lines."""

from collections.abc import Iterator, Sequence

from polyseme.display import counted, html_text
from polyseme.meanings.concordance.lines import metadata_columns
from polyseme.meanings.groups.layout import lay_out
from polyseme.meanings.groups.named_groups import NamedGroup, Senses
from polyseme.meanings.report.page import (
    MAX_POINTS,
    colour,
    draw_map,
    facts_table,
    kwic,
    page,
)

TYPICAL_LINES = 10
MORE_LINES = 90
"""Lines of a group that can be unfolded below the typical ones."""
CAVEAT = (
    "These are groups of uses, not dictionary senses. Uses were grouped by what a language model "
    "expects in the word’s place, by likely substitutes and by the topic of the sentence. How many "
    "groups there are is a choice, not a fact: ask for finer or coarser ones. "
    "Groups sometimes follow grammar or topic instead of meaning, and a sense with few uses is "
    "easily missed. Read the lines."
)
ABOUT_MAP = (
    "Each point is a use; nearby points are similar uses (t-SNE). Distances between groups, and "
    "the area of a group, mean nothing. Hover over a point to read its line."
)


def senses_page(
    senses: Senses, settings: Sequence[tuple[str, object]], *, language: str = "en", seed: int = 1
) -> str:
    """One HTML document. `settings`: what the reader needs to make the same page again."""
    word = word_of(senses)
    places = lay_out(senses.grouping.vectors, seed)
    labels = [number - 1 for number in senses.labels]
    names = {group.number - 1: group.id for group in senses.groups}
    drawn = draw_map(places, labels, senses.uses, names)
    body = [
        *_top(senses, word),
        '<section class="overview">',
        f'<figure class="map">{drawn}<figcaption>{_caption(len(labels))}</figcaption></figure>',
        f"<div><h3>Groups</h3>{_legend(senses.groups)}</div>",
        "</section>",
        *(_section(senses, group) for group in senses.groups),
        settings_section(settings, CAVEAT),
    ]
    return page(f"{word}: groups of uses", body, language=language)


def word_of(senses: Senses) -> str:
    """What the page is about: the forms that were looked for."""
    query = senses.uses.query
    return " / ".join(query.forms) if query else senses.uses[0].form


def _top(senses: Senses, word: str) -> Iterator[str]:
    documents = len(set(senses.uses.metadata("document")))
    yield f"<header><h1>{html_text(word)}</h1>"
    yield (
        f'<p class="sub">{counted(len(senses.uses), "use")} in '
        f"{counted(documents, 'document')}, in {counted(len(senses.groups), 'group')}</p>"
    )
    for note in senses.notes:
        yield f'<p class="note warn">{html_text(note)}</p>'
    yield f'<p class="note">{html_text(CAVEAT)}</p></header>'


def _caption(number: int) -> str:
    sample = (
        f" A sample of {MAX_POINTS:,} of {number:,} uses is drawn." if number > MAX_POINTS else ""
    )
    return html_text(ABOUT_MAP + sample)


def _legend(groups: Sequence[NamedGroup]) -> str:
    rows = [
        f'<li><a class="{colour(group.number - 1)}" href="#group-{group.number}">'
        f'<span class="id">{html_text(group.id)}</span>'
        f'<span class="name">{html_text(short_name(group))}</span>'
        f'<span class="share">{group.share:.0%} · {group.size:,}</span>'
        f'<span class="bar"><i style="width:{100 * group.share:.1f}%"></i></span>{_near(group)}</a>'
        for group in groups
    ]
    return f'<ul class="legend">{"</li>".join(rows)}</li></ul>'


def _near(group: NamedGroup) -> str:
    return (
        f'<span class="near">near {html_text(", ".join(group.collocates))}</span>'
        if group.collocates
        else ""
    )


def short_name(group: NamedGroup) -> str:
    """What a user calls a group, or the first of its words."""
    if group.given_name and group.given_name != group.words:
        return group.given_name
    words = group.substitutes or group.collocates or group.frames
    return ", ".join(words) or f"group {group.id}"


def group_header(group: NamedGroup, figures: str) -> str:
    """Its number and name, figures, and what sets it apart."""
    parts = [
        (name, words)
        for name, words in (
            ("substitutes", group.substitutes),
            ("collocates", group.collocates),
            ("frames", group.frames),
        )
        if words
    ]
    words = "".join(
        f'<p class="words">{name}: <b>{html_text(" · ".join(words))}</b></p>'
        for name, words in parts
    )
    return (
        f'<header><span class="id">{html_text(group.id)}</span>'
        f"<h2>{html_text(short_name(group))}</h2>"
        f'<span class="figures">{figures}</span>{words}</header>'
    )


def _section(senses: Senses, group: NamedGroup) -> str:
    number = group.number - 1
    stability = "edited by hand" if group.stability is None else f"stability {group.stability:.2f}"
    figures = f"{counted(group.size, 'use')} · {group.share:.1%} · {stability}"
    lines = senses.grouping.most_typical(number, TYPICAL_LINES + MORE_LINES)
    columns = metadata_columns(senses.uses.columns)
    first = kwic(senses.uses.select(lines[:TYPICAL_LINES]), columns, number)
    more = ""
    if len(lines) > TYPICAL_LINES:
        rest = kwic(senses.uses.select(lines[TYPICAL_LINES:]), columns, number)
        told = f"{len(lines) - TYPICAL_LINES} more of {group.size:,}, the most typical first"
        more = f"<details><summary>{told}</summary>{rest}</details>"
    return (
        f'<section class="group {colour(number)}" id="group-{group.number}">'
        f"{group_header(group, figures)}{first}{more}</section>"
    )


def settings_section(settings: Sequence[tuple[str, object]], caveat: str) -> str:
    """How the page was made, and how it is to be read."""
    return (
        f'<section class="settings"><div><h3>How to read it</h3><p>{html_text(caveat)}</p>'
        "<p>Stability is how much of a group is found again when four fifths of the uses are "
        "regrouped: 1 is all of it.</p>"
        f"</div><div><h3>How it was made</h3>{facts_table(settings)}</div></section>"
    )
