"""What is looked for in, the sentences that have it out, from as few row groups as will do.

    in   forms of a word, a term of several words, or a pattern; conditions on metadata
    out  `Query.resolve`: for each word of a term, the spellings of the corpus that will do
         `search`: a table of sentences; for each use its sentence and its words there

Patterns are regular expressions without backtracking (RE2), so none takes for ever. Words are
looked up as numbers (`text.shards`): a row group's distinct words once, and only where a use
is found is its Parquet file read, for the metadata. Several threads read.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from polyseme.display import counted
from polyseme.errors import ConfigError, InputError, PolysemeError
from polyseme.meanings.concordance.conditions import (
    SUBCORPUS,
    All,
    ColumnValues,
    Condition,
    Subcorpora,
    parse_where,
    path_of,
    read_subcorpora,
    rows_meeting,
)
from polyseme.meanings.concordance.cql import (
    TokenPattern,
    check_pattern,
    compile_query,
    is_one_of,
    parse_query,
    whole,
)
from polyseme.meanings.concordance.kept_senses import read_senses
from polyseme.meanings.concordance.sentence_table import (
    DOCUMENT,
    Integers,
    SentenceTable,
    TextColumn,
)
from polyseme.storage.parquet import ParquetReader, read_batches
from polyseme.text.corpus import Corpus, damage_explained, words_of
from polyseme.text.preprocessing import TextPreprocessor, UnfitTextError, in_other_scripts
from polyseme.text.segmenters.patterns import SPACELESS
from polyseme.text.shards import GroupWords, ShardWords

Term = tuple[frozenset[str], ...]
"""Spellings that will do for each word of a term, one after the other."""
Sought = Term | TokenPattern
Spellings = dict[str, set[str]]
_ROWS = 1 << 16
_THREADS = 2  # that read row groups
_NEAR = 50_000  # of the most frequent words, those a misspelt one is held against
_CLOSE = 20  # of them, the closest, among which the most frequent are told
_MUCH = 2  # times as often in longer words as alone is worth telling


@dataclass(frozen=True)
class Query:
    """Forms of a word, any of which will do; each may be a term of several words."""

    forms: tuple[str, ...]
    is_regex: bool = False  # whether each form is a pattern that a whole word must match
    is_case_sensitive: bool = False
    is_cql: bool = False  # whether the one form is a query of conditions on words
    where: str = ""  # the condition on metadata that such a query ends with

    @classmethod
    def of(
        cls,
        word: str | None = None,
        *,
        forms: Sequence[str] = (),
        regex: str | None = None,
        cql: str | None = None,
        case_sensitive: bool = False,
    ) -> "Query":
        """A word and other forms of it, or a pattern, or a query in CQL."""
        given = ((word,) if word else ()) + tuple(forms)
        if cql is not None:
            if given or regex is not None:
                raise ConfigError(f"Both a query in CQL ({cql}) and a word were given.")
            return cls((cql,), is_cql=True, where=parse_query(cql).where)
        if regex is not None and given:
            raise ConfigError(
                f"Both a pattern ({regex!r}) and forms ({', '.join(given)}) were given. A pattern "
                f"can have forms in it: {'|'.join(given)}|..."
            )
        given = given if regex is None else (regex,)
        for form in given:
            if not form.strip() or any("\ud800" <= character <= "\udfff" for character in form):
                raise ConfigError(f"{form!r} is empty or not valid Unicode.")
        if not given:
            raise ConfigError("Nothing to look for: name a word, forms of it, or a pattern.")
        return cls(given, regex is not None, case_sensitive)

    def __str__(self) -> str:
        return self.forms[0] if self.is_cql else " or ".join(map(repr, self.forms))

    def condition(
        self, where: str | Condition | Sequence[str | Condition], corpus: Corpus
    ) -> Condition:
        """This condition on metadata, and the query's own."""
        columns = CorpusColumns(corpus)
        found = parse_where(where, columns)
        return All((found, parse_where(self.where, columns))) if self.where else found

    def resolve(self, corpus: Corpus) -> list[Sought]:
        """What to look for, in spellings that the corpus has; nothing if it has none.

        A form is looked for as one word; as the words between its spaces; and, if it has more than
        letters and digits or is none of these, split as the corpus's text was. Chinese that is not
        found is looked for in the other script.
        """
        if self.is_cql:
            query = parse_query(self.forms[0])
            return [compile_query(query, corpus.config.attributes, partial(read_senses, corpus))]
        if self.is_regex:
            found = frozenset(word for form in self.forms for word in self._matching(form, corpus))
            return [(found,)] if found else []
        terms = self._resolve(self.forms, corpus)
        if not terms and corpus.config.language == "zh":
            others = [each for form in self.forms for each in in_other_scripts(form)]
            terms = self._resolve(others, corpus)
        return [*terms]

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
            check_pattern(pattern)
        except pa.ArrowInvalid as error:
            raise ConfigError(
                f"{pattern!r} is not a valid regular expression: {error}. The syntax is RE2's: "
                "letters, classes, groups, repetition; no look-ahead and no backreferences."
            ) from error
        for batch in _vocabulary(corpus, ["word"]):
            matches = pc.match_substring_regex(
                batch["word"], whole(pattern), ignore_case=not self.is_case_sensitive
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
    alone: int  # how often it is a word by itself
    longer: int  # how often longer words have it in them

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
    if corpus.config.chosen_segmenter != "jieba" or query.is_regex or query.is_cql:
        return None
    single = (t[0] for t in query.resolve(corpus) if isinstance(t, tuple) and len(t) == 1)
    forms = tuple(sorted(set[str]().union(*single)))
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
    if query.is_regex or query.is_cql:
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


MAX_USES = 1_000_000
"""Some 200 MB."""
_TOGETHER = 16  # row groups that a thread takes at once, for one opening of their file
Result = TypeVar("Result")


class ShardGroups(NamedTuple):
    """Some row groups of one shard."""

    shard: int
    path: Path
    groups: range


@dataclass(frozen=True)
class _Found:
    """The sentences with uses in one row group."""

    places: Integers  # (S, 3): shard, row group, row
    words: TextColumn  # all words of these sentences
    lengths: Integers
    columns: dict[str, TextColumn]
    rows: Integers  # (N,): of each use, the number of its sentence among these
    spans: Integers  # (N, 2)


def search(
    corpus: Corpus,
    terms: Sequence[Sought],
    where: Condition,
    *,
    parts: Sequence[ShardGroups] | None = None,
) -> tuple[SentenceTable, Integers, Integers]:
    """The sentences that have uses, and each use's sentence and span, in the corpus's order.

    `parts`: only in these row groups.
    """
    work = partial(_search_part, terms, where, (DOCUMENT, *corpus.config.meta))
    found: list[_Found] = []
    count = 0
    for results in in_threads(work, all_groups(corpus) if parts is None else parts):
        found += results
        count += sum(len(each.rows) for each in results)
        check_uses(count, MAX_USES)
    return _joined(found, corpus)


def all_groups(corpus: Corpus) -> list[ShardGroups]:
    """Every row group of the corpus, some at a time."""
    parts = []
    for number, shard in enumerate(corpus.shards):
        with damage_explained(words_of(shard)):
            groups = range(len(ShardWords(words_of(shard))))
        begins = groups[::_TOGETHER]
        parts += [ShardGroups(number, shard, groups[begin:][:_TOGETHER]) for begin in begins]
    return parts


def every_group(corpus: Corpus, step: int = 1) -> list[ShardGroups]:
    """Every n-th row group of the corpus, each by itself: part of the texts, taken evenly."""
    parts = all_groups(corpus)
    single = [part._replace(groups=range(g, g + 1)) for part in parts for g in part.groups]
    return single[::step]


def read_groups(
    part: ShardGroups, columns: Sequence[str]
) -> Iterator[tuple[GroupWords, dict[str, TextColumn]]]:
    """The words and the columns of each row group; within `damage_explained`."""
    with ParquetReader(part.path, list(columns)) as metadata:
        words = ShardWords(words_of(part.path))
        for group in part.groups:
            yield words[group], read_columns(metadata, group, columns)


def in_threads(
    work: Callable[[ShardGroups], Result], parts: Sequence[ShardGroups]
) -> Iterator[Result]:
    """What the work makes of each part, in order. After an error, no other part is begun."""
    pool = ThreadPoolExecutor(_THREADS)
    try:
        yield from pool.map(work, parts)
    finally:
        pool.shutdown(cancel_futures=True)


def read_columns(reader: ParquetReader, group: int, names: Sequence[str]) -> dict[str, TextColumn]:
    """Columns of text of a row group."""
    table = reader.read_group(group)
    return {name: TextColumn.from_arrow(table[name].chunks) for name in names}


class CorpusColumns(Mapping[str, ColumnValues]):
    """The columns of a corpus with all values of each, which are read when they are asked for."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._values: dict[str, ColumnValues] = {}

    def __iter__(self) -> Iterator[str]:
        return iter((*self._own, *((SUBCORPUS,) if self._has_subcorpora else ())))

    def __len__(self) -> int:
        return len(self._own) + self._has_subcorpora

    @property
    def _own(self) -> tuple[str, ...]:
        return (DOCUMENT, *self._corpus.config.meta)

    @property
    def _has_subcorpora(self) -> bool:
        return SUBCORPUS not in self._own and path_of(self._corpus).exists()

    def __contains__(self, name: object) -> bool:
        return name in tuple(self)

    def __getitem__(self, name: str) -> ColumnValues:
        if name not in self:
            raise KeyError(name)
        if name not in self._own:
            return Subcorpora(read_subcorpora(self._corpus))  # which may change meanwhile
        if name not in self._values:
            parts = in_threads(partial(_values_of, name), all_groups(self._corpus))
            self._values[name] = ColumnValues(set().union(*parts))
        return self._values[name]


def _values_of(name: str, part: ShardGroups) -> set[str]:
    found: set[str] = set()
    with damage_explained(part.path), ParquetReader(part.path, [name]) as reader:
        for group in part.groups:
            found.update(read_columns(reader, group, [name])[name].values)
    return found


def uses_in(words: GroupWords, terms: Sequence[Sought], place: tuple[int, int]) -> Integers:
    """(N, 3): row of the sentence, and the use's first word there and the one after its last.

    In order, each once; uses may overlap. `place`: the words' shard, and their row group there.
    """
    found = [
        term.find(words, place) if isinstance(term, TokenPattern) else _uses_of_term(words, term)
        for term in terms
    ]
    return found[0] if len(found) == 1 else np.unique(np.concatenate(found), axis=0)


def _uses_of_term(words: GroupWords, term: Term) -> Integers:
    wanted = [words.find(spellings) for spellings in term]
    if not all(wanted):  # without reading the words
        return np.empty((0, 3), np.int64)
    codes, offsets = words.codes, words.offsets
    begins = np.flatnonzero(is_one_of(codes, wanted[0]))
    rows = np.searchsorted(offsets, begins, side="right") - 1
    fits = begins + len(term) <= offsets[rows + 1]  # a term does not cross sentences
    begins, rows = begins[fits], rows[fits]
    for distance, numbers in enumerate(wanted[1:], start=1):
        fits = np.isin(codes[begins + distance], numbers)
        begins, rows = begins[fits], rows[fits]
    begins = begins - offsets[rows]
    return np.stack([rows, begins, begins + len(term)], axis=1)


def _keep(
    index: tuple[int, int], words: GroupWords, uses: Integers, columns: dict[str, TextColumn]
) -> _Found:
    """The sentences of these uses; `index`: of shard and row group."""
    rows, numbers = np.unique(uses[:, 0], return_inverse=True)
    offsets = words.offsets
    lengths = offsets[rows + 1] - offsets[rows]
    # Each sentence's words one after another: where it begins, and how far into it.
    begins = np.repeat(offsets[rows] - (np.cumsum(lengths) - lengths), lengths)
    used, codes = np.unique(words.codes[begins + np.arange(len(begins))], return_inverse=True)
    return _Found(
        places=np.stack([*(np.full(len(rows), number) for number in index), rows], axis=1),
        words=TextColumn(words.spell(used), codes.astype(np.int32)),
        lengths=lengths,
        columns={name: column.select(rows) for name, column in columns.items()},
        rows=numbers,
        spans=uses[:, 1:],
    )


def _search_part(
    terms: Sequence[Sought],
    where: Condition,
    columns: Sequence[str],
    part: ShardGroups,
) -> list[_Found]:
    with damage_explained(words_of(part.path)):
        words = ShardWords(words_of(part.path))
        groups = ((number, words[number]) for number in part.groups)
        found = [
            (number, group, uses)
            for number, group in groups
            if len(uses := uses_in(group, terms, (part.shard, number)))
        ]
    if not found:
        return []
    kept = []
    with damage_explained(part.path), ParquetReader(part.path, list(columns)) as metadata:
        for number, group, uses in found:
            values = read_columns(metadata, number, columns)
            accepted = rows_meeting(where, values)
            if len(accepted) != len(group.offsets) - 1:
                raise ValueError("it has other sentences than the words beside it")
            if (is_kept := accepted[uses[:, 0]]).any():
                kept.append(_keep((part.shard, number), group, uses[is_kept], values))
    return kept


def _joined(found: Sequence[_Found], corpus: Corpus) -> tuple[SentenceTable, Integers, Integers]:
    """What was found in all row groups, as one."""
    sizes = np.cumsum([0, *(len(each.places) for each in found)])
    no_rows, no_spans = np.empty(0, np.int64), np.empty((0, 2), np.int64)
    lengths = np.concatenate([no_rows, *(each.lengths for each in found)])
    table = SentenceTable(
        words=TextColumn.joined([each.words for each in found]),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        columns={
            name: TextColumn.joined([each.columns[name] for each in found])
            for name in (DOCUMENT, *corpus.config.meta)
        },
        shards=corpus.shards,
        places=np.concatenate([np.empty((0, 3), np.int64), *(each.places for each in found)]),
    )
    rows = [each.rows + before for each, before in zip(found, sizes, strict=False)]
    spans = np.concatenate([no_spans, *(each.spans for each in found)])
    return table, np.concatenate([no_rows, *rows]), spans
