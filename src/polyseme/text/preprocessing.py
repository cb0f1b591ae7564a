"""The one path from raw text to sentences with offsets, and how a corpus's text came that way.

    in   a text
    out  `PreprocessedText`: the text normalized, its words, where each begins, its sentences

`prepare` applies it to every record. What uses a model applies the `Preparation` stored with the
model, and is refused if the installed tokenizers would find other words.

A text is normalized for storing: one Unicode form, one Chinese script, no control characters.
Nothing is changed in silence: each kind of change is counted by the caller, and what cannot be
mended is rejected with the reason. Normalizing may join characters (é from e and an accent) or
change the script: whoever answers with offsets in a user's text needs both (`original_offsets`).

A sentence ends after a final mark and the closing marks behind it, as with spaCy's sentencizer; but
an opening quote or bracket begins the next sentence, and a quotation is part of the sentence that
reports it: `He left. | “Why?” she asked. | “It rained.”` What stands in brackets within a sentence
is part of it, whatever ends there: `They left (why?) that day.` The rule works on words, so
abbreviations the segmenter keeps whole do not end one.
"""

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from polyseme import __version__
from polyseme.config import Settings
from polyseme.errors import CorpusError, InputError, MissingExtraError, ModelError, extra_needed_for
from polyseme.text.records import WordAttributes
from polyseme.text.segmenters import SegmenterInfo, describe_segmenter, in_words, load_segmenter
from polyseme.text.segmenters.patterns import WordSpans
from polyseme.text.settings import CorpusConfig

WordRange = tuple[int, int]


class Preparation(Settings):
    """How text became words: in the manifest of a corpus, and of every model trained on it."""

    settings: CorpusConfig
    """Those of the corpus."""
    segmenter: SegmenterInfo
    """What found the words."""
    script: dict[str, str]
    """What converted Chinese script; empty if nothing did."""
    polyseme: str
    """The version that prepared the text."""

    @classmethod
    def of(cls, config: CorpusConfig) -> "Preparation":
        """With the tools that are installed here."""
        return cls(
            settings=config,
            segmenter=describe_segmenter(
                config.chosen_segmenter, config.language, config.user_words
            ),
            script=describe_script(config),
            polyseme=__version__,
        )

    @classmethod
    def from_manifest(cls, values: Any) -> "Preparation":
        """As a manifest has it; a ValueError names the first thing that is wrong."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(["preparation", *map(str, problem["loc"])])
            raise ValueError(f"{place}: {problem['msg']}") from error

    def to_manifest(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return self.model_dump(mode="json")

    def difference(self, other: "Preparation") -> tuple[str, str] | None:
        """What differs, in words, of this one and the other; None if both find the same words."""
        if self.segmenter != other.segmenter:
            return f"words by {in_words(self.segmenter)}", f"words by {in_words(other.segmenter)}"
        if self.script != other.script:
            return _script_in_words(self.script), _script_in_words(other.script)
        return None

    @property
    def options(self) -> str:
        """Those of `polyseme prepare` that find words in the same way, with the same tools."""
        script = f" --script {self.settings.script}" if self.settings.script else ""
        return f"--language {self.settings.language} --segmenter {self.segmenter['name']}{script}"


def _script_in_words(script: Mapping[str, str]) -> str:
    if not script:
        return "text in the script it came in"
    return f"text in {script['script']} script by {script['name']} {script['version']}"


@dataclass(frozen=True, slots=True)
class PreprocessedText:
    """A text as a corpus stores it."""

    text: str
    """Normalized; offsets count its characters."""
    words: WordSpans
    sentences: list[list[WordRange]]
    """The words of each sentence, from and to; several spans where it is too long to be stored
    as one."""
    has_controls: bool
    """Whether control characters were replaced by spaces."""
    attributes: WordAttributes = ()
    """What the source says of each word."""

    def stored(self) -> Iterator[WordSpans]:
        """The sentences as a corpus stores them, long ones split."""
        return (self._slice(*span) for spans in self.sentences for span in spans)

    def whole(self) -> Iterator[WordSpans]:
        """The sentences as they were found."""
        return (self._slice(spans[0][0], spans[-1][1]) for spans in self.sentences)

    def _slice(self, begin: int, end: int) -> WordSpans:
        return WordSpans(self.words.words[begin:end], self.words.starts[begin:end])


class TextPreprocessor:
    """Finds sentences and words by the settings of a corpus."""

    def __init__(self, config: CorpusConfig) -> None:
        self.config = config
        self._segmenter = load_segmenter(
            config.chosen_segmenter, config.language, config.user_words
        )

    @classmethod
    def of_model(cls, preparation: Preparation | None) -> "TextPreprocessor":
        """That of a model's corpus, or an error if text cannot be prepared so here."""
        if preparation is None:
            raise ModelError(
                "This model does not say how text is split into words. Load it with the rules of "
                "a language, tokenizer_from='en' (--tokenizer-from en), or with those of a model "
                "or a corpus in a folder. Or give lists of words: [['She', 'plays'], ['It', "
                "'rains']]."
            )
        if differs := preparation.difference(Preparation.of(preparation.settings)):
            before, now = differs
            raise CorpusError(
                f"The model reads {before}; what is installed here gives {now}. "
                "Install that version, or train a model with this one."
            )
        return cls(preparation.settings)

    def __call__(self, text: str) -> PreprocessedText:
        """Raw text, all the way; an UnfitTextError if it is none."""
        normalized, has_controls = self.normalize(text)
        words = self.split_words(normalized)
        found = split_sentences(words)
        return self.in_sentences(normalized, words, found, has_controls=has_controls)

    def normalize(self, text: str) -> tuple[str, bool]:
        """The text that offsets refer to, and whether it had control characters."""
        return normalize(text, self.config)

    def split_words(self, normalized: str) -> WordSpans:
        """The words of a text that is normalized, and where each begins."""
        return self._segmenter.split(normalized)

    def in_sentences(
        self, text: str, words: WordSpans, found: list[WordRange], *, has_controls: bool
    ) -> PreprocessedText:
        """Words whose sentences are known, long ones split as in the corpus."""
        spans = [split_long(begin, end, self.config.max_words) for begin, end in found]
        return PreprocessedText(text, words, spans, has_controls)


