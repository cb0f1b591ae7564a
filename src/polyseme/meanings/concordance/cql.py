"""A query in CQL, the corpus query language of CWB, Sketch Engine and BlackLab: text in, uses out.

    in   text such as `[lemma="bank" & upos="NOUN"] []{0,3} "account"`; the words of a row group
    out  a `TokenPattern`, which finds where it matches; or a `QueryError` that points at a
         character

    query       = sequence { "|" sequence } [ "within" "<s/>" ] [ "::" condition on metadata ]
    sequence    = { ( token | "(" query ")" ) [ "?" | "*" | "+" | "{" numbers "}" ] }
    token       = string | "[" [ test ] "]"
    test        = attribute ( "=" | "!=" ) string, joined by "&", "|", "!" and parentheses
    string      = a regular expression (RE2) in quotes that the whole value must match, then flags:
                  %c for any case, %l for no regular expression

A test of a word is a test of its spelling, or of a value of an attribute: each distinct value of a
row group is looked at once. `sense` is no value but what is kept beside the corpus: a test of it is
true of the words of the uses in those senses whose names match.

What must be in every match chooses sentences. In those, Glushkov's automaton is followed backwards:
for each of its positions and each word, how long the longest match is that goes on from there.
Without loops that is one pass over all words for each position, from the last position to the
first; with loops, all last words of the sentences go first, then all second to last, and so on. So
time grows with the number of words and with the automaton, never with the number of ways in which a
query can match.

Matches lie within a sentence. Of all that begin at one word the longest counts, and none that lies
within another (as with CQP's strategy `longest`).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache, lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from polyseme.errors import extra_needed_for
from polyseme.meanings.concordance.conditions import ConditionError, Sentence
from polyseme.meanings.concordance.kept_senses import KeptSenses, places_in
from polyseme.meanings.concordance.sentence_table import Integers, covered
from polyseme.text.shards import GroupWords

Mask = npt.NDArray[np.bool_]
MAX_CHARACTERS, MAX_POSITIONS, MAX_STEPS, MAX_DEPTH = 10_000, 250, 1_000, 50
WORD, SENSE = "word", "sense"
SENTENCES = {
    "quote": "This quotation mark has no second one.",
    "value": 'Expected a value in quotation marks, as in lemma="bank".',
    "operator": "Expected = or != after the name of an attribute.",
    "test": 'Expected an attribute and its value, as in lemma="bank".',
    "in_token": "Expected & or |, %c, or ] at the end of a word's conditions.",
    "numbers": "Expected how many words, as in {{2}} or {{0,3}}.",
    "token": 'Expected a word, as in "bank", [lemma="bank"], or [] for any word.',
    "more": "Expected another word, ?, *, +, {{0,3}}, |, within <s/>, or the end.",
    "nesting": "A parenthesis here is not closed, or not opened.",
    "flag": "{flag} is none of the flags. %c: any case; %l: no regular expression.",
    "no_attribute": "This corpus has no attribute {name} of words. It has: {names}.",
    "no_sense": "No sense that is kept beside this corpus matches {pattern}. Kept: {names}.",
    "no_senses": "No senses are kept beside this corpus. Keep those that you named with `polyseme "
    "senses WORD --edits FILE --keep`, or `polyseme label --keep`.",
    "did_you_mean": "Did you mean {choices}?",
    "or": " or ",
    "bad_pattern": "{pattern} is not a valid regular expression (RE2).",
    "order": "{least} is more than {most}.",
    "too_long": "A query has at most {most} characters; this one has {length}.",
    "too_deep": "Parentheses are at most {most} deep.",
    "too_large": "With all repetitions written out this query has {size} words; at most {most} are "
    "allowed. Make the numbers in braces smaller.",
    "too_many_ways": "There are too many ways in which repetitions in repetitions can match. Leave "
    "out one of them.",
}
"""What can be wrong with a query, by key: the explorer has the same keys in other languages."""


class QueryError(ConditionError):
    """A query that cannot be understood, or asks for what a corpus does not have."""

    language, prefix = SENTENCES, "query"


@dataclass(frozen=True)
class Test:
    """A condition on one attribute of a word."""

    attribute: str
    pattern: str
    at: int = field(compare=False)  # the character of the query where it begins
    value_at: int = field(compare=False)  # where its value does
    is_negated: bool = False
    ignores_case: bool = False


@dataclass(frozen=True)
class Not:
    """A word that does not meet its part."""

    part: "WordTest"


@dataclass(frozen=True)
class Every:
    """A word that meets all parts; without any, every word."""

    parts: "tuple[WordTest, ...]" = ()


@dataclass(frozen=True)
class Either:
    """A word that meets at least one part."""

    parts: "tuple[WordTest, ...]"


WordTest = Test | Not | Every | Either


@dataclass(frozen=True)
class InOrder:
    """One part after the other."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True)
