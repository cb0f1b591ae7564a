"""A query in CQL finds what a matcher finds that tries every way in every sentence."""

import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from corpora import prepared

from polyseme.commands.query import QueryConfig, run
from polyseme.config import build_flat
from polyseme.errors import ConfigError
from polyseme.meanings.concordance.cql import MAX_CHARACTERS, QueryError, parse_query
from polyseme.meanings.concordance.kept_senses import keep_senses
from polyseme.meanings.concordance.search import Query
from polyseme.meanings.concordance.uses import NoUseError, find_uses
from polyseme.text.corpus import Corpus

Word = dict[str, Any]
Matcher = Callable[[list[Word], int], set[int]]
"""Where a match that begins at a word may end."""
VALUES = {
    "word": ["a", "b", "ab", "Ab", "ba", "走", "a.c"],
    "lemma": ["a", "b", "c", "_"],
    "upos": ["NOUN", "VERB", "_"],
}
SENSES = "senses"  # of a word, the names of the senses that cover it
PATTERNS = {
    "word": ["a", "b", "a.*", "[ab]+", "ab|ba", "走", "x", ".", "a.c"],
    "lemma": ["a", "b|c", "", "[^a]*"],
    "upos": ["NOUN", "V.*", "NOUN|VERB"],
    "sense": ["river", "riv.*", "money|river", ".*", "Sand", "sand%"],
}


def make_corpus(folder: Path, sentences: list[list[Word]]) -> Corpus:
    lines = ['<text id="t" year="1850">']
    for number, sentence in enumerate(sentences):
        if number == len(sentences) // 2:
            lines += ["</text>", '<text id="u" year="1900">']
        lines += ["<s>", *("\t".join(word[name] for name in VALUES) for word in sentence), "</s>"]
    folder.mkdir(exist_ok=True)
    (folder / "texts.vrt").write_text("\n".join([*lines, "</text>"]) + "\n", encoding="utf-8")
    return prepared(
        folder / "texts.vrt",
        folder / "corpus",
        segmenter="whitespace",
        meta=("year",),
        word_attributes=("lemma", "upos"),
        shard_bytes=4096,
    )


@pytest.fixture(scope="module")
def sentences() -> list[list[Word]]:
    chance = random.Random(1)
    return [
        [{name: chance.choice(values) for name, values in VALUES.items()} for _ in range(length)]
        for length in (chance.choice((1, 2, 3, 5, 8, 13)) for _ in range(80))
    ]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, sentences: list[list[Word]]) -> Corpus:
    corpus = make_corpus(tmp_path_factory.mktemp("cql"), sentences)
    for word, names in (("a", ("river", "money")), ("ab", ("river", "Sand")), ("two", ("sand%",))):
        keep(corpus, word, names, sentences)
    return corpus


def keep(corpus: Corpus, word: str, names: tuple[str, ...], sentences: list[list[Word]]) -> None:
    """Keep senses of some uses of a word, or of any two words; each word there knows its own."""
    chance = random.Random(word)
    uses = find_uses(corpus, Query.of(cql="[][]") if word == "two" else Query.of(word))
    given = [chance.choice((*names, "")) for _ in range(len(uses))]
    keep_senses(corpus, word, uses.places, given, None, Path("log.jsonl"))
    order = dict.fromkeys(find_uses(corpus, Query.of(cql="[]")).sentence_ids())
    number_of = {id_: number for number, id_ in enumerate(order)}
    for id_, (begin, end), name in zip(uses.sentence_ids(), uses.spans, given, strict=True):
        for each in sentences[number_of[id_]][begin:end]:
            each[SENSES] = {*each.get(SENSES, ()), name} - {""}