# Sentence-final marks of the world's scripts (Unicode's Sentence_Terminal property) and the
# half-width ideographic stop. An ellipsis is not among them: it trails off inside sentences too.
_SURROGATE = re.compile(r"[\ud800-\udfff]")
# All of Unicode's control characters but the tab; form feeds abound in text made from pages.
_CONTROL = re.compile(r"[\x01-\x08\x0a-\x1f\x7f-\x9f]")

# Normalising sorts the combining marks on one letter, in a time that grows with their square.
# Unicode's own limit for streams is 30 (UAX 15, stream-safe text); this many are no writing.
_PILE = re.compile(rb"[^\0]{256}")


class UnfitTextError(InputError):
    """Text that must not go into a shard. Its argument is the reason, as the quarantine has it."""

    @property
    def reason(self) -> str:
        """What is wrong with the text, in a word."""
        return str(self.args[0])

    def __str__(self) -> str:
        return f"This text cannot be read: {self.reason}. Is it binary data?"


def normalize(text: str, config: CorpusConfig) -> tuple[str, bool]:
    """The text as it will be stored, and whether control characters were replaced by spaces."""
    if "\0" in text:
        raise UnfitTextError("nul-character")  # binary data, or UTF-16 read as something else
    if _SURROGATE.search(text):
        raise UnfitTextError("lone-surrogate")
    spaced = _CONTROL.sub(" ", text)
    has_controls = spaced != text
    if config.script is not None:
        spaced = _converter(config.script)(spaced)
    if config.unicode_normalization is not None:
        if _PILE.search(bytes(map(unicodedata.combining, spaced))):
            raise UnfitTextError("piled-up-marks")
        spaced = unicodedata.normalize(config.unicode_normalization, spaced)
    return spaced, has_controls


def describe_script(config: CorpusConfig) -> dict[str, str]:
    """Which converter folded the script, with its version; empty if none did."""
    if config.script is None:
        return {}
    from importlib.metadata import version

    _converter(config.script)
    return {"name": "opencc", "version": version("opencc"), "script": config.script}


def in_other_scripts(text: str) -> list[str]:
    """Chinese in simplified and in traditional script, as far as that differs; none without the
    extra that converts it."""
    try:
        found = [_converter(script)(text) for script in ("simplified", "traditional")]
    except MissingExtraError:
        return []
    return [each for each in dict.fromkeys(found) if each != text]


@lru_cache(maxsize=2)
def _converter(script: str) -> Callable[[str], str]:
    with extra_needed_for("Folding Chinese script"):
        import opencc
    convert: Callable[[str], str] = opencc.OpenCC(
        "t2s" if script == "simplified" else "s2t"
    ).convert
    return convert


Offsets = npt.NDArray[np.int64]
_RUN = re.compile(r"\s+|\S+")


def original_offsets(original: str, normalized: str, normalize: Callable[[str], str]) -> Offsets:
    """(len(normalized),): never falling, each a place in `original`.

    Exact where a letter with its marks is normalized by itself as it is in its text. Where it is
    not (parts of Korean syllables written one by one), places are right to the word.
    """
    if normalized == original:
        return np.arange(len(original))
    # Each character with its combining marks; or white space, and what stands between.
    for split in (_letters, _RUN.findall):
        units = list(split(original))
        known = {unit: len(normalize(unit)) for unit in dict.fromkeys(units)}
        lengths = [known[unit] for unit in units]
        if sum(lengths) == len(normalized):
            return _spread([len(unit) for unit in units], lengths)
    return _spread([len(original)], [len(normalized)])


def _letters(text: str) -> Iterator[str]:
    """Each character with its combining marks."""
    begin = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or not unicodedata.combining(text[place]):
            yield text[begin:place]
            begin = place


def _spread(before: list[int], after: list[int]) -> Offsets:
    """Units of so many characters each, before and after: the places inside one go side by side,
    and what is left over stands at its last."""
    old, new = np.array(before, np.int64), np.array(after, np.int64)
    unit = np.repeat(np.arange(len(new)), new)
    inside = np.arange(int(new.sum())) - (np.cumsum(new) - new)[unit]
    found: Offsets = (np.cumsum(old) - old)[unit] + np.minimum(inside, old[unit] - 1)
    return found


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

    Of the punctuation marks after a final one, those that close belong to the sentence before, and
    the first that opens begins the next. After a closing quote a word in lower case continues the
    sentence.
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