class Choice:
    """One of the parts."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True)
class Repeat:
    """A part several times; without `most`, any number of times."""

    part: "Node"
    least: int
    most: int | None


Node = WordTest | InOrder | Choice | Repeat


class ParsedQuery(NamedTuple):
    """What a query says."""

    text: str
    node: Node
    where: str
    """The condition on metadata after `::`, in the grammar of `--where`."""


def is_cql(text: str) -> bool:
    """Whether it begins as a query does, and as no word that one looks for."""
    return re.match(r"[\s(]*[\[\"“]", text) is not None


_GRAMMAR = r"""
start: pattern WITHIN? WHERE?
pattern: sequence ("|" sequence)*  -> choice
sequence: repeated+
?repeated: atom
    | atom "?"  -> optional
    | atom "*"  -> any_number
    | atom "+"  -> some
    | atom "{" NUMBER "}"  -> exactly
    | atom "{" NUMBER "," NUMBER? "}"  -> between
    | atom "{" "," NUMBER "}"  -> at_most
?atom: STRING FLAGS?  -> plain
    | "[" [test] "]"  -> token
    | "(" pattern ")"
test: all_of ("|" all_of)*  -> either
all_of: single ("&" single)*  -> every
?single: "!" single  -> negated
    | "(" test ")"
    | NAME OPERATOR STRING FLAGS?  -> comparison
