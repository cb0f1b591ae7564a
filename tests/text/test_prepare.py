"""One shard from pieces: rows, places, documents, the held-out part, the quarantine.

Counts that add up, whatever the input.
"""

import gc
import hashlib
import json
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.errors import ExecutorError, InternalError
from polyseme.text import prepare, shards
from polyseme.text.plan import ShardPieces
from polyseme.text.prepare import fingerprint, is_held_out
from polyseme.text.records import ReadStats
from polyseme.text.settings import InputFormat
from polyseme.text.shards import ShardWords
from text.making import PreparedShards, make_config, make_source, pack, prepare_all


def run(folder: Path, data: bytes, kind: InputFormat = "text", **values: Any) -> PreparedShards:
    return prepare_all([make_source(folder, data, kind)], make_config(**values), folder / "out")


def test_words_lie_where_their_starts_say(tmp_path: Path) -> None:
    rows = run(tmp_path, b"  One  two .  Three\tfour !\n\nfive\n").rows
    for row in rows:
        pairs = zip(row["words"], row["starts"], strict=True)
        assert all(row["text"][start:].startswith(word) for word, start in pairs)
    assert [row["text"] for row in rows] == ["One  two .", "Three\tfour !", "five"]


def test_sentences_are_numbered_in_their_document_and_long_ones_cut(tmp_path: Path) -> None:
    prepared = run(tmp_path, b"a . b .\nc .\n\nd .\n" + b"w " * 20 + b"\n", max_words=8)
    found = [(row["document"], row["position"], len(row["words"])) for row in prepared.rows]
    assert found[:4] == [("input@0", n, 2) for n in range(3)] + [("input@13", 0, 2)]
    assert [size for _, _, size in found[4:]] == [6, 7, 7]
    counts = prepared.counts
    assert (counts["sentences_split"], counts["sentences_added"], counts["documents"]) == (1, 2, 2)
    assert not list(tmp_path.rglob("quarantine"))


def test_control_characters_and_records_of_nothing_else_are_counted(tmp_path: Path) -> None:
    prepared = run(tmp_path, b"a\x0cb\x0cc\nd\n\n\x01\x02\n")
    counts = prepared.counts
    assert (counts["records_with_controls"], counts["records_without_words"]) == (2, 1)
    assert (counts["documents"], prepared.rows[0]["words"]) == (1, ["a", "b", "c"])


@pytest.mark.parametrize(
    ("lines", "words", "starts"),
    [
        ("New York\n<g/>\n.\nnot a sentence end", ["New York", ".", "not a sentence end"],
         [0, 8, 10]),
        ("New Cafe\u0301\n<g/>\n,\nle", ["New Café", ",", "le"], [0, 8, 10]),
        ("a\n\x01x\n\x02\x03\nb", ["a", "x", "b"], [0, 2, 4]),
    ],
)  # fmt: skip
def test_words_marked_in_the_source_are_kept(
    tmp_path: Path, lines: str, words: list[str], starts: list[int]
) -> None:
    data = f"<s>\n{lines}\n</s>\n".encode()
    (row,) = run(tmp_path, data, "vertical", unicode_normalization="NFC").rows
    assert (row["words"], row["starts"]) == (words, starts)


def test_unfit_text_is_named_in_the_quarantine(tmp_path: Path) -> None:
    prepared = run(tmp_path, b"good\nwith \0 nul\ngood\n")
    assert prepared.quarantine == [
        {
            "source": "input",
            "place": 5,
            "reason": "nul-character",
            "detail": "",
            "units": 1,
            "quote": "with \0 nul",
        }
    ]


def test_a_rejected_paragraph_counts_for_all_its_lines(tmp_path: Path) -> None:
    data = b"good\n\none\ntwo \0\nthree\n\ngood\n"
    prepared = run(tmp_path, data, layout="wrapped")
    assert [entry["units"] for entry in prepared.quarantine] == [3]
    counts = {name: prepared.counts[name] for name in ("read", "blank", "quarantined", "kept")}
    assert counts == {"read": 7, "blank": 2, "quarantined": 3, "kept": 2}
    assert prepared.counts["quarantine_reasons"] == {"nul-character": 3}


def test_lone_surrogates_in_names_and_metadata_do_no_harm(tmp_path: Path) -> None:
    line = json.dumps({"text": "fine", "id": "a\ud800", "date": "\udfff"})
    (row,) = run(tmp_path, line.encode(), "jsonl", id_column="id", meta=("date",)).rows
    assert row["text"] == "fine"
    assert row["document"].startswith("a")


def test_about_the_asked_share_is_held_out_and_a_larger_one_holds_out_more() -> None:
    names = [f"text-{i}.txt@0" for i in range(10_000)]
    small, large = ({name for name in names if is_held_out(name, s)} for s in (0.02, 0.04))
    assert 150 <= len(small) <= 250  # 200 expected, standard deviation 14
    assert small < large
    assert not any(is_held_out(name, 0.0) for name in names)


def test_the_share_is_a_threshold_on_the_hash_of_the_name() -> None:
    fraction = int(hashlib.sha256("é".encode()).hexdigest()[:16], 16) / 2**64
    assert not is_held_out("é", fraction - 1e-9)
    assert is_held_out("é", fraction + 1e-9)


