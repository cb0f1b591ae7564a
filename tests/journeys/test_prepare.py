"""From texts to a corpus through the command line, as a user goes."""

import gzip
import importlib.util
import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from command_line import polyseme
from required import needs
from text.documents import make_docx, make_epub, make_pdf, word_paragraph

from polyseme.commands import prepare
from polyseme.embedding.corpus_parts import parts_of
from polyseme.errors import CorpusError
from polyseme.storage import folders
from polyseme.storage.files import canonical_json, sha256_of
from polyseme.text.corpus import ARTIFACT, Corpus

TEXT = """\
The bank raised its rates. The river had left its bank!

"Who plays the lead?" she asked. Lead is a heavy metal.
Dr. Smith plays fair (e.g. at chess).
"""


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text(TEXT, encoding="utf-8")
    (folder / "b.txt").write_bytes(b"Good line.\nBad \xff line.\n")
    (folder / "picture.jpg").write_bytes(b"not text")
    return folder


def test_a_folder_of_texts_becomes_sentences_and_words(texts: Path, tmp_path: Path) -> None:
    result = polyseme("prepare", texts, "--language", "en", "--out", tmp_path / "c")
    rows = pq.read_table(tmp_path / "c" / "shards").to_pylist()
    assert [row["text"] for row in rows] == [
        "The bank raised its rates.",
        "The river had left its bank!",
        '"Who plays the lead?" she asked.',
        "Lead is a heavy metal.",
        "Dr. Smith plays fair (e.g. at chess).",
        "Good line.",
    ]
    assert rows[4]["words"] == [
        "Dr.",
        "Smith",
        "plays",
        "fair",
        "(",
        "e.g.",
        "at",
        "chess",
        ")",
        ".",
    ]
    for row in rows:
        for word, start in zip(row["words"], row["starts"], strict=True):
            assert row["text"][start : start + len(word)] == word
    assert [(row["document"], row["position"]) for row in rows[:4]] == [
        ("a.txt", position) for position in range(4)
    ]
    assert "Skipped picture.jpg" in result.stderr


def test_what_cannot_be_read_is_counted_and_quarantined(texts: Path, tmp_path: Path) -> None:
    polyseme("prepare", texts, "--language", "en", "--out", tmp_path / "c")
    counts = json.loads((tmp_path / "c" / "manifest.json").read_text("utf-8"))["read_stats"]
    assert counts["read"] == 6
    assert (counts["blank"], counts["quarantined"], counts["kept"]) == (1, 1, 4)
    [line] = (tmp_path / "c" / "quarantine" / "part-00000.jsonl").read_text("utf-8").splitlines()
    entry = json.loads(line)
    assert entry["source"] == "b.txt"
    assert entry["place"] == len("Good line.\n")
    assert entry["reason"] == "not-utf-8"


def test_the_same_command_again_changes_nothing(texts: Path, tmp_path: Path) -> None:
    words = ("prepare", texts, "--language", "en", "--out", tmp_path / "c")
    polyseme(*words)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "c" / "shards").iterdir()}
    manifest = (tmp_path / "c" / "manifest.json").read_bytes()
    polyseme(*words)
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "c" / "shards").iterdir()} == before
    assert (tmp_path / "c" / "manifest.json").read_bytes() == manifest


def test_a_changed_text_is_prepared_again(texts: Path, tmp_path: Path) -> None:
    words = ("prepare", texts, "--language", "en", "--out", tmp_path / "c")
    polyseme(*words)
    (texts / "b.txt").write_text("Good news.\nNo bad line.\n", encoding="utf-8")
    polyseme(*words)
    rows = pq.read_table(tmp_path / "c" / "shards").to_pylist()
    assert [row["text"] for row in rows[-2:]] == ["Good news.", "No bad line."]
    assert not list((tmp_path / "c").glob("quarantine/*"))