WITHIN: /within\s+(<s\s*\/>|s\b)/
WHERE: /::.*/s
STRING: /"(\\.|[^"\\])*"|'(\\.|[^'\\])*'|“[^”]*”/s
FLAGS: /%\s*\w+/
NAME: /[^\W\d][\w-]*/
OPERATOR: "=" | "!="
NUMBER: /\d+/
%ignore /\s+/
"""


@cache
def _parser() -> Any:
    with extra_needed_for("CQL"):
        import lark

    @lark.v_args(inline=True)
    class Build(lark.Transformer):  # type: ignore[type-arg]
        """What a query says, made while it is read: so no depth of it fills a stack."""

        def comparison(self, name: Any, operator: Any, value: Any, flags: Any = None) -> Test:
            is_negated = operator == "!="
            return replace(_test(str(name), value, flags, name.start_pos), is_negated=is_negated)

        def plain(self, value: Any, flags: Any = None) -> Test:
            return _test(WORD, value, flags, value.start_pos)

        def token(self, test: WordTest | None) -> WordTest:
            return Every() if test is None else test

        def negated(self, part: WordTest) -> WordTest:
            return Not(part)

        def every(self, *parts: WordTest) -> WordTest:
            return parts[0] if len(parts) == 1 else Every(parts)

        def either(self, *parts: WordTest) -> WordTest:
            return parts[0] if len(parts) == 1 else Either(parts)

        def sequence(self, *parts: Node) -> Node:
            return parts[0] if len(parts) == 1 else InOrder(parts)

        def choice(self, *parts: Node) -> Node:
            words = [part for part in parts if isinstance(part, WordTest)]
            if len(words) < len(parts):
                return Choice(parts)
            # One word of several kinds is one word; and if one kind is any word, it is any word.
            return Every() if Every() in words else self.either(*words)

        def optional(self, part: Node) -> Node:
            return Repeat(part, 0, 1)

        def any_number(self, part: Node) -> Node:
            return Repeat(part, 0, None)

        def some(self, part: Node) -> Node:
            return Repeat(part, 1, None)

        def exactly(self, part: Node, number: Any) -> Node:
            return Repeat(part, _count(number), _count(number))

        def at_most(self, part: Node, most: Any) -> Node:
            return Repeat(part, 0, _count(most))

        def between(self, part: Node, least: Any, most: Any = None) -> Node:
            if most is not None and _count(least) > _count(most):
                values: dict[str, object] = {"least": str(least), "most": str(most)}
                raise _RefusedError(least.start_pos, "order", values)
            return Repeat(part, _count(least), None if most is None else _count(most))

        def start(self, node: Node, *rest: Any) -> tuple[Node, str]:
            where = next((str(each) for each in rest if each.type == "WHERE"), "")
            return node, where.removeprefix("::").strip()

    # `maybe_placeholders`: [test] is None where nothing is between the brackets.
    return lark.Lark(_GRAMMAR, parser="lalr", transformer=Build(), maybe_placeholders=True)


class _RefusedError(Exception):
    """What is wrong, before it is known in which text."""

    def __init__(self, at: int, key: str, values: dict[str, object] | None = None) -> None:
        super().__init__(key)
        self.at, self.sentence = at, (key, values or {})


def _count(number: str) -> int:
    return int(number) if len(number) < 7 else 10**6


def _test(attribute: str, value: Any, flags: Any, at: int) -> Test:
    chosen = "" if flags is None else flags[1:].strip()
    if unknown := chosen.strip("cl"):
        raise _RefusedError(flags.start_pos, "flag", {"flag": f"%{unknown}"})
    pattern = str(value)[1:-1]
    if "l" in chosen:
        pattern = re.escape(re.sub(r"\\([\"'])", r"\1", pattern))
    if not _is_valid(pattern):
        raise _RefusedError(value.start_pos, "bad_pattern", {"pattern": str(value)})
    return Test(attribute, pattern, at, value.start_pos, ignores_case="c" in chosen)


@lru_cache(1_000)
def _is_valid(pattern: str) -> bool:
    try:
        check_pattern(pattern)
    except (pa.ArrowInvalid, UnicodeError):
        return False
    return True


def check_pattern(pattern: str) -> None:
    """Have Arrow refuse what is no regular expression."""
    # By itself first: in brackets, "a)|(b" would be another pattern.
    for each in (pattern, whole(pattern)):
        pc.match_substring_regex(pa.array([""]), each)


def parse_query(text: str) -> ParsedQuery:
    """What a user wrote, understood; nothing is asked of a corpus yet."""
    if len(text) > MAX_CHARACTERS:
        values: dict[str, object] = {"most": f"{MAX_CHARACTERS:,}", "length": f"{len(text):,}"}
        raise QueryError.of(text, 0, ("too_long", values))
    parser = _parser()
    import lark

    try:
        _check_depth(text)
        node, where = parser.parse(text)
        size = _size(node)
        if size > MAX_POSITIONS:
            told: dict[str, object] = {"size": f"{size:,}", "most": MAX_POSITIONS}
            raise _RefusedError(0, "too_large", told)
    except lark.exceptions.VisitError as error:
        if not isinstance(error.orig_exc, _RefusedError):
            raise
        raise _refusal(text, error.orig_exc) from None
    except _RefusedError as error:
        raise _refusal(text, error) from None
    except lark.exceptions.UnexpectedCharacters as error:
        raise _misread(text, error.pos_in_stream or 0, error.allowed or set()) from None
    except lark.exceptions.UnexpectedToken as error:
        at = len(text) if error.token.type == "$END" else error.token.start_pos
        raise _misread(text, at, error.accepts or error.expected) from None
    return ParsedQuery(text, node, where)


def _refusal(text: str, error: _RefusedError) -> QueryError:
    return QueryError.of(text, error.at, error.sentence)


def _misread(text: str, at: int, expected: set[str]) -> QueryError:
    """What was expected in the place of this character."""
    if text[at : at + 1] in ('"', "'", "“"):
        key = "quote"
    elif "OPERATOR" in expected:
        key = "operator"
    elif "NUMBER" in expected:
        key = "numbers"
    elif "NAME" in expected:
        key = "test"
    elif "RSQB" in expected or "AMPERSAND" in expected:
        key = "in_token"
    elif "LSQB" in expected:
        key = "more" if "QMARK" in expected or "$END" in expected else "token"
    else:
        key = "value" if "STRING" in expected else "more"
    if text[at : at + 1] == ")" or ("RPAR" in expected and at == len(text) and key == "more"):
        key = "nesting"
    return QueryError.of(text, at, (key, {}))


_OUTSIDE = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|“[^”]*”|::.*|([()!])", re.DOTALL)


def _check_depth(text: str) -> None:
    """Refuse what would be too deep to be worked on by functions that call themselves."""
    depth = 0
    for found in _OUTSIDE.finditer(text):
        depth += {"(": 1, ")": -1, "!": 0}.get(found[1] or "", 0)
        if depth > MAX_DEPTH or text.startswith("!" * (MAX_DEPTH + 1), found.start()):
            raise _RefusedError(found.start(), "too_deep", {"most": MAX_DEPTH})


def _size(node: Node) -> int:
    """How many words it has with all repetitions written out."""
    match node:
        case Repeat():
            return _size(node.part) * max(1, node.least, node.most or 0)
        case InOrder() | Choice():
            return sum(map(_size, node.parts))
        case _:
            return 1


def compile_query(
    query: ParsedQuery,
    attributes: Sequence[str],
    read_senses: Callable[[], Sequence[KeptSenses]] = tuple,
) -> "TokenPattern":
    """What finds a query in a corpus with these word attributes, and these senses beside it.

    An attribute of the corpus's own that is called `sense` goes before what is kept.
    """
    names = (WORD, *attributes)
    senses: dict[Test, Integers] = {}
    for test in _tests_of(query.node):
        if test.attribute == SENSE and SENSE not in names:
            senses[test] = _places_meeting(test, read_senses(), query.text)
        elif test.attribute not in names:
            near = get_close_matches(test.attribute, names, n=1)
            mean: list[Sentence] = [("did_you_mean", {"choices": near})] if near else []
            told: Sentence = ("no_attribute", {"name": test.attribute, "names": ", ".join(names)})
            raise QueryError.of(query.text, test.at, told, *mean)
    try:
        return TokenPattern(_automaton(query.node), tuple(_required(query.node)), senses)
    except _RefusedError as error:
        raise _refusal(query.text, error) from None


def asks_for_senses(text: str) -> bool:
    """Whether a query asks for senses, which may be kept anew while the corpus stays as it is."""
    return any(test.attribute == SENSE for test in _tests_of(parse_query(text).node))


def _places_meeting(test: Test, kept: Sequence[KeptSenses], text: str) -> Integers:
    """(N, 5): the places of all senses whose names match, of whichever words."""
    if not kept:
        raise QueryError.of(text, test.at, ("no_senses", {}))
    names = [name for each in kept for name in each.senses]
    matches = _matching(test, pa.array(names, pa.string()))
    places = [places for each in kept for places in each.senses.values()]
    if not matches.any():
        told = "; ".join(f"{each.word}: {', '.join(each.senses)}" for each in kept)
        values: dict[str, object] = {"pattern": test.pattern, "names": told}
        raise QueryError.of(text, test.value_at, ("no_sense", values))
    return np.concatenate([places[number] for number in np.flatnonzero(matches)])


def _tests_of(node: Node) -> Iterator[Test]:
    match node:
        case Test():
            yield node
        case Not() | Repeat():
            yield from _tests_of(node.part)
        case _:
            for part in node.parts:
                yield from _tests_of(part)


def _required(node: Node) -> frozenset[WordTest]:
    """What at least one word of every match must meet."""
    match node:
        case Every(()):
            return frozenset()
        case Test() | Not() | Every() | Either():
            return frozenset((node,))
        case Repeat():
            return _required(node.part) if node.least else frozenset()
        case InOrder():
            return frozenset().union(*map(_required, node.parts))
        case Choice():
            first, *others = map(_required, node.parts)
            return first.intersection(*others)


@dataclass(frozen=True)
class Automaton:
    """Glushkov's: a position for each word of a query; which may come first, next and last."""

    tests: tuple[WordTest, ...]
    first: tuple[int, ...]
    last: frozenset[int]
    next: tuple[tuple[int, ...], ...]


