"""Parts of speech of uses, from the CoNLL-U file that their corpus was prepared from.

in   a treebank, and the sentences that are wanted, as their words
out  for each sentence found, the part of speech (UPOS) of each word
"""

from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

from polyseme.errors import InputError
from polyseme.limits import read_lines
from polyseme.meanings.concordance.uses import Uses
from polyseme.text.formats.marked import parse_line

_UPOS = 3
Words = tuple[str, ...]


def tags_of(uses: Uses, path: Path) -> list[str | None]:
    """The part of speech of each use; None where the file has no such sentence."""
    sentences = [tuple(words) for words in uses.sentences()]
    known = read_tags(path, set(sentences))
    found = [
        "+".join(known[words][begin:end]) if words in known else None
        for words, (begin, end) in zip(sentences, uses.spans.tolist(), strict=True)
    ]
    if found and not any(found):
        raise InputError(
            f"{path} has none of these sentences. Name the CoNLL-U file that the corpus was "
            "prepared from."
        )
    return found


def read_tags(path: Path, wanted: Collection[Words]) -> dict[Words, Words]:
    """Of those sentences that are wanted. What is not CoNLL-U is passed over."""
    found: dict[Words, Words] = {}
    for words, tags in _sentences(path):
        if words in wanted:
            found.setdefault(words, tags)
    return found


def tagged_sentences(path: Path, number: int) -> Iterator[tuple[Words, Words]]:
    """The first so many sentences of a treebank: words, and their parts of speech."""
    return islice(((words, tags) for words, tags in _sentences(path) if words), number)


def _sentences(path: Path) -> Iterator[tuple[Words, Words]]:
    """Words and tags as a corpus has them: a contraction is one word, its tags joined by +."""
    words: list[str] = []
    tags: list[str] = []
    covered_to = 0
    try:
        for line in read_lines(path):
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if not text.strip():
                yield tuple(words), tuple(tags)
                words, tags, covered_to = [], [], 0
            elif (found := None if text.startswith("#") else parse_line(text)) is None:
                continue
            elif found.last is None and found.first <= covered_to:
                tags[-1] += f"{'+' * bool(tags[-1])}{found.columns[_UPOS]}"
            elif not found.is_empty_node:
                covered_to = found.last or covered_to
                words.append(found.form)
                tags.append("" if found.last else found.columns[_UPOS])
        yield tuple(words), tuple(tags)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
