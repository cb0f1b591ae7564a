"""Uses are found where a plain loop over all sentences finds them, and hold what stands there."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from required import need_package

from meanings.making import make_corpus, make_novels
from polyseme.errors import CorpusError, InputError
from polyseme.meanings.concordance import search
from polyseme.meanings.concordance.search import Query
from polyseme.meanings.concordance.uses import NoUseError, Uses, find_uses
from polyseme.storage.parquet import ParquetReader
from polyseme.text import shards
from polyseme.text.corpus import Corpus, words_of

HOSTILE = ["\x1b[31mred", "<script>alert(1)</script>", "=1+1", "@cmd", "\u202eevil", "a\ufeffb"]


@pytest.fixture(scope="module")
def novels(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make_novels(tmp_path_factory.mktemp("novels"))


def places(uses: Uses) -> list[tuple[str, int, int]]:
    return [(use.text, use.begin, use.end) for use in uses]


def test_texts_of_few_sentences_are_remembered_and_the_others_read_again(
    novels: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = places(find_uses(novels, "bank"))
    uses = find_uses(novels, "bank")
    monkeypatch.setattr("polyseme.meanings.concordance.sentence_table._REMEMBERED", 2)
    for number in (0, 5, 1, 4, 0, 3, 2):
        use = uses[number]
        assert (use.text, use.begin, use.end) == expected[number]
        assert uses._table.places is not None
        per_group = np.unique(uses._table.places[:, :2], axis=0, return_counts=True)[1].max()
        assert len(uses._table._details) <= max(2, per_group)


def test_a_word_is_found_in_any_case_and_in_the_order_of_the_corpus(novels: Corpus) -> None:
    uses = find_uses(novels, "bank")
    assert [use.form for use in uses] == ["bank", "Bank", "BANK", "bank", "bank", "bank"]
    assert uses.spans.tolist() == [[5, 6], [1, 2], [0, 1], [2, 3], [4, 5], [2, 3]]
    assert uses.metadata("document") == ["d0", "d0", "d1", "d1", "d1", "d2"]


def test_case_counts_if_asked(novels: Corpus) -> None:
    uses = find_uses(novels, Query(("Bank",), is_case_sensitive=True))
    assert [use.text for use in uses] == ["The Bank was closed ."]


def test_a_use_has_its_sentence_and_its_metadata(novels: Corpus) -> None:
    use = find_uses(novels, "banks")[0]
    assert use.words == ("Nobody", "came", "to", "the", "banks", ".")
    assert (use.begin, use.end, use.form) == (4, 5, "banks")
    assert use.text == "Nobody came to the banks ."
    assert use.starts == (0, 7, 12, 15, 19, 25)
    assert use.document == "d3"
    assert use.sentence_id.startswith("texts.jsonl:")
    assert dict(use.metadata) == {"year": "ca. 1850", "author": "Dickens"}


def test_a_term_of_several_words_is_found_within_a_sentence_only(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, [("the river . Bank on the River bank", {}), ("bank", {})])
    assert [use.form for use in find_uses(corpus, "river bank")] == ["River bank"]
    with pytest.raises(InputError, match="no use of 'bank bank'"):
        find_uses(corpus, "bank bank")  # the last word of a sentence, and the first of the next


def test_conditions_choose_sentences_by_their_metadata(novels: Corpus) -> None:
    before = find_uses(novels, "bank", where=["year<1861"])
    assert set(before.metadata("year")) == {"1850"}
    both = find_uses(novels, "bank", where=["year>=1861", "author=Dickens"])
    assert both.metadata("document") == ["d1", "d1", "d1"]
    assert find_uses(novels, "bank", where=["author!=Dickens", "document!=d0"]).metadata(
        "author"
    ) == [None]
    assert find_uses(novels, "bank", where="year>=1861 and author=Dickens").spans.tolist() == (
        both.spans.tolist()
    )
    either = find_uses(novels, "bank", where="year=1850 or not author~DICK")
    assert set(either.metadata("year")) == {"1850", "1900"}


def test_a_word_without_uses_is_told_with_near_forms(novels: Corpus) -> None:
    with pytest.raises(InputError, match=r"no use of 'bnak'.*bank"):
        find_uses(novels, "bnak")
    with pytest.raises(InputError, match="Its vocabulary has no similar spelling"):
        find_uses(novels, "xylophone")


def test_of_forms_that_are_equally_near_the_most_frequent_comes_first(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, [("A bank . " * 9 + "The beak . Bark book .", {})])
    with pytest.raises(NoUseError) as caught:
        find_uses(corpus, "bnak")
    assert caught.value.near[0] == "bank"


def test_chinese_is_found_as_the_corpus_was_split(tmp_path: Path) -> None:
    documents = [("我吃苹果。苹果公司很大。", {"年": "一八五〇"}), ("没有。", {"年": "一九"})]
    corpus = make_corpus(tmp_path, documents, meta=["年"], language="zh", segmenter="characters")
    uses = find_uses(corpus, "苹果")
    assert places(uses) == [("我吃苹果。", 2, 4), ("苹果公司很大。", 0, 2)]
    assert [use.form for use in uses] == ["苹果", "苹果"]
    assert uses.metadata("年") == ["一八五〇"] * 2
    assert len(find_uses(corpus, "苹果", where=["年=一九"])) == 0


def test_a_form_is_split_as_the_corpus_was_where_it_is_no_word_of_it(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, [("I don't know.", {})], segmenter="spacy")
    assert [use.form for use in find_uses(corpus, "don't know")] == ["don't know"]
    assert find_uses(corpus, "don't").spans.tolist() == [[1, 3]]


@pytest.mark.parametrize("word", HOSTILE[1:4])
def test_hostile_words_are_words(tmp_path: Path, word: str) -> None:
    corpus = make_corpus(tmp_path, [(f"a {word} b", {"m": word})], meta=["m"])
    [use] = find_uses(corpus, word, where=[f"m= {word}"])  # m== is m=
    assert (use.form, use.metadata["m"]) == (word, word)


def test_a_table_in_a_notebook_obeys_nothing_in_it(tmp_path: Path) -> None:
    documents = [(f"x {word} bank", {"m": word}) for word in HOSTILE]
    uses = find_uses(make_corpus(tmp_path, documents, meta=["m"]), "bank")
    html = uses._repr_html_()
    assert "<script" not in html
    assert not set("\x1b\u202e\ufeff") & set(html + repr(uses))


def test_texts_are_read_only_when_they_are_looked_at(
    novels: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Sequence[str] | None] = []
    plain = ParquetReader.__init__

    def note(
        self: ParquetReader, path: Path, columns: Sequence[str] | None = None, **options: Any
    ) -> None:
        read.append(columns)
        plain(self, path, columns, **options)

    monkeypatch.setattr(ParquetReader, "__init__", note)
    uses = find_uses(novels, "bank")
    assert uses.sentences()
    assert uses.metadata("year")
    assert not any("text" in (columns or ["text"]) for columns in read)
    read.clear()
    assert [use.text for use in uses]
    assert read == [["sentence_id", "text", "starts"]]  # once for all of the row group


def test_row_groups_without_the_word_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "_ROW_GROUP", 2)
    texts = ["a b", "a c", "a d", "a b c", "e", "f"]
    corpus = make_corpus(tmp_path, [(text, {}) for text in texts])
    read: list[int] = []
    plain = search.read_columns

    def note(reader: ParquetReader, group: int, names: Sequence[str]) -> object:
        read.append(group)
        return plain(reader, group, names)

    monkeypatch.setattr(search, "read_columns", note)
    assert len(find_uses(corpus, "d")) == 1
    assert read == [1]
    read.clear()
    assert len(find_uses(corpus, "b c")) == 1
    assert read == [1]  # the first has both words, but not one after the other


WORDS = st.sampled_from(["a", "b", "A", "ß", "SS", "中"])


@given(
    sentences=st.lists(st.lists(WORDS, min_size=1, max_size=6), min_size=1, max_size=12),
    form=st.lists(WORDS, min_size=1, max_size=3),
)
@settings(max_examples=25, deadline=None)
def test_what_is_found_is_what_a_plain_loop_finds(
    tmp_path_factory: pytest.TempPathFactory, sentences: list[list[str]], form: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "_ROW_GROUP", 3)
        corpus = make_corpus(folder, [(" ".join(words), {}) for words in sentences])
    wanted = [word.casefold() for word in form]
    expected = [
        (f"d{number}", begin, begin + len(wanted))
        for number, words in enumerate(sentences)
        for begin in range(len(words) - len(wanted) + 1)
        if [word.casefold() for word in words[begin : begin + len(wanted)]] == wanted
    ]
    try:
        uses = find_uses(corpus, " ".join(form))
    except InputError:
        assert not expected
        return
    documents = uses.metadata("document")
    found = [(name, *span) for name, span in zip(documents, uses.spans.tolist(), strict=True)]
    assert found == expected
    assert [list(use.words) for use in uses] == uses.sentences()
    assert [use.form.casefold().split() for use in uses] == [wanted] * len(uses)


def test_a_lost_or_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    corpus = make_novels(tmp_path)
    uses = find_uses(corpus, "bank")
    for path in (corpus.shards[0], words_of(corpus.shards[0]), corpus.vocabulary):
        content = path.read_bytes()
        for bad in (None, content[:-20], b""):
            path.unlink()
            if bad is not None:
                path.write_bytes(bad)
            with pytest.raises(CorpusError, match=rf"{path.stem}.*prepare command again"):
                find_uses(corpus, "bank")
            path.write_bytes(content)
    corpus.shards[0].unlink()
    assert len(uses.sentences()) == 6
    with pytest.raises(CorpusError, match="prepare command again"):
        uses[0]


def test_too_many_uses_are_refused(novels: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_USES", 5)
    with pytest.raises(InputError, match="Over 5 uses"):
        find_uses(novels, "bank")
    assert len(find_uses(novels, "bank", where=["document=d0"])) == 2


def test_sentences_of_no_corpus_make_uses() -> None:
    sentences = [["The", "bank", "closed"], ["a", "river", "bank"]]
    uses = Uses.of(sentences, [(1, 2), (1, 3)], {"year": [1850, None], "document": ["x", "y"]})
    assert [use.form for use in uses] == ["bank", "river bank"]
    assert uses.sentences() == sentences
    assert uses[1].text == "a river bank"
    assert uses[1].starts == (0, 2, 8)
    assert uses.metadata("year") == ["1850", None]
    assert uses[0].document == "x"
    assert "2 uses in 2 documents" in repr(uses)


@pytest.mark.parametrize("span", [(2, 2), (-1, 1), (1, 4), (2, 1)])
def test_a_span_outside_its_sentence_is_refused(span: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="Sentence 0 has 3 words"):
        Uses.of([["a", "b", "c"]], [span])


def test_a_data_frame_has_a_row_for_each_use(novels: Corpus) -> None:
    need_package("pandas")
    frame = find_uses(novels, "bank").to_pandas()
    assert frame["form"].tolist() == ["bank", "Bank", "BANK", "bank", "bank", "bank"]
    assert frame["year"].tolist() == ["1850", "1850", "1861", "1861", "1861", "1900"]