class _Part(NamedTuple):
    """A part of an automaton: whether it may be left out, its first and its last positions."""

    is_optional: bool
    first: frozenset[int]
    last: frozenset[int]


_NOTHING = _Part(True, frozenset(), frozenset())


def _automaton(node: Node) -> Automaton:
    tests: list[WordTest] = []
    following: list[set[int]] = []

    def connect(last: frozenset[int], first: frozenset[int]) -> None:
        for position in last:
            following[position] |= first

    def after(one: _Part, other: _Part) -> _Part:
        connect(one.last, other.first)
        return _Part(
            one.is_optional and other.is_optional,
            one.first | other.first if one.is_optional else one.first,
            one.last | other.last if other.is_optional else other.last,
        )

    def build(node: Node) -> _Part:
        match node:
            case InOrder():
                found = _NOTHING
                for part in node.parts:
                    found = after(found, build(part))
                return found
            case Choice():
                parts = [build(part) for part in node.parts]
                first = frozenset[int]().union(*(part.first for part in parts))
                last = frozenset[int]().union(*(part.last for part in parts))
                return _Part(any(part.is_optional for part in parts), first, last)
            case Repeat():
                return repeat(node)
            case _:
                tests.append(node)
                following.append(set())
                here = frozenset((len(tests) - 1,))
                return _Part(False, here, here)

    def repeat(node: Repeat) -> _Part:
        copies = [build(node.part) for _ in range(max(1, node.least, node.most or 0))]
        if node.most == 0:
            return _NOTHING
        if node.most is None:
            connect(copies[-1].last, copies[-1].first)
        # From the right: x{1,3} is x(x(x)?)?, in which each x leads to one other only.
        found = _NOTHING
        for number, copy in reversed(list(enumerate(copies))):
            found = after(copy, found)
            if number >= node.least:
                found = found._replace(is_optional=True)
        return found

    whole = build(node)
    if sum(map(len, following)) > MAX_STEPS:
        raise _RefusedError(0, "too_many_ways")
    return Automaton(
        tuple(tests),
        tuple(sorted(whole.first)),
        whole.last,
        tuple(tuple(sorted(each)) for each in following),
    )


