"""Words in, sentences out: where a sentence ends, and how an overlong one is split.

The rule is that of spaCy's sentencizer: a sentence ends after a final mark and any closing
marks behind it. It works on words, so abbreviations the segmenter keeps whole do not end one.
"""

import itertools
import unicodedata
from functools import lru_cache

# Sentence-final marks of the world's scripts (Unicode's Sentence_Terminal property) and the
# half-width ideographic stop. An ellipsis is not among them: it trails off inside sentences too.
FINAL_MARKS = frozenset(
    "!.?։؟۔܀܁܂߹।॥၊။።፧፨᙮᜵᜶᠃᠉᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟᰻᰼᱾᱿‼‽⁇⁈⁉⸮⸼꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱꯫﹒﹖﹗！．？𐩖𐩗𑁇𑁈𑂾𑂿𑃀𑃁𑅁𑅂𑅃𑇅𑇆𑇍𑇞𑇟𑈸𑈹𑈻𑈼𑊩𑑋𑑌𑗂𑗃𑗉𑗊𑗋𑗌𑗍𑗎𑗏𑗐𑗑𑗒𑗓𑗔𑗕𑗖𑗗𑙁𑙂𑜼𑜽𑜾𑩂𑩃𑪛𑪜𑱁𑱂𖩮𖩯𖫵𖬷𖬸𖭄𛲟𝪈｡。"
)


def split_sentences(words: list[str]) -> list[tuple[int, int]]:
    """Where each sentence begins and ends, as places in `words`."""
    spans = []
    begin = 0
    is_over = False
    for i, word in enumerate(words):
        if word in FINAL_MARKS or (word[0] in "!?.！？" and _is_final(word)):
            is_over = True
        elif is_over and not _is_mark(word):
            spans.append((begin, i))
            begin = i
            is_over = False
    if begin < len(words):
        spans.append((begin, len(words)))
    return spans


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
