"""Counts that add up, whatever the input."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.errors import InternalError
from polyseme.text.records import ReadStats
from text.making import make_config, make_source, prepare_all

GOOD = [b"One . two three .", "中文 。".encode(), b"word"]
BLANK = [b"", b"  ", "\u3000".encode()]
BAD = [b"\xff broken", b"nul \0 here", b"\xc3", b"\xed\xa0\x80"]
LINES = st.lists(st.sampled_from(GOOD + BLANK + BAD), max_size=60)


@settings(max_examples=60, deadline=None)
@given(lines=LINES, layout=st.sampled_from(["articles", "lines", "wrapped"]))
def test_every_line_is_read_and_is_blank_or_bad_or_kept(lines: list[bytes], layout: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = make_source(Path(folder), b"".join(line + b"\n" for line in lines))
        counts = prepare_all([source], make_config(layout=layout), Path(folder) / "out").counts
    # Joined to a paragraph, a line with a NUL character takes its neighbours with it.
    is_joined = layout == "wrapped"
    assert counts["read"] == len(lines)
    assert counts["blank"] == sum(line in BLANK for line in lines)
    assert counts["quarantined"] >= sum(line in BAD for line in lines)
    assert is_joined or counts["quarantined"] == sum(line in BAD for line in lines)


@settings(max_examples=60, deadline=None)
@given(lines=LINES, longest=st.integers(8, 12))
def test_words_and_sentences_written_are_those_counted(lines: list[bytes], longest: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = make_source(Path(folder), b" ".join(lines) + b"\n" + b"\n".join(lines))
        prepared = prepare_all([source], make_config(max_words=longest), Path(folder) / "out")
    counts, rows = prepared.counts, prepared.rows
    assert counts["sentences"] == len(rows)
    assert counts["words"] == sum(len(row["words"]) for row in rows)
    assert counts["characters"] == sum(len(row["text"]) for row in rows)
    assert counts["documents"] == len({row["document"] for row in rows})
    assert counts["held_out_sentences"] == sum(row["held_out"] for row in rows)


def make_stats() -> ReadStats:
    """Five lines: one blank, one bad, three kept, two of them joined into one record."""
    made = ReadStats()
    made.counts.update(read=5, blank=1, quarantined=1, kept=3, joined=1, records=2)
    made.counts.update(sentences_found=2, sentences_added=1, sentences=3, words=7)
    made.reasons["not-utf-8"] = 1
    made.lengths.update({2: 2, 3: 1})
    return made


def test_the_total_is_the_sum_of_the_parts_and_a_reason_too_many_is_noticed() -> None:
    parts = [make_stats().as_json(), make_stats().as_json()]
    total = ReadStats.total(parts)
    total.check()
    assert (total.counts["read"], total.lengths) == (10, {2: 4, 3: 2})
    assert ReadStats.total(parts[:1]).as_json() == parts[0]
    total.reasons["no-text"] += 1
    with pytest.raises(InternalError):
        total.check()


@pytest.mark.parametrize(
    "name", ["read", "blank", "quarantined", "kept", "joined", "records", "sentences", "words"]
)
def test_one_lost_unit_anywhere_fails_the_check(name: str) -> None:
    made = make_stats()
    made.counts[name] -= 1
    with pytest.raises(InternalError):
        made.check()