def whole(pattern: str) -> str:
    """What matches only as a whole."""
    return f"\\A(?:{pattern})\\z"


_PLAIN = re.compile(r"[^.^$*+?()\[\]{}|\\]*")
_FEW = 8
_NO_USES = np.empty((0, 3), np.int64)
Lengths = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TokenPattern:
    """A query, ready to be looked for."""

    automaton: Automaton
    required: tuple[WordTest, ...]
    """What at least one word of each match meets."""
    senses: Mapping[Test, Integers]
    """(N, 5) the places of the senses that each test of them is about."""

    def find(self, words: GroupWords, place: tuple[int, int]) -> Integers:
        """(N, 3): row of the sentence, first word, the one after the last; in order.

        `place`: the words' shard, and the number of their row group there.
        """
        here = {test: places_in(places, place) for test, places in self.senses.items()}
        tested = _TestedWords(words, here)
        if not self.automaton.first or not all(map(tested.may_hold, self.required)):
            return _NO_USES  # without reading the words
        if len(self.automaton.tests) == 1 and not self.automaton.next[0]:
            at = np.flatnonzero(tested.holds(self.automaton.tests[0]))
            rows = np.searchsorted(words.offsets, at, side="right") - 1
            begins = at - words.offsets[rows]
            return np.stack([rows, begins, begins + 1], axis=1)
        has_all = np.ones(len(words.offsets) - 1, np.bool_)
        for test in self.required:
            at = np.flatnonzero(tested.holds(test))
            has = np.zeros(len(has_all), np.bool_)
            has[np.searchsorted(words.offsets, at, side="right") - 1] = True
            has_all &= has
        rows = np.flatnonzero(has_all)
        return self._in_sentences(rows, tested) if len(rows) else _NO_USES

    def _in_sentences(self, rows: Integers, tested: "_TestedWords") -> Integers:
        """The matches in these sentences."""
        offsets = tested.words.offsets
        lengths = np.diff(offsets)[rows]
        has_loops = any(other <= at for at, n in enumerate(self.automaton.next) for other in n)
        if has_loops:
            order = np.argsort(-lengths, kind="stable")  # the longest first
            found = self._by_columns(offsets[rows[order] + 1] - 1, lengths[order], tested)
        else:
            found = self._by_positions(offsets[rows], lengths, tested)
        return _outermost(found, offsets)

    def _by_positions(
        self, begins: Integers, lengths: Integers, tested: "_TestedWords"
    ) -> Integers:
        """(N, 2) the longest match from each word: where it begins, how long it is."""
        ends = np.cumsum(lengths)
        tokens = np.arange(ends[-1]) + np.repeat(begins - ends + lengths, lengths)
        reached: dict[int, Lengths] = {}
        holds = {test: tested.holds(test, tokens) for test in set(self.automaton.tests)}
        for position in reversed(range(len(self.automaton.tests))):
            after = []
            for other in self.automaton.next[position]:
                behind = np.empty_like(reached[other])
                behind[:-1] = reached[other][1:]
                behind[ends - 1] = 0  # the next word is of the next sentence
                after.append(behind)
            fits = holds[self.automaton.tests[position]]
            reached[position] = _going_on(fits, after, position in self.automaton.last)
        longest = reduce(np.maximum, (reached[position] for position in self.automaton.first))
        at = np.flatnonzero(longest)
        return np.stack([tokens[at], longest[at]], axis=1)

    def _by_columns(self, lasts: Integers, lengths: Integers, tested: "_TestedWords") -> Integers:
        """The same, of sentences in the order of their lengths, by their last words."""
        # All last words, then all second to last, and so on: of fewer and fewer sentences.
        sizes = np.searchsorted(-lengths, -np.arange(lengths[0])).tolist()
        tokens = np.concatenate([lasts[:size] - back for back, size in enumerate(sizes)])
        tests = self.automaton.tests
        holds = {test: tested.holds(test, tokens) for test in set(tests)}
        reached = [np.zeros(len(lasts), np.int32) for _ in tests]
        found, end = [], 0
        for size in sizes:
            begin, end = end, end + size
            reached = [
                _going_on(
                    holds[test][begin:end],
                    [reached[other][:size] for other in self.automaton.next[position]],
                    position in self.automaton.last,
                )
                for position, test in enumerate(tests)
            ]
            longest = reduce(np.maximum, (reached[position] for position in self.automaton.first))
            at = np.flatnonzero(longest)
            found.append(np.stack([tokens[begin + at], longest[at]], axis=1))
        return np.concatenate(found)