def test_the_sentences_of_held_out_documents_are_marked(tmp_path: Path) -> None:
    prepared = run(tmp_path, b"a . b\n\n" * 300, held_out=0.3)
    assert all(row["held_out"] == is_held_out(row["document"], 0.3) for row in prepared.rows)
    assert prepared.counts["held_out_words"] == sum(
        len(row["words"]) for row in prepared.rows if row["held_out"]
    )


@pytest.mark.parametrize(
    ("bound", "most", "sizes"),
    [("_ROW_GROUP", 2, [2, 1]), ("_MOST_WORDS", 4, [1, 2]), ("_MOST_CHARACTERS", 20, [2, 1])],
)
def test_row_groups_are_bounded_and_have_their_words_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int, sizes: list[int]
) -> None:
    monkeypatch.setattr(shards, bound, most)
    rows = run(tmp_path, "b a b .\na c\n三 a\n".encode()).rows
    [path] = tmp_path.rglob("words/*.npy")
    words = ShardWords(path)
    found = []
    for number in range(len(words)):
        group = words[number]
        spelled = group.spell(group.codes)
        found.append([spelled[begin:end] for begin, end in pairwise(group.offsets)])
    assert [len(group) for group in found] == sizes
    assert [words for group in found for words in group] == [row["words"] for row in rows]
    assert pq.ParquetFile(next(tmp_path.rglob("shards/*.parquet"))).num_row_groups == len(words)


def test_a_broken_file_keeps_its_first_lines_and_is_named(tmp_path: Path) -> None:
    packed = pack(b"whole line\n" * 10, "gz") + pack(b"lost\n", "gz")[:-9]
    source = make_source(tmp_path, packed, compression="gz")
    prepared = prepare_all([source], make_config(), tmp_path / "out")
    assert [row["text"] for row in prepared.rows][:10] == ["whole line"] * 10
    assert [entry["reason"] for entry in prepared.quarantine] == ["broken-file"]


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run(tmp_path / name, "Eins zwei . 三\n\n\xff".encode("latin-1", "replace") * 50)
    for files in ("shards/*.parquet", "words/*.npy"):
        first, second = sorted(tmp_path.rglob(files))
        assert first.read_bytes() == second.read_bytes()


def test_the_fingerprint_changes_with_any_setting() -> None:
    plain = fingerprint(make_config())
    assert fingerprint(make_config()) == plain
    assert fingerprint(make_config(max_words=99)) != plain
    assert fingerprint(make_config(segmenter="characters")) != plain


def test_the_search_for_cycles_is_on_again_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("broken on purpose")

    monkeypatch.setattr(prepare, "read_piece", fail)
    with pytest.raises(KeyError):
        run(tmp_path, b"a\n")
    assert gc.isenabled()


def test_a_worker_with_other_versions_refuses_the_work(tmp_path: Path) -> None:
    elsewhere = prepare._prepare_elsewhere
    with pytest.raises(ExecutorError, match="other versions"):
        elsewhere(
            make_config(), "fingerprint of another machine", ShardPieces("x", ()), tmp_path, print
        )
    assert not list(tmp_path.iterdir())


def _treebank(sentences: list[list[tuple[str, str]]]) -> bytes:
    """A document for each sentence, of words with their lemmas."""
    blocks = []
    for number, words in enumerate(sentences):
        lines = [
            f"{place}\t{word}\t{lemma}\t" + "\t".join("_" * 7)
            for place, (word, lemma) in enumerate(words, start=1)
        ]
        blocks.append("\n".join([f"# newdoc id = d{number}", *lines]))
    return ("\n\n".join(blocks) + "\n\n").encode()


def test_attributes_have_a_value_for_each_word_in_every_sentence_and_shard(tmp_path: Path) -> None:
    lengths = [1 + number % 30 for number in range(400)]
    sentences = [[(f"W{n}", f"w{n}" if n % 3 else "_") for n in range(size)] for size in lengths]
    data = _treebank(sentences)
    found = []
    for shard_bytes in (1 << 12, 1 << 23):
        folder = tmp_path / str(shard_bytes)
        values = {"max_words": 8, "shard_bytes": shard_bytes, "word_attributes": ("lemma", "upos")}
        prepared = run(folder, data, "conllu", **values)
        for row in prepared.rows:
            expected = [word.lower() if int(word[1:]) % 3 else None for word in row["words"]]
            assert row["lemma"] == expected
            assert row["upos"] == [None] * len(row["words"])
        assert prepared.counts["sentences_split"] > 0
        found.append(prepared.rows)
    assert found[0] == found[1]


def test_attributes_are_normalized_and_stay_with_their_words(tmp_path: Path) -> None:
    data = _treebank([[("\ufb01ne", "\ufb01ne"), ("\x01", "gone"), ("day", "a\x0cday")]])
    (row,) = run(
        tmp_path, data, "conllu", unicode_normalization="NFKC", word_attributes=("lemma",)
    ).rows
    assert (row["words"], row["lemma"]) == (["fine", "day"], ["fine", "a day"])


def test_a_sentence_with_an_unfit_attribute_is_quarantined(tmp_path: Path) -> None:
    data = _treebank([[("a", "\0")], [("b", "b")]])
    prepared = run(tmp_path, data, "conllu", word_attributes=("lemma",))
    assert [row["words"] for row in prepared.rows] == [["b"]]
    assert prepared.counts["quarantined"] == 1


def test_a_corpus_without_attributes_has_no_column_more(tmp_path: Path) -> None:
    (row,) = run(tmp_path, _treebank([[("a", "b")]]), "conllu").rows
    assert list(row) == shards.shard_schema(()).names


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
