"""Words in, sentences out: where a sentence ends, and how an overlong one is split.

A sentence ends after a final mark and the closing marks behind it, as with spaCy's sentencizer; but
an opening quote or bracket begins the next sentence, and a quotation is part of the sentence that
reports it: `He left. | “Why?” she asked. | “It rained.”` What stands in brackets within a sentence
is part of it, whatever ends there: `They left (why?) that day.` The rule works on words, so
abbreviations the segmenter keeps whole do not end one.
"""

import itertools
import unicodedata
from functools import lru_cache

from polyseme.text.segmenters.patterns import WordSpans

# Sentence-final marks of the world's scripts (Unicode's Sentence_Terminal property) and the
# half-width ideographic stop. An ellipsis is not among them: it trails off inside sentences too.
FINAL_MARKS = frozenset(
    "!.?։؟۔܀܁܂߹।॥၊။።፧፨᙮᜵᜶᠃᠉᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟᰻᰼᱾᱿‼‽⁇⁈⁉⸮⸼꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱꯫﹒﹖﹗！．？𐩖𐩗𑁇𑁈𑂾𑂿𑃀𑃁𑅁𑅂𑅃𑇅𑇆𑇍𑇞𑇟𑈸𑈹𑈻𑈼𑊩𑑋𑑌𑗂𑗃𑗉𑗊𑗋𑗌𑗍𑗎𑗏𑗐𑗑𑗒𑗓𑗔𑗕𑗖𑗗𑙁𑙂𑜼𑜽𑜾𑩂𑩃𑪛𑪜𑱁𑱂𖩮𖩯𖫵𖬷𖬸𖭄𛲟𝪈｡。"
)


_STRAIGHT_QUOTE = '"'
_CLOSING_QUOTES = frozenset("\"'”’“»«")
_BRACKETS = {"(": ")", "[": "]", "（": "）", "【": "】", "〔": "〕", "［": "］"}
_LONGEST_BRACKET = 100
"""Words; a bracket that is not closed within so many is no remark but a slip."""


def split_sentences(found: WordSpans) -> list[tuple[int, int]]:
    """Where each sentence begins and ends, as indices of words.

    Of the marks after a final one, those that close belong to the sentence before, and the first
    that opens begins the next. After a closing quote a word in lower case continues the sentence.
    """
    words, starts = found.words, found.starts
    edges = [0]
    is_over = is_quote_open = False
    remark_end = 0  # the word after brackets that stand within a sentence
    for i, word in enumerate(words):
        is_quote = word == _STRAIGHT_QUOTE
        if word in _BRACKETS and i >= remark_end and i > edges[-1] and not is_over:
            remark_end = _closed_at(i, words)
        if i < remark_end:
            continue
        if word in FINAL_MARKS or (word[0] in "!?.！？" and _is_final(word)):
            is_over = True
        elif (is_over or is_quote) and _is_mark(word):
            opens = _opens(i, words, starts, is_quote_open)
            if is_quote:
                is_quote_open = opens
            if is_over and opens:
                edges.append(i)
                is_over = False
        elif is_over:
            if not (word[0].islower() and words[i - 1] in _CLOSING_QUOTES):
                edges.append(i)
            is_over = False
    return list(itertools.pairwise([*edges, len(words)])) if words else []


def _opens(i: int, words: list[str], starts: list[int], is_quote_open: bool) -> bool:
    """Whether a mark opens what follows, rather than closing what stands before it.

    A mark belongs to the word it touches: `“` closes a quotation in German and opens one in
    English. One that touches both neighbours, as all do in Chinese, or neither, as in text that is
    already tokenized, opens if Unicode calls it an opening mark; a straight quote, if the one
    before it closed.
    """
    word = words[i]
    touches_left = i > 0 and starts[i - 1] + len(words[i - 1]) == starts[i]
    touches_right = i + 1 < len(words) and starts[i] + len(word) == starts[i + 1]
    if touches_left != touches_right:
        return touches_right
    if word == _STRAIGHT_QUOTE:
        return not is_quote_open
    return unicodedata.category(word[0]) in ("Ps", "Pi")


def _closed_at(i: int, words: list[str]) -> int:
    """The place after the bracket that closes the one at `i`; `i` if there is none near."""
    opening, closing = words[i], _BRACKETS[words[i]]
    depth = 0
    for place in range(i, min(i + _LONGEST_BRACKET, len(words))):
        depth += (words[place] == opening) - (words[place] == closing)
        if not depth:
            return place + 1
    return i


def split_long(begin: int, end: int, max_length: int) -> list[tuple[int, int]]:
    """One span, or equal parts of it if it has more than `max_length` words."""
    parts = -(-(end - begin) // max_length)
    edges = [begin + (end - begin) * part // parts for part in range(parts + 1)]
    return list(itertools.pairwise(edges))


@lru_cache(maxsize=100_000)
def _is_mark(word: str) -> bool:
    return all(unicodedata.category(character).startswith("P") for character in word)


@lru_cache(maxsize=10_000)
def _is_final(word: str) -> bool:
    """A run such as `?!` or `！！！`, which some segmenters keep as one word; not `...`."""
    return FINAL_MARKS.issuperset(word) and set(word) != {"."}
