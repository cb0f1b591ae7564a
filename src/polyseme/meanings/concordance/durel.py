"""DURel's files: uses, pairs to judge and judgments of them (durel.ims.uni-stuttgart.de).

    uses.csv       a use a line, with the characters of the word in its context
    instances.csv  pairs of uses that are to be judged
    judgments.csv  who judged which pair how: 4 identical, 3 closely related, 2 distantly related,
                   1 unrelated, 0 cannot decide

The columns are those of github.com/Garrafao/WUGs; others that a file has are passed over. There are
tabs between them and no quotes: a tab or a line end in a text becomes a space, so that offsets stay
right.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from polyseme.meanings.concordance.uses import Use, Uses
from polyseme.storage.files import disk_faults_explained, scratch_for

USES = (
    *("lemma", "pos", "date", "grouping", "identifier", "description", "context"),
    *("indexes_target_token", "indexes_target_sentence"),
)
INSTANCES = ("identifier1", "identifier2", "lemma")
JUDGMENTS = ("identifier1", "identifier2", "annotator", "judgment", "comment", "lemma")
_DATES = ("date", "year")
_NONE = " "  # what the format asks for where a value is not known
# What splitlines takes for the end of a line, and the tab; each becomes one space.
_BREAKS = dict.fromkeys(map(ord, "\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), " ")


def plain(text: str) -> str:
    """One line without tabs, as long as it was."""
    return text.translate(_BREAKS)


def tab_separated(header: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """The lines of a file."""
    yield "\t".join(header)
    for row in rows:
        yield "\t".join(plain(str(cell)) for cell in row)


def write_lines(path: Path, lines: Iterator[str]) -> None:
    """A file of these lines, whole or not at all."""
    with (
        disk_faults_explained(path.parent),
        scratch_for(path) as scratch,
        scratch.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.writelines(f"{line}\n" for line in lines)


def identifier(use: Use) -> str:
    """What a use is called in these files."""
    return identifier_of(use.sentence_id, use.begin)


def identifier_of(sentence_id: str, begin: int) -> str:
    """The same of a use that begins at a word of a sentence."""
    return plain(f"{sentence_id}-{begin}")


def lemma_of(uses: Uses) -> str:
    """What was looked for, as one word; a pattern has none, so then what was found first."""
    query = uses.query
    is_word = query is not None and not (query.is_regex or query.is_cql)
    name = query.forms[0] if query is not None and is_word else uses[0].form
    return "_".join(name.split())


def use_lines(uses: Uses) -> Iterator[str]:
    """The file of uses."""
    dates = [name for name in uses.columns if name in _DATES]

    def rows() -> Iterator[tuple[object, ...]]:
        lemma = lemma_of(uses)
        for use in uses:
            date = (use.metadata[dates[0]] if dates else None) or _NONE
            begin = use.starts[use.begin]
            target = f"{begin}:{begin + len(use.form)}"
            sentence = f"0:{len(use.text)}"
            # `grouping` is DURel's for a set of texts, not of senses: all are of one.
            yield lemma, _NONE, date, 1, identifier(use), _NONE, use.text, target, sentence

    return tab_separated(USES, rows())


def marked(text: str, begin: int, end: int) -> str:
    """A text with the use in it between asterisks, as `polyseme same` reads it."""
    clear = text.replace("*", " ")  # or what stands there would be taken for a mark
    return f"{clear[:begin]}*{clear[begin:end]}*{clear[end:]}"


def marked_context(context: str, target: str) -> str:
    """The same of a row of uses: `target` is as 17:25."""
    begin, _, end = target.partition(":")
    if not (begin.isdecimal() and end.isdecimal() and int(begin) < int(end) <= len(context)):
        return context
    return marked(context, int(begin), int(end))