@dataclass
class RandomQuery:
    """Draws queries, and for each a matcher that works word by word."""

    chance: random.Random

    def test(self, depth: int = 2) -> tuple[str, Callable[[Word], bool]]:
        kind = self.chance.choice(("one", "one", "one", "and", "or", "not")) if depth else "one"
        if kind == "one":
            name = self.chance.choice(list(PATTERNS))
            pattern, is_equal = self.chance.choice(PATTERNS[name]), self.chance.random() < 0.7
            flags = self.chance.choice(("", "", "%c", "%l", " %cl"))
            if name == "sense" and pattern not in ("Sand", "sand%"):  # as it is, none is called so
                flags = flags.replace("l", "c")
            found = re.escape(pattern) if "l" in flags else pattern
            wanted = re.compile(found, re.IGNORECASE if "c" in flags else 0)
            text = f'{name} {"=" if is_equal else "!="} "{pattern}"{flags}'
            if name == "sense":
                return (
                    text,
                    lambda word: any(map(wanted.fullmatch, word.get(SENSES, ()))) == is_equal,
                )
            return (
                text,
                lambda word: bool(wanted.fullmatch(word[name].replace("_", ""))) == is_equal,
            )
        (first, one), (second, other) = self.test(depth - 1), self.test(depth - 1)
        if kind == "not":
            return f"!({first})", lambda word: not one(word)
        if kind == "and":
            return f"({first}) & {second}" if "|" not in second else f"({first}) & ({second})", (
                lambda word: one(word) and other(word)
            )
        return f"({first} | {second})", lambda word: one(word) or other(word)

    def query(self, depth: int = 3) -> tuple[str, Matcher]:
        kind = self.chance.choice(("word", "word", "in order", "in order", "choice", "repeat"))
        if kind == "word" or not depth:
            return self.word()
        parts = [self.query(depth - 1) for _ in range(self.chance.choice((2, 2, 3)))]
        texts, matchers = [f"({text})" for text, _ in parts], [matcher for _, matcher in parts]
        if kind == "choice":
            return " | ".join(texts), lambda s, at: set().union(*(m(s, at) for m in matchers))
        if kind == "in order":
            return " ".join(texts), lambda s, at: in_order(matchers, s, at)
        shown, least, most = self.chance.choice(
            [
                ("?", 0, 1),
                ("*", 0, 99),
                ("+", 1, 99),
                ("{2}", 2, 2),
                ("{0,2}", 0, 2),
                ("{1,}", 1, 99),
            ]
        )
        return f"{texts[0]}{shown}", lambda s, at: repeated(matchers[0], least, most, s, at)

    def word(self) -> tuple[str, Matcher]:
        if self.chance.random() < 0.2:
            return "[]", lambda s, at: {at + 1} if at < len(s) else set()
        if self.chance.random() < 0.3:
            plain = self.chance.choice(PATTERNS["word"])
            return (
                f'"{plain}"',
                lambda s, at: (
                    {at + 1} if at < len(s) and re.fullmatch(plain, s[at]["word"]) else set()
                ),
            )
        text, holds = self.test()
        return f"[{text}]", lambda s, at: {at + 1} if at < len(s) and holds(s[at]) else set()


def in_order(matchers: list[Matcher], sentence: list[Word], at: int) -> set[int]:
    ends = {at}
    for matcher in matchers:
        ends = set().union(*(matcher(sentence, end) for end in ends))
    return ends


def repeated(matcher: Matcher, least: int, most: int, sentence: list[Word], at: int) -> set[int]:
    found, ends = ({at} if least == 0 else set()), {at}
    for number in range(1, min(most, len(sentence) + least) + 1):
        ends = set().union(*(matcher(sentence, end) for end in ends))
        found |= ends if number >= least else set()
    return found


def spans(matcher: Matcher, sentence: list[Word]) -> list[tuple[int, int]]:
    """The longest match from each word, of these those within no other."""
    longest = [(at, max(matcher(sentence, at), default=0)) for at in range(len(sentence))]
    found = [(begin, end) for begin, end in longest if end > begin]
    return [
        one
        for one in found
        if not any(o[0] <= one[0] and one[1] <= o[1] for o in found if o != one)
    ]


@pytest.mark.parametrize("number", [200, pytest.param(2_000, marks=pytest.mark.slow)])
def test_random_queries_find_what_a_matcher_finds(
    corpus: Corpus, sentences: list[list[Word]], number: int
) -> None:
    drawn = RandomQuery(random.Random(7))
    compared = num_found = refused = 0
    while compared < number:
        text, matcher = drawn.query()
        expected = [
            (number, begin, end)
            for number, sentence in enumerate(sentences)
            for begin, end in spans(matcher, sentence)
        ]
        try:
            uses = find_uses(corpus, Query.of(cql=text))
        except NoUseError:
            assert not expected, text
        except QueryError as error:
            if error.sentences[0][0] not in ("too_large", "too_many_ways"):
                raise
            refused += 1
            continue
        else:
            numbers = [int(each.rsplit(":", 2)[-2]) for each in uses.sentence_ids()]
            order = {place: n for n, place in enumerate(sorted(set(numbers)))}
            assert len(order) == len({n for n, _, _ in expected}), text
            assert [tuple(span) for span in uses.spans.tolist()] == [e[1:] for e in expected], text
        compared += 1
        num_found += bool(expected)
    assert num_found > number / 2
    assert refused < number / 10


def test_a_sense_is_true_at_the_words_of_its_uses_whatever_word_they_are_of(
    corpus: Corpus, sentences: list[list[Word]]
) -> None:
    def found(cql: str) -> int:
        return len(find_uses(corpus, Query.of(cql=cql)))

    words = [word for sentence in sentences for word in sentence]
    of_river = sum("river" in word.get(SENSES, ()) for word in words)
    assert found('[sense="river"]') == of_river > 0
    assert found('[sense!="river"]') == found('[!(sense="river")]') == len(words) - of_river
    assert found('[sense="sand"%c]') == sum("Sand" in word.get(SENSES, ()) for word in words)
    assert found('[sense=".*"]') == sum(bool(word.get(SENSES)) for word in words)
    assert found('[sense="river" & word!="a"]') < of_river


