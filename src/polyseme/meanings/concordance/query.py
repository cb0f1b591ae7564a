"""What is looked for in a corpus.

    in   forms of a word, a term of several words, or a pattern
    out  `Term`s: for each word of what is looked for, the spellings of the corpus that will do

Nothing a user writes is ever run. Patterns are regular expressions without backtracking (RE2's), so
none takes for ever.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from polyseme.display import counted
from polyseme.errors import ConfigError, InputError, PolysemeError
from polyseme.storage.parquet import read_batches
from polyseme.text.corpus import Corpus, damage_explained
from polyseme.text.normalization import UnfitTextError, in_other_scripts
from polyseme.text.preprocessing import TextPreprocessor
from polyseme.text.segmenters.patterns import SPACELESS

Term = tuple[frozenset[str], ...]
"""Spellings that will do for each word of a term, one after the other."""
Spellings = dict[str, set[str]]
_ROWS = 1 << 16
_NEAR = 50_000  # of the most frequent words, those a misspelt one is held against
_CLOSE = 20  # of them, the closest, among which the most frequent are told
_MUCH = 2  # times as often in longer words as alone is worth telling


@dataclass(frozen=True)
class Query:
    """Forms of a word, any of which will do; each may be a term of several words."""

    forms: tuple[str, ...]
    is_regex: bool = False
    """Whether each form is a pattern that a whole word must match."""
    is_case_sensitive: bool = False

    @classmethod
    def of(
        cls,
        word: str | None = None,
        *,
        forms: Sequence[str] = (),
        regex: str | None = None,
        case_sensitive: bool = False,
    ) -> "Query":
        """A word and other forms of it, or a pattern."""
        given = ((word,) if word else ()) + tuple(forms)
        if regex is not None and given:
            raise ConfigError(
                f"Both a pattern ({regex!r}) and forms ({', '.join(given)}) were given. A pattern "
                f"can have forms in it: {'|'.join(given)}|..."
            )
        given = given if regex is None else (regex,)
        for form in given:
            if not form.strip() or any("\ud800" <= character <= "\udfff" for character in form):
                raise ConfigError(f"{form!r} cannot occur in a text.")
        if not given:
            raise ConfigError("Nothing to look for: name a word, forms of it, or a pattern.")
        return cls(given, regex is not None, case_sensitive)

    def __str__(self) -> str:
        return " or ".join(map(repr, self.forms))

    def resolve(self, corpus: Corpus) -> list[Term]:
        """The terms to look for, in spellings that the corpus has; none if it has none.

        A form is looked for as one word; as the words between its spaces; and, if it has more than
        letters and digits or is none of these, split as the corpus's text was. Chinese that is not
        found is looked for in the other script.
        """
        if self.is_regex:
            found = frozenset(word for form in self.forms for word in self._matching(form, corpus))
            return [(found,)] if found else []
        terms = self._resolve(self.forms, corpus)
        if not terms and corpus.config.language == "zh":
            others = [each for form in self.forms for each in in_other_scripts(form)]
            terms = self._resolve(others, corpus)
        return terms

    def _resolve(self, forms: Sequence[str], corpus: Corpus) -> list[Term]:
        ways = {form: [(form,), tuple(form.split())] for form in forms}
        known = self._known(ways, corpus)
        for form, found_ways in ways.items():
            is_plain = all(word.isalnum() for word in form.split())
            if not is_plain or not any(self._term(way, known) for way in found_ways):
                found_ways.append(_segment(form, corpus))
        known |= self._known({form: way[2:] for form, way in ways.items()}, corpus)
        terms = [self._term(way, known) for each in ways.values() for way in each]
        whole = [term[0] for term in terms if len(term) == 1]
        longer = dict.fromkeys(term for term in terms if len(term) > 1)
        return [*([(frozenset().union(*whole),)] if whole else []), *longer]

    def _term(self, words: Sequence[str], known: Spellings) -> Term:
        """The words in their spellings; empty if the corpus lacks one of them."""
        spellings = [known.get(self._folded(word), set()) for word in words]
        return tuple(map(frozenset, spellings)) if all(spellings) else ()

    def _folded(self, word: str) -> str:
        return word if self.is_case_sensitive else word.casefold()

    def _known(self, ways: Mapping[str, Sequence[Sequence[str]]], corpus: Corpus) -> Spellings:
        """For each word of these ways to write the forms, folded, its spellings in the corpus."""
        wanted = {self._folded(word) for each in ways.values() for way in each for word in way}
        found: Spellings = {}
        if not wanted:
            return found
        folded = pa.array(wanted, pa.string())
        longest = max(map(len, wanted))
        for batch in _vocabulary(corpus, ["word"]):
            words = batch["word"]
            # Folding a long list in Python takes long, so first what Arrow can tell of it.
            is_short = pc.less_equal(pc.utf8_length(words), longest)
            may_be = pc.or_(
                pc.is_in(words if self.is_case_sensitive else pc.ascii_lower(words), folded),
                pc.and_not(is_short, pc.string_is_ascii(words)),
            )
            for word in words.filter(may_be).to_pylist():
                if (key := self._folded(word)) in wanted:
                    found.setdefault(key, set()).add(word)
        return found

    def _matching(self, pattern: str, corpus: Corpus) -> Iterator[str]:
        """The words of the vocabulary that the pattern matches as a whole."""
        try:
            # By itself first: in brackets, "a)|(b" would be another pattern.
            for text in (pattern, f"\\A(?:{pattern})\\z"):
                pc.match_substring_regex(pa.array([""]), text)
        except pa.ArrowInvalid as error:
            raise ConfigError(
                f"{pattern!r} is not a valid regular expression: {error}. The syntax is RE2's: "
                "letters, classes, groups, repetition; no look-ahead and no backreferences."
            ) from error
        for batch in _vocabulary(corpus, ["word"]):
            matches = pc.match_substring_regex(
                batch["word"], f"\\A(?:{pattern})\\z", ignore_case=not self.is_case_sensitive
            )
            yield from batch["word"].filter(matches).to_pylist()


def _vocabulary(corpus: Corpus, columns: Sequence[str]) -> Iterator[Any]:
    with damage_explained(corpus.vocabulary):
        yield from read_batches(corpus.vocabulary, columns, _ROWS)


def _segment(form: str, corpus: Corpus) -> tuple[str, ...]:
    """The form split as the text of the corpus was; empty if its tools are not the same here."""
    try:
        return tuple(TextPreprocessor.of_model(corpus.preparation)(form).words.words)
    except (PolysemeError, UnfitTextError):
        return ()


class InLongerWords(NamedTuple):
    """A short Chinese word that is mostly part of longer ones, of which a search finds none."""

    forms: tuple[str, ...]
    alone: int
    """How often it is a word by itself."""
    longer: int
    """How often longer words have it in them."""

    @property
    def note(self) -> str:
        """What a reader of counts should know, and do."""
        return (
            f"{' or '.join(self.forms)} is a word by itself {counted(self.alone, 'time')} here; "
            "longer words, which are not among these uses, have it "
            f"{counted(self.longer, 'time')} more. To find it everywhere, prepare the texts with "
            "--segmenter characters."
        )


def in_longer_words(query: Query, corpus: Corpus) -> InLongerWords | None:
    """How often what jieba found as a word is part of longer words; None if not much more often.

    Read from the vocabulary, for words of one or two characters.
    """
    if corpus.config.chosen_segmenter != "jieba" or query.is_regex:
        return None
    terms = query.resolve(corpus)
    forms = tuple(sorted(set().union(*(term[0] for term in terms if len(term) == 1))))
    if not forms or any(len(form) > 2 or not SPACELESS.match(form) for form in forms):
        return None
    alone = longer = 0
    for batch in _vocabulary(corpus, ["word", "count"]):
        words, counts = batch["word"], batch["count"]
        is_form = pc.is_in(words, pa.array(forms))
        has_form = pc.match_substring_regex(words, "|".join(forms))
        alone += pc.sum(counts.filter(is_form)).as_py() or 0
        longer += pc.sum(counts.filter(pc.and_not(has_form, is_form))).as_py() or 0
    return InLongerWords(forms, alone, longer) if longer >= _MUCH * alone else None


def near_forms(query: Query, corpus: Corpus) -> list[str]:
    """Words of the corpus that are spelt alike; of a pattern, none."""
    if query.is_regex:
        return []
    frequent: list[str] = []
    for batch in _vocabulary(corpus, ["word"]):
        frequent += batch["word"].to_pylist()
        if len(frequent) >= _NEAR:
            break
    folded = {word.casefold(): word for word in reversed(frequent)}
    order = {word: number for number, word in enumerate(frequent)}
    near: dict[str, None] = {}
    for form in query.forms:
        for word in form.split():
            close = difflib.get_close_matches(word.casefold(), folded, n=_CLOSE, cutoff=0.7)
            ratios = {
                folded[match]: difflib.SequenceMatcher(None, match, word.casefold()).ratio()
                for match in close
                if folded[match] != word
            }
            # Of those that are equally near, the most frequent: "bnak" is for "bank", not "beak".
            near |= dict.fromkeys(sorted(ratios, key=lambda each: (-ratios[each], order[each]))[:3])
    return list(near)


def check_uses(count: int, most: int) -> None:
    """Refuse more uses than can be worked with."""
    if count > most:
        raise InputError(
            f"Over {most:,} uses. Look for a rarer word or a longer term, or let --where choose "
            "fewer sentences."
        )