def _going_on(fits: Mask, after: Sequence[Lengths], is_last: bool) -> Lengths:
    """How long matches are that go on with these words, if they fit; 0 for none.

    `after`: the same, of the words behind them, for each position that may follow.
    """
    if not after:
        return fits.astype(np.int32)
    longest: Lengths = reduce(np.maximum, after)
    return (longest + np.int32(1)) * (fits if is_last else fits & (longest > 0))


def _outermost(found: Integers, offsets: Integers) -> Integers:
    """Of matches (first word, length) those that lie within no other: (N, 3), in order."""
    begins, lengths = found[np.argsort(found[:, 0])].T
    ends = begins + lengths
    is_outermost = ends > np.maximum.accumulate(np.concatenate([[-1], ends]))[:-1]
    begins, ends = begins[is_outermost], ends[is_outermost]
    rows = np.searchsorted(offsets, begins, side="right") - 1
    return np.stack([rows, begins - offsets[rows], ends - offsets[rows]], axis=1)


class _TestedWords:
    """The words of a row group, and which of them meet a test."""

    def __init__(self, words: GroupWords, senses: Mapping[Test, Integers]) -> None:
        self.words = words
        self._senses = senses  # (N, 3) the uses here
        self._tables: dict[WordTest, Mask] = {}

    def may_hold(self, test: WordTest) -> bool:
        """Whether a word here may meet it, as far as distinct values and uses of senses tell."""
        if isinstance(test, Test) and test in self._senses:
            return test.is_negated or len(self._senses[test]) > 0
        if self._is_told_by_a_table(test):
            return bool(self._table(test).any())
        return not isinstance(test, Every) or all(map(self.may_hold, test.parts))

    def holds(self, test: WordTest, tokens: Integers | slice = slice(None)) -> Mask:
        """Which of these words meet it."""
        if self._is_told_by_a_table(test):
            codes = self._values(*_attributes(test)).codes
            return _looked_up(self._table(test), codes[tokens])
        match test:
            case Test():
                rows, begins, ends = self._senses[test].T
                first, size = self.words.offsets[rows], len(self.words.codes)
                has_sense = covered(first + begins, first + ends, size)[tokens]
                return ~has_sense if test.is_negated else has_sense
            case Not():
                return ~self.holds(test.part, tokens)
            case Every(()):
                return np.ones(len(self.words.codes[tokens]), np.bool_)
            case Every() | Either():
                return _combined(test, [self.holds(part, tokens) for part in test.parts])
        raise AssertionError(test)

    def _is_told_by_a_table(self, test: WordTest) -> bool:
        """Whether it is about the values of one attribute."""
        is_of_senses = any(each in self._senses for each in _tests_of(test))
        return not is_of_senses and len(_attributes(test)) == 1

    def _values(self, attribute: str) -> GroupWords:
        return self.words if attribute == WORD else self.words.attribute(attribute)

    def _table(self, test: WordTest) -> Mask:
        """(V,) which values of its one attribute meet it."""
        if test not in self._tables:
            match test:
                case Test():
                    found = _values_meeting(test, self._values(test.attribute))
                case Not():
                    found = ~self._table(test.part)
                case _:
                    found = _combined(test, [self._table(part) for part in test.parts])
            self._tables[test] = found
        return self._tables[test]


