"""Coreference in columns: mentions in brackets."""

from pathlib import Path

import pytest

from polyseme.errors import InputError
from polyseme.tasks.families.coreference import LONGEST_DOCUMENT, Document
from tasks.readers.making import load, reader

CONFIG = reader("coreference")


def document(name: str, *sentences: str) -> str:
    """`word bracket` pairs, a sentence a string."""
    lines = [f"#begin document ({name}); part 0"]
    for words in sentences:
        for place, pair in enumerate(words.split()):
            word, _, bracket = pair.partition("/")
            lines.append(f"{name}\t0\t{place}\t{word}\t_\t{bracket}")
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


def test_mentions_are_counted_over_the_document(tmp_path: Path) -> None:
    text = document("emma", "My/(3 dear Mr./(1 Bennet/1)|3) said/ he/(1)", "She/(2) left/")
    [found] = load(tmp_path, text, CONFIG).examples
    assert found == Document(
        (("My", "dear", "Mr.", "Bennet", "said", "he"), ("She", "left")),
        (((0, 4),), ((2, 4), (5, 6)), ((6, 7),)),
    )


def test_a_mention_may_lie_within_another_of_its_own_cluster(tmp_path: Path) -> None:
    [found] = load(tmp_path, document("x", "a/(1|(1 b/1) c/1)"), CONFIG).examples
    assert isinstance(found, Document)
    assert found.clusters == (((0, 2), (0, 3)),)


def test_documents_in_one_file_are_told_apart_and_a_genre_is_read(tmp_path: Path) -> None:
    text = document("bc/cctv/00", "a/(1)") + document("nw/xinhua/01", "b/(1) c/")
    loaded = load(tmp_path, text, CONFIG)
    assert [example.sentences for example in loaded.examples] == [(("a",),), (("b", "c"),)]
    assert [getattr(example, "genre", None) for example in loaded.examples] == ["bc", "nw"]
    spaced = text.replace("\t_\t", " - ").replace("\t", " ").replace(" - \n", " - -\n")
    assert load(tmp_path, spaced, CONFIG).examples == loaded.examples


def test_a_file_that_marks_no_documents_is_one(tmp_path: Path) -> None:
    text = "x\t0\t0\tShe\t(1)\n\nx\t0\t0\tshe\t(1)\n"
    [found] = load(tmp_path, text, CONFIG).examples
    assert isinstance(found, Document)
    assert found.clusters == (((0, 1), (1, 2)),)


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("a/(1 b/", "brackets-do-not-match"),
        ("a/1)", "brackets-do-not-match"),
        ("a/1", "brackets-do-not-match"),
        ("a/((1)", "brackets-do-not-match"),
        ("a/(1)|(2)", "mention-in-two-clusters"),
    ],
)
def test_a_faulty_document_is_rejected_whole_and_the_next_is_kept(
    tmp_path: Path, sentence: str, reason: str
) -> None:
    text = document("bad", "fine/", sentence, "fine/") + document("good", "a/(1)")
    loaded = load(tmp_path, text, CONFIG)
    assert [example.sentences for example in loaded.examples] == [(("a",),)]
    assert loaded.stats.reasons == {reason: 1}
    assert "line 4" in loaded.stats.faults[0]


def test_what_is_too_long_to_be_read_at_once_is_told(tmp_path: Path) -> None:
    sentence = " ".join(["word/"] * 1024)
    text = document("long", *[sentence] * (LONGEST_DOCUMENT // 1024), "more/")
    with pytest.raises(InputError, match="1 too-long"):
        load(tmp_path, text, CONFIG)
