"""What a corpus is: the settings that decide every byte of it.

How it was made (which executor, how many workers) is not among them, for it changes nothing.
"""

import codecs
import re
from typing import Literal, get_args

from pydantic import Field, field_validator, model_validator

from polyseme.config import Settings

InputFormat = Literal[
    "text", "jsonl", "csv", "tsv", "parquet", "conllu", "vertical", "tei",
    "html", "epub", "docx", "pdf",
]  # fmt: skip
SegmenterName = Literal["spacy", "jieba", "characters", "whitespace"]
AddedAttribute = Literal["lemma", "upos"]
ADDED_ATTRIBUTES: tuple[AddedAttribute, ...] = get_args(AddedAttribute)
TextLayout = Literal["auto", "wrapped", "unwrapped", "articles", "lines"]

USER_DICTIONARY = 500_000
"""Characters of all user words together: they are part of the settings of corpora and models."""
# A word and its frequency. A frequency of 0 would divide words, in all of jieba, for good.
_USER_WORD = re.compile(r"[^\s\x00-\x1f\ud800-\udfff]{1,64}(?: [1-9][0-9]{0,8})?")
_ATTRIBUTE = re.compile(r"\w[\w-]{0,63}")
_COLUMNS = frozenset(("sentence_id", "document", "position", "held_out", "text", "words", "starts"))


class CorpusConfig(Settings):
    """How texts become sentences and words."""

    language: str
    """Language of the text as a code: en, de, zh, ... ; chooses the word and sentence rules."""
    segmenter: SegmenterName | None = None
    """Word segmenter (tokenizer): spacy (rules of the language), jieba (Chinese words), characters
    (each Chinese character is a word), whitespace (already segmented). Default: jieba for zh,
    otherwise spacy."""
    layout: TextLayout = "auto"
    """How plain text is laid out. auto: a file is a document, and hard-wrapped lines are detected
    in each. wrapped: a file is a document, lines up to a blank line are joined. unwrapped: a file
    is a document, a line is a paragraph. articles: a line is a paragraph, a blank line ends a
    document. lines: every line is a document."""
    format: InputFormat | None = None
    """Format of the input files; by default detected from the name or first bytes of each."""
    encoding: str = "utf-8"
    """Character encoding of text files. A byte-order mark in the file overrides it."""
    text_column: str = "text"
    """Column (JSONL, CSV, TSV, Parquet) that holds the text."""
    id_column: str | None = None
    """Column with document ids; by default, the position in the file is the id."""
    meta: tuple[str, ...] = ()
    """Columns or attributes to keep as metadata of every sentence, for example date,author."""
    word_attributes: tuple[str, ...] = ()
    """Attributes to keep with each word (positional attributes), for example lemma,upos. CoNLL-U:
    any of lemma, upos, xpos, feats, head, deprel, deps, misc. Vertical text: names for the columns
    after the word, in their order. Other formats have none."""
    annotate: tuple[AddedAttribute, ...] = ()
    """Attributes to add to each word, for example lemma,upos. lemma: by simplemma (extra [senses];
    49 languages, Chinese is not among them). upos: parts of speech, for English by the task en-upos
    (extra [torch]), for Chinese by jieba, for others by --upos-task. One that --word-attributes
    keeps is not added."""
    unicode_normalization: Literal["NFC", "NFD", "NFKC", "NFKD"] | None = None
    """Unicode normalization before tokenization; None leaves the text unchanged."""
    script: Literal["simplified", "traditional"] | None = None
    """Convert Chinese text to this script (OpenCC, extra [zh]); None leaves it unchanged."""
    user_words: tuple[str, ...] = ()
    """Words added to jieba's dictionary, each alone or with a frequency, for example
    云计算,"大模型 500"."""
    max_words: int = Field(default=250, ge=8)
    """Maximum sentence length in words. Longer ones are split into equal parts, and counted."""
    held_out: float = Field(default=0.02, ge=0.0, le=0.5)
    """Fraction of documents held out for evaluation, chosen by a hash of the document's name."""
    shard_bytes: int = Field(default=8 << 20, ge=1 << 12)
    """How much input goes into one shard, in bytes. A compressed file is never split."""

    @field_validator("encoding")
    @classmethod
    def _encoding_exists(cls, value: str) -> str:
        try:
            "\n".encode(value)  # refuses what is no encoding of text, such as base64
            return codecs.lookup(value).name
        except (LookupError, UnicodeError) as error:
            raise ValueError("no such encoding; try utf-8, gb18030, big5 or latin-1") from error

    @field_validator("meta", "word_attributes", mode="after")
    @classmethod
    def _names_have_no_space_around(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(name.strip() for name in value)
        if not all(names):
            raise ValueError("a name is empty; write them with single commas, as in year,author")
        return names

    @field_validator("meta")
    @classmethod
    def _meta_is_free(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        taken = _COLUMNS.intersection(value)
        if taken:
            raise ValueError(f"{', '.join(sorted(taken))} is a column of ours; rename yours first")
        if len(set(value)) < len(value):
            raise ValueError("a column is named twice")
        return value

    @field_validator("word_attributes")
    @classmethod
    def _word_attributes_are_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not _ATTRIBUTE.fullmatch(name):
                raise ValueError(f"{name[:80]!r} is not a name of letters, digits, _ and -")
            if name in _COLUMNS:
                raise ValueError(f"{name} is a column of ours; call yours something else")
        if len(set(value)) < len(value):
            raise ValueError("an attribute is named twice")
        return value

    @field_validator("user_words")
    @classmethod
    def _user_words_are_words(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for entry in value:
            if not _USER_WORD.fullmatch(entry):
                raise ValueError(f"{entry[:80]!r} is not a word, or a word and a number over 0")
        if sum(map(len, value)) + 4 * len(value) > USER_DICTIONARY:
            raise ValueError(f"over {USER_DICTIONARY:,} characters; name those that matter most")
        return value

    @model_validator(mode="after")
    def _columns_differ(self) -> "CorpusConfig":
        if both := set(self.meta).intersection(self.attributes):
            names = ", ".join(sorted(both))
            raise ValueError(f"{names}: metadata of a text and an attribute of words share a name")
        return self

    @model_validator(mode="after")
    def _user_words_are_used(self) -> "CorpusConfig":
        if self.user_words and self.chosen_segmenter != "jieba":
            raise ValueError(
                f"user words are for jieba, but the segmenter is {self.chosen_segmenter}; leave "
                "them out, or say --segmenter jieba"
            )
        return self

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of words that the corpus has: those that were given, then those added."""
        return (*self.word_attributes, *self.added_attributes)

    @property
    def added_attributes(self) -> tuple[AddedAttribute, ...]:
        """Those that are worked out."""
        named = dict.fromkeys(self.annotate)
        return tuple(name for name in named if name not in self.word_attributes)

    @property
    def chosen_segmenter(self) -> SegmenterName:
        """The segmenter, with the language's default filled in."""
        return self.segmenter or ("jieba" if self.language == "zh" else "spacy")