def _attributes(test: WordTest) -> set[str]:
    return {each.attribute for each in _tests_of(test)}


def _combined(test: Every | Either, masks: Sequence[Mask]) -> Mask:
    combine = np.logical_and if isinstance(test, Every) else np.logical_or
    found: Mask = combine.reduce(masks)
    return found


def _values_meeting(test: Test, values: GroupWords) -> Mask:
    if _PLAIN.fullmatch(test.pattern) and not test.ignores_case:
        found = np.zeros(len(values), np.bool_)
        found[values.find([test.pattern])] = True
    else:
        found = _matching(test, values.to_arrow())
    return ~found if test.is_negated else found


def _matching(test: Test, texts: Any) -> Mask:
    """Which of these texts the pattern matches as a whole."""
    found = pc.match_substring_regex(texts, whole(test.pattern), ignore_case=test.ignores_case)
    is_match: Mask = found.to_numpy(zero_copy_only=False)
    return is_match


def _looked_up(table: Mask, codes: npt.NDArray[Any]) -> Mask:
    """The value of the table for each code."""
    for is_rare in (True, False):
        if len(few := np.flatnonzero(table == is_rare)) <= _FEW:
            found = is_one_of(codes, few.tolist())
            return found if is_rare else ~found
    looked_up: Mask = table[codes]
    return looked_up


def is_one_of(codes: npt.NDArray[Any], numbers: Sequence[int]) -> Mask:
    """Which of these codes are one of the numbers."""
    if len(numbers) > _FEW:
        return np.isin(codes, numbers)
    # Comparing all codes with one is ten times as fast as looking each of them up.
    found = np.zeros(len(codes), np.bool_)
    for number in numbers:
        found |= codes == number
    return found