def test_a_sense_that_nobody_kept_is_told_with_those_that_are(
    corpus: Corpus, tmp_path: Path
) -> None:
    with pytest.raises(QueryError, match=r"matches rivers\. Kept: a: money, river; ") as caught:
        find_uses(corpus, Query.of(cql='"a" [sense!="rivers"]'))
    assert caught.value.at == 12
    other = make_corpus(tmp_path, [[{"word": "a", "lemma": "a", "upos": "NOUN"}]])
    with pytest.raises(QueryError, match="No senses are kept") as caught:
        find_uses(other, Query.of(cql='"a" [sense="river"]'))
    assert caught.value.at == 5


def test_what_a_corpus_itself_calls_sense_goes_before_what_is_kept(tmp_path: Path) -> None:
    text = tmp_path / "texts.vrt"
    text.write_text("<s>\nbank\triver\nbank\tmoney\n</s>\n", encoding="utf-8")
    corpus = prepared(text, tmp_path / "corpus", segmenter="whitespace", word_attributes=("sense",))
    uses = find_uses(corpus, "bank")
    keep_senses(corpus, "bank", uses.places, ["", "river"], None, Path("log.jsonl"))
    assert find_uses(corpus, Query.of(cql='[sense="river"]')).spans.tolist() == [[0, 1]]


def test_a_query_of_one_word_is_what_a_search_for_the_word_is(corpus: Corpus) -> None:
    query, word = find_uses(corpus, Query.of(cql='"ab"%c')), find_uses(corpus, "ab")
    assert query.spans.tolist() == word.spans.tolist()
    assert query.sentence_ids() == word.sentence_ids()


def test_metadata_are_asked_for_in_the_query_or_beside_it(corpus: Corpus) -> None:
    every = find_uses(corpus, Query.of(cql='[upos="NOUN"]+'))
    early = find_uses(corpus, Query.of(cql='[upos="NOUN"]+ within <s/> :: year<1900'))
    beside = find_uses(corpus, Query.of(cql='[upos="NOUN"]+'), where="year>=1900")
    assert 0 < len(early) < len(every)
    assert len(early) + len(beside) == len(every)
    assert set(early.metadata("year")) == {"1850"}


@pytest.mark.parametrize(
    ("text", "at", "key"),
    [
        ('"a', 0, "quote"), ("[word=a]", 6, "value"), ("[word]", 5, "operator"),
        ("[lemma='a' &]", 12, "test"), ('[word="a"', 9, "in_token"), ('"a"{x}', 4, "numbers"),
        ("", 0, "token"), ('"a" | ', 6, "token"), ('"a" b', 4, "more"), ('("a"', 4, "nesting"),
        ('"a")', 3, "nesting"), ('"a"%x', 3, "flag"), ('"("', 0, "bad_pattern"),
        ('[word="a)|(b"]', 6, "bad_pattern"), ('"a"{3,1}', 4, "order"), ("“走", 0, "quote"),
        ('[upos="A" lemma="b"]', 10, "in_token"), ('"a" within <p/>', 4, "more"),
        ('[word="(?=a)"]', 6, "bad_pattern"),
    ],
)  # fmt: skip
def test_an_error_points_at_the_character(text: str, at: int, key: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_query(text)
    assert (caught.value.at, caught.value.sentences[0][0]) == (at, key)


def test_an_attribute_that_is_not_there_is_told_with_those_that_are(corpus: Corpus) -> None:
    with pytest.raises(QueryError, match=r"no attribute lema .* Did you mean lemma\?") as caught:
        find_uses(corpus, Query.of(cql='"a" [lema="b"]'))
    assert caught.value.at == 5


HOSTILE = {
    "nested repeats": "(" * 40 + '"a"' + "*)" * 40 + '"b"',
    "nested counts": '((("a"{0,99}){0,99}){0,99}){0,99}',
    "optional in optional": "((([]?){5}){5}){5}",
    "a huge count": "[]{0,99999999999999999999}",
    "a million alternatives": "|".join(['"a"'] * 1_000_000),
    "as many as are read": "|".join(['("a" "b")'] * (MAX_CHARACTERS // 10)),
    "deep": "(" * 9_000 + '"a"' + ")" * 9_000,
    "deep in a word": "[" + "!" * 15_000 + 'word="a"]',
    "a pattern of patterns": '"(((a{1,99}){1,99}){1,99}){1,99}"',
    "no text": '"\ud800"',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_query_is_refused_or_answered_at_once(name: str, corpus: Corpus) -> None:
    parse_query('"a"')  # the grammar is read once
    began = time.process_time()
    try:
        find_uses(corpus, Query.of(cql=HOSTILE[name]))
    except (ConfigError, NoUseError):
        assert name != "nested repeats"
    assert time.process_time() - began < 1


def test_the_command_shows_counts_and_writes(corpus: Corpus, tmp_path: Path) -> None:
    given: dict[str, Any] = {"cql": '[upos="NOUN"] "b"', "corpus": corpus.folder}
    result = run(build_flat(QueryConfig, {**given, "by": "year", "out": tmp_path / "found.csv"}))
    assert sum(row.uses for row in result.frequencies) == result.num_found > 0
    written = (tmp_path / "found.csv").read_text(encoding="utf-8").splitlines()
    assert len(written) == 1 + result.num_found
