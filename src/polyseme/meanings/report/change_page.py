"""One word on two sides as a page: the verdict, the shares of its groups, lines of either side."""

from collections.abc import Iterator, Sequence

import numpy as np

from polyseme.display import counted, html_text
from polyseme.meanings.change.measure import SENTENCES
from polyseme.meanings.change.shares import GroupShares, Share
from polyseme.meanings.change.sides import WordChange
from polyseme.meanings.concordance.lines import metadata_columns
from polyseme.meanings.groups.layout import lay_out
from polyseme.meanings.groups.named_groups import NamedGroup
from polyseme.meanings.report.page import (
    colour,
    draw_map,
    facts_table,
    kwic,
    page,
)
from polyseme.meanings.report.senses_page import (
    ABOUT_MAP,
    CAVEAT,
    group_header,
    settings_section,
    short_name,
    word_of,
)

LINES = 6
"""Of each side in each group."""
_MOVEMENTS = {"unclear": "no clear change"}


def change_page(
    found: WordChange,
    sides: tuple[str, str],
    settings: Sequence[tuple[str, object]],
    *,
    language: str = "en",
    seed: int = 1,
) -> str:
    """One HTML document. `sides`: what each is called."""
    senses = found.senses
    labels = [number - 1 for number in senses.labels]
    is_before = [number < found.num_before for number in range(len(labels))]
    names = {group.number - 1: group.id for group in senses.groups}
    places = lay_out(senses.grouping.vectors, seed)
    drawn = draw_map(places, labels, senses.uses, names, is_before=is_before)
    caption = f"Rings: {sides[0]}. Discs: {sides[1]}. {ABOUT_MAP}"
    shares = {int(each.group): each for each in found.change.groups}
    word = word_of(senses)
    body = [
        *_top(found, word, sides),
        '<section class="overview">',
        f'<figure class="map">{drawn}<figcaption>{html_text(caption)}</figcaption></figure>',
        f"<div><h3>Share of each group</h3>{_legend(senses.groups, shares, sides)}",
        f'<h3 class="next">Measures</h3>{facts_table(found.change.facts())}</div>',
        "</section>",
        *(_section(found, group, shares[group.number], sides) for group in senses.groups),
        settings_section(settings, CAVEAT),
    ]
    return page(f"{word}: {sides[0]} against {sides[1]}", body, language=language)


def verdict(found: WordChange) -> str:
    """What was found, in a sentence."""
    key, values = found.change.sentence(word_of(found.senses))
    return SENTENCES[key].format(**values)


def caveat(found: WordChange) -> str:
    """What the test cannot say."""
    if found.change.unit == "documents":
        return "Sides may differ in topic and genre as well: read the lines behind a group."
    return (
        "Uses, not documents, were shuffled, because a side has fewer than five: an author's style "
        "may look like change."
    )


def _top(found: WordChange, word: str, sides: tuple[str, str]) -> Iterator[str]:
    yield f"<header><h1>{html_text(word)}</h1>"
    yield f'<p class="sub"><b>{html_text(sides[0])}</b> against <b>{html_text(sides[1])}</b></p>'
    told = html_text(verdict(found))
    told = f"<b>{told}</b>" if found.change.verdict == "changed" else told
    yield f'<p class="verdict">{told}</p>'
    for rival in found.rivals:
        yield f'<p class="note warn">{html_text(str(rival))}</p>'
    yield f'<p class="note">{html_text(caveat(found))}</p>'
    for note in found.senses.notes:
        yield f'<p class="note warn">{html_text(note)}</p>'
    yield "</header>"


def _legend(
    groups: Sequence[NamedGroup], shares: dict[int, GroupShares], sides: tuple[str, str]
) -> str:
    rows = []
    for group in groups:
        each = shares[group.number]
        bars = "".join(
            f"<span>{html_text(name)}</span>{_bar(share, kind)}"
            f"<span>{share.share:.0%} · {share.count:,}</span>"
            for name, share, kind in (
                (sides[0], each.before, "before"),
                (sides[1], each.after, "after"),
            )
        )
        rows.append(
            f'<li><a class="{colour(group.number - 1)}" href="#group-{group.number}">'
            f'<span class="id">{html_text(group.id)}</span>'
            f'<span class="name">{html_text(short_name(group))}</span>{_movement(each)}'
            f'<span class="sides">{bars}</span></a></li>'
        )
    return f'<ul class="legend">{"".join(rows)}</ul>'


def _bar(share: Share, kind: str) -> str:
    return f'<span class="bar {kind}"><i style="width:{100 * share.share:.1f}%"></i></span>'


def _movement(each: GroupShares) -> str:
    if each.movement in _MOVEMENTS:
        return f'<span class="share">{_MOVEMENTS[each.movement]}</span>'
    return f'<span class="share moved">{each.movement} {100 * each.difference:+.0f} points</span>'


def _section(
    found: WordChange, group: NamedGroup, each: GroupShares, sides: tuple[str, str]
) -> str:
    number, senses = group.number - 1, found.senses
    columns = metadata_columns(senses.uses.columns)
    ordered = senses.grouping.most_typical(number, len(senses.uses))
    is_before = ordered < found.num_before
    blocks = []
    for name, mine in zip(sides, (ordered[is_before], ordered[~is_before]), strict=True):
        lines = kwic(senses.uses.select(np.asarray(mine[:LINES])), columns, number)
        told = f"{html_text(name)} · {counted(len(mine), 'use')}"
        blocks.append(f'<div class="period"><h3>{told}</h3>{lines}</div>')
    figures = f"{each.before.share:.0%} → {each.after.share:.0%}"
    return (
        f'<section class="group {colour(number)}" id="group-{group.number}">'
        f"{group_header(group, figures)}{''.join(blocks)}</section>"
    )