def test_other_settings_are_refused_unless_told_to_replace(texts: Path, tmp_path: Path) -> None:
    words = ("prepare", texts, "--language", "en", "--out", tmp_path / "c")
    polyseme(*words)
    result = polyseme(*words, "--max-words", "8", code=65)
    assert "max_words = 250, now 8" in " ".join(result.stderr.split())
    polyseme(*words, "--max-words", "8", "--replace")
    rows = pq.read_table(tmp_path / "c" / "shards").to_pylist()
    assert [row["text"] for row in rows[5:7]] == ["Dr. Smith plays fair (", "e.g. at chess)."]


def test_a_folder_with_other_things_in_it_is_left_alone(texts: Path) -> None:
    polyseme("prepare", texts, "--language", "en", "--out", texts, code=65)
    assert {path.name for path in texts.iterdir()} == {"a.txt", "b.txt", "picture.jpg"}


def test_the_users_columns_travel_with_every_sentence(tmp_path: Path) -> None:
    lines = [
        {"body": "One. Two.", "year": 1850, "author": "李白", "id": "x"},
        {"body": "Three.", "id": "y"},
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    options = ("--text-column", "body", "--meta", "year,author", "--id-column", "id")
    polyseme("prepare", path, "--language", "en", *options, "--out", tmp_path / "c")
    rows = pq.read_table(tmp_path / "c" / "shards").to_pylist()
    assert [(r["document"], r["text"], r["year"], r["author"]) for r in rows] == [
        ("x", "One.", "1850", "李白"),
        ("x", "Two.", "1850", "李白"),
        ("y", "Three.", None, None),
    ]


def test_chinese_words_and_characters(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("今天是周日。他在北京大学读书。\n", encoding="utf-8")
    polyseme("prepare", path, "--language", "zh", "--out", tmp_path / "words")
    words = ("--segmenter", "characters", "--out", tmp_path / "characters")
    polyseme("prepare", path, "--language", "zh", *words)
    first, second = pq.read_table(tmp_path / "words" / "shards").to_pylist()
    assert first["text"] == "今天是周日。"
    assert "北京大学" in second["words"]
    first, _ = pq.read_table(tmp_path / "characters" / "shards").to_pylist()
    assert first["words"] == list("今天是周日。")


def test_settings_may_come_from_a_file(texts: Path, tmp_path: Path) -> None:
    settings = tmp_path / "my.toml"
    settings.write_text('[corpus]\nlanguage = "en"\nmax_words = 9\n', encoding="utf-8")
    polyseme("prepare", texts, "--config", settings, "--max-words", "8", "--out", tmp_path / "c")
    assert "max_words = 8" in (tmp_path / "c" / "config.toml").read_text("utf-8")


def test_a_text_without_a_word_is_an_error_that_says_where_it_went(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n \n", encoding="utf-8")
    result = polyseme("prepare", path, "--language", "en", "--out", tmp_path / "c", code=66)
    assert "No words came out of the input" in result.stderr


def test_the_settings_of_one_corpus_make_another_like_it(texts: Path, tmp_path: Path) -> None:
    words = ("--language", "en", "--max-words", "8", "--segmenter", "whitespace")
    polyseme("prepare", texts, *words, "--out", tmp_path / "one")
    settings = tmp_path / "one" / "config.toml"
    polyseme("prepare", texts, "--config", settings, "--out", tmp_path / "two")
    one, two = ((tmp_path / name / "manifest.json").read_bytes() for name in ("one", "two"))
    assert one == two


def test_what_breaks_off_is_told_and_the_sums_are_exact(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    lines = [f"{n},row {n}" for n in range(1000)]
    lines[9] = '9,"row 9'  # never closed
    (folder / "a.csv").write_text("id,text\n" + "\n".join(lines), encoding="utf-8")
    packed = gzip.compress("".join(f"Line {n}.\n" for n in range(9000)).encode())
    (folder / "b.txt.gz").write_bytes(packed[: len(packed) // 2])
    (folder / "c.parquet").write_bytes(b"PAR1 and no more")
    options = ("--language", "en", "--segmenter", "whitespace", "--workers", "1")
    result = polyseme("prepare", folder, *options, "--out", tmp_path / "c")
    assert "and what follows in 2 files that break off │ unknown" in result.stdout
    counts = json.loads((tmp_path / "c" / "manifest.json").read_text("utf-8"))["read_stats"]
    assert counts["quarantine_reasons"] == {"broken-file": 2, "broken-row": 1}
    assert counts["read"] == counts["blank"] + counts["kept"] + counts["quarantined"]
    assert counts["kept"] > 999
    shown = polyseme("inspect", tmp_path / "c").stdout
    assert "and what follows in 2 files that break off" in shown


def test_a_folder_of_mixed_files_becomes_one_corpus(tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "1815_Austen_Emma.txt").write_text("Emma was handsome.", encoding="utf-8")
    (folder / "1847_Bronte_Jane.html").write_text("<p>There was no walk.</p>", encoding="utf-8")
    (folder / "1860_Eliot_Mill.docx").write_bytes(make_docx(word_paragraph("A wide plain.")))
    (folder / "1861_Dickens_Pip.epub").write_bytes(make_epub({"a": "<p>My name is Pip.</p>"}))
    (folder / "1871_Eliot_Middlemarch").write_bytes(make_pdf([["Miss Brooke had beauty."]]))
    (folder / "odd.jsonl").write_text('{"text": "No year."}\n', encoding="utf-8")
    (folder / "genres.csv").write_text(
        "file,genre\n1815_Austen_Emma,comedy\nodd.jsonl,none\ngone.txt,x\n", encoding="utf-8"
    )
    result = polyseme(
        "prepare", folder, "--language", "en", "--out", tmp_path / "c", "--held-out", "0",
        "--name-pattern", "{year}_{author}_{title}", "--metadata", folder / "genres.csv",
    )  # fmt: skip
    rows = pq.read_table(tmp_path / "c" / "shards").to_pylist()
    assert [(row["text"], row["year"], row["author"], row["genre"]) for row in rows] == [
        ("Emma was handsome.", "1815", "Austen", "comedy"),
        ("There was no walk.", "1847", "Bronte", None),
        ("A wide plain.", "1860", "Eliot", None),
        ("My name is Pip.", "1861", "Dickens", None),
        ("Miss Brooke had beauty.", "1871", "Eliot", None),
        ("No year.", None, None, "none"),
    ]
    told = " ".join(result.stdout.split())
    assert "1 of 6 files (odd.jsonl) is not named like" in told
    assert "4 of 6 files (1847_Bronte_Jane.html, …) are not in the table of metadata" in told
    assert "1 rows of metadata fit no file (gone.txt)" in told
    assert "Skipped genres.csv" in result.stderr


def test_another_value_in_the_table_makes_the_shard_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One line.", encoding="utf-8")
    table = tmp_path / "table.csv"
    for year in ("1815", "1816"):
        table.write_text(f"file,year\na,{year}\n", encoding="utf-8")
        polyseme(
            "prepare", tmp_path / "a.txt", "--language", "en", "--out", tmp_path / "c",
            "--metadata", table,
        )  # fmt: skip
        assert pq.read_table(tmp_path / "c" / "shards")["year"].to_pylist() == [year]


@needs(importlib.util.find_spec("jieba") is not None, "the extra [zh]")
def test_a_user_dictionary_is_part_of_the_corpus(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("我们训练大语言模型。", encoding="utf-8")
    (tmp_path / "words.txt").write_text("大语言模型\n", encoding="utf-8")
    polyseme(
        "prepare", tmp_path, "--language", "zh", "--out", tmp_path / "c",
        "--user-dictionary", tmp_path / "words.txt",
    )  # fmt: skip
    (row,) = pq.read_table(tmp_path / "c" / "shards").to_pylist()
    assert "大语言模型" in row["words"]
    assert 'user_words = [\n    "大语言模型",\n]' in (tmp_path / "c" / "config.toml").read_text(
        encoding="utf-8"
    )


def test_attributes_of_words_are_refused_where_words_have_none(texts: Path, tmp_path: Path) -> None:
    words = ("prepare", texts, "--language", "en", "--word-attributes", "lemma")
    result = polyseme(*words, "--out", tmp_path / "c", code=2)
    assert "in which words have no attributes" in result.stderr
    assert not (tmp_path / "c").exists()


def test_an_attribute_that_a_treebank_does_not_have_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text("1\tDogs\tdog" + "\t_" * 7 + "\n\n")
    words = ("prepare", tmp_path / "a.conllu", "--language", "en", "--out", tmp_path / "c")
    result = polyseme(*words, "--word-attributes", "lemma,pos", code=2)
    assert "no attribute 'pos'" in result.stderr
    assert "upos, xpos" in result.stderr
    polyseme(*words, "--word-attributes", "lemma,upos")
    (row,) = pq.read_table(tmp_path / "c" / "shards").to_pylist()
    assert (row["words"], row["lemma"], row["upos"]) == (["Dogs"], ["dog"], [None])
    polyseme("inspect", tmp_path / "c", "--verify")
    refused = polyseme(*words, "--word-attributes", "lemma", code=65)
    assert "word_attributes = ('lemma', 'upos')" in refused.stderr


def plain(text: str) -> str:
    return " ".join(text.split())


def test_a_link_out_of_the_folder_is_counted_and_told_in_the_summary(
    texts: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("A secret.")
    (texts / "x.txt").symlink_to(tmp_path / "secret.txt")
    result = polyseme("prepare", texts, "--language", "en", "--out", tmp_path / "c")
    assert "1 of the files was skipped (x.txt): a link that leads out" in plain(result.stdout)
    manifest = json.loads((tmp_path / "c" / "manifest.json").read_text("utf-8"))
    assert "link that leads out of the folder" in manifest["passed_over"]["x.txt"]
    rows = pq.read_table(tmp_path / "c" / "shards").to_pylist()
    assert "x.txt" not in {row["document"] for row in rows}


def test_one_document_is_counted_as_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("We sat by the river bank .", encoding="utf-8")
    command = ("prepare", tmp_path / "a.txt", "--language", "en", "--out", tmp_path / "c")
    told = plain(polyseme(*command).stdout)
    assert "No document was held out: there is only one. Reading words needs none" in told
    assert "1 shard from an earlier run was reused." in plain(polyseme(*command).stdout)


def test_chinese_prepared_as_english_is_told_with_the_way_out(tmp_path: Path) -> None:
    rows = [{"text": "今天是周日。他在北京大学读书。"}, {"text": "他不喜欢下雨天。"}]
    lines = "\n".join(json.dumps(row) for row in rows)  # as escapes: only who reads it can tell
    (tmp_path / "a.jsonl").write_text(lines, encoding="utf-8")
    result = polyseme("prepare", tmp_path / "a.jsonl", "--language", "en", "--out", tmp_path / "c")
    assert "mostly Chinese characters, but --language is en" in plain(result.stdout)
    assert "--language zh" in plain(result.stdout)


@pytest.mark.parametrize(
    ("language", "encoding"), [("en", "latin-1"), ("zh", "gb18030"), ("ja", "shift_jis")]
)
def test_the_encoding_that_is_advised_is_one_of_the_language(
    tmp_path: Path, language: str, encoding: str
) -> None:
    (tmp_path / "a.txt").write_bytes("Caf\xe9 au lait.\n".encode("latin-1") * 3)
    options = ("--language", language, "--segmenter", "whitespace", "--out", tmp_path / "c")
    result = polyseme("prepare", tmp_path / "a.txt", *options, code=66)
    assert encoding in plain(result.stderr)
    assert ("gb18030" in plain(result.stderr)) == (language == "zh")


def test_random_bytes_are_no_corpus(texts: Path, tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_bytes(random.Random(1).randbytes(20_000))
    options = ("--language", "en", "--encoding", "latin-1", "--out", tmp_path / "c")
    result = polyseme("prepare", tmp_path / "r.txt", *options, code=66)
    assert "r.txt: not-text:" in plain(result.stderr)
    result = polyseme("prepare", tmp_path / "r.txt", texts, *options)
    assert "r.txt: not-text:" in plain(result.stdout)


def test_a_refused_bomb_says_why(tmp_path: Path) -> None:
    packed = gzip.compress(b"again and again and once more\n" * 1_000_000)
    (tmp_path / "a.txt.gz").write_bytes(packed)
    options = ("--language", "en", "--out", tmp_path / "c")
    result = polyseme("prepare", tmp_path / "a.txt.gz", *options, code=66)
    assert "a.txt.gz: broken-file: it unpacks to over 16 MB" in plain(result.stderr)


def test_an_address_of_an_unknown_kind_is_refused_as_input_and_as_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("A few words.")
    command = ("prepare", "a.txt", "--language", "en", "--out", "hdfs://bucket/x")
    assert "hdfs://bucket/x is on a remote store" in " ".join(
        polyseme(*command, code=2).stderr.split()
    )
    command = ("prepare", "hdfs://bucket/a.txt", "--language", "en", "--out", "x")
    assert "remote store" in " ".join(polyseme(*command, code=66).stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_many_files_stand_in_a_table_beside_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("A few words.\n\n" * 3_000)
    command = ("prepare", tmp_path / "a.txt", "--language", "en", "--layout", "articles")
    few = ("--shard-bytes", "4096", "--workers", "1")
    polyseme(*command, *few, "--out", tmp_path / "few")
    monkeypatch.setattr(folders, "_MOST_IN_JSON", 10)
    polyseme(*command, *few, "--out", tmp_path / "many")
    one, two = (Corpus.open(tmp_path / name) for name in ("few", "many"))
    listed = json.loads((tmp_path / "many" / "manifest.json").read_text())["files"]
    assert set(listed) == {"config.toml", "files.parquet", "vocabulary.parquet"}
    assert [path.name for path in one.shards] == [path.name for path in two.shards]
    assert len(one.shards) == 11
    assert {n: each for n, each in two.manifest["files"].items() if n != "files.parquet"} == {
        **one.manifest["files"]
    }
    assert [part.size for part in parts_of(two)] == [part.size for part in parts_of(one)]
    polyseme("inspect", tmp_path / "many", "--verify")
    two.shards[3].write_bytes(b"damaged")
    assert two.check_files() == ["shards/part-00003.parquet"]
    table = tmp_path / "many" / "files.parquet"
    table.write_bytes(table.read_bytes()[:-1])
    with pytest.raises(CorpusError, match=r"files\.parquet is missing or not as it was written"):
        Corpus.open(tmp_path / "many")


def test_words_of_many_shards_are_counted_in_ranges_to_the_same_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n\n".join(f"A few words, of which {n % 70} is one." for n in range(3_000))
    (tmp_path / "a.txt").write_text(text)
    command = ("prepare", tmp_path / "a.txt", "--language", "en", "--layout", "articles")
    few = ("--shard-bytes", "4096", "--workers", "1")
    polyseme(*command, *few, "--out", tmp_path / "one")
    monkeypatch.setattr(prepare, "_COUNTED_TOGETHER", 4)
    polyseme(*command, *few, "--out", tmp_path / "ranges")
    for name in ("vocabulary.parquet", "manifest.json"):
        assert sha256_of(tmp_path / "one" / name) == sha256_of(tmp_path / "ranges" / name)
    assert {path.name for path in (tmp_path / "ranges").iterdir()} == {
        path.name for path in (tmp_path / "one").iterdir()
    }


def test_a_corpus_of_the_format_before_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A few words.")
    polyseme("prepare", tmp_path / "a.txt", "--language", "en", "--out", tmp_path / "c")
    path = tmp_path / "c" / "manifest.json"
    manifest = json.loads(path.read_text())
    for each in manifest["files"].values():
        each.pop("rows", None)
    keys = ARTIFACT.older[7]
    manifest |= {"format": 7, "shard_inputs": {"part-00000": "0" * 64}}
    manifest["metadata_sha256"] = folders._digest({name: manifest[name] for name in keys})
    path.write_text(canonical_json(manifest))
    assert [part.size for part in parts_of(Corpus.open(tmp_path / "c"))] == [1]
    polyseme("inspect", tmp_path / "c", "--verify")
