"""From and to a bucket, by the same commands and with the same result as in folders."""

import bz2
import gzip
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bucket import ACCESS, SECRET, bucket, s3  # noqa: F401
from command_line import polyseme
from embedding.bulk_cases import Case, make_case

from polyseme.commands.index import IndexConfig
from polyseme.commands.index import run as index
from polyseme.config import build
from polyseme.embedding.corpus_parts import parts_of
from polyseme.meanings.index import word_range
from polyseme.meanings.index.folder import IndexFolder
from polyseme.storage.files import sha256_of
from polyseme.storage.remote_folders import local_folder
from polyseme.storage.store import open_store
from polyseme.text.corpus import Corpus, words_of
from polyseme.text.shards import ShardWords

_SENTENCES = [
    "The bank of the river was green.",
    "She put her money into the bank.",
    "A boat lay at the bank.",
    "The bank lends money to people.",
]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Files of several kinds, some of them cut into several shards."""
    folder = tmp_path / "texts"
    (folder / "more").mkdir(parents=True)
    articles = "\n\n".join(
        f"{_SENTENCES[n % 4]} Number {n} says so.\n{_SENTENCES[(n + 1) % 4]}" for n in range(3_000)
    )
    (folder / "long.txt").write_text(articles)
    lines = "\n".join(_SENTENCES) + "\n"
    with gzip.open(folder / "packed.txt.gz", "wt") as stream:
        stream.write(lines)
    (folder / "more" / "packed.txt.bz2").write_bytes(bz2.compress(lines.encode()))
    pq.write_table(
        pa.table({"text": [f"{s} Row {n}." for n in range(500) for s in _SENTENCES]}),
        folder / "rows.parquet",
        row_group_size=400,
    )
    (folder / "empty.txt").touch()
    return folder


def upload(folder: Path, url: str) -> str:
    """As `aws s3 cp --recursive` would."""
    store = open_store(url)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            store.put(path, path.relative_to(folder).as_posix())
    return url


def hashes(folder: Path, *names: str) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): sha256_of(path)
        for name in names
        for path in sorted((folder / name).rglob("*"))
        if path.is_file()
    }


_OPTIONS = ("--language", "en", "--layout", "articles", "--shard-bytes", "60000")
_MADE = ("shards", "words", "quarantine")


def test_a_corpus_from_and_to_a_bucket_is_the_local_one_to_the_byte(
    texts: Path,
    tmp_path: Path,
    bucket: str,  # noqa: F811
) -> None:
    upload(texts, f"{bucket}/texts")
    polyseme("prepare", texts, *_OPTIONS, "--out", tmp_path / "local", "--workers", "1")
    out = f"{bucket}/made/corpus"
    done = polyseme("prepare", f"{bucket}/texts", *_OPTIONS, "--out", out, "--workers", "2")
    assert f"polyseme inspect {out}" in done.stdout
    fetched = local_folder(out)
    assert len(hashes(tmp_path / "local", "shards")) > 3
    assert hashes(fetched, *_MADE) == hashes(tmp_path / "local", *_MADE)
    assert sha256_of(fetched / "vocabulary.parquet") == sha256_of(
        tmp_path / "local" / "vocabulary.parquet"
    )
    # Local texts into a bucket: not even the manifest differs.
    polyseme("prepare", texts, *_OPTIONS, "--out", f"{bucket}/second", "--workers", "1")
    assert sha256_of(local_folder(f"{bucket}/second") / "manifest.json") == sha256_of(
        tmp_path / "local" / "manifest.json"
    )
    # And from a bucket into a folder.
    polyseme(
        "prepare", f"{bucket}/texts/", *_OPTIONS, "--out", tmp_path / "third", "--workers", "1"
    )
    assert hashes(tmp_path / "third", *_MADE) == hashes(tmp_path / "local", *_MADE)


def test_a_finished_run_is_found_by_its_records(texts: Path, bucket: str) -> None:  # noqa: F811
    upload(texts, f"{bucket}/texts")
    command = ("prepare", f"{bucket}/texts", *_OPTIONS, "--out", f"{bucket}/corpus")
    polyseme(*command, "--workers", "1")
    store = open_store(f"{bucket}/corpus")
    before = {entry.name: entry.etag for entry in store.list()}
    again = polyseme(*command, "--workers", "1")
    assert "shards from an earlier run were reused" in " ".join(again.stdout.split())
    assert {entry.name: entry.etag for entry in store.list()} == before
    # A shard that somebody has removed is made again, and only that.
    gone = next(name for name in before if name.startswith("shards/"))
    store.delete([gone])
    polyseme(*command, "--workers", "1")
    assert {entry.name for entry in store.list()} == set(before)


def test_a_text_that_changes_is_prepared_again(texts: Path, bucket: str) -> None:  # noqa: F811
    upload(texts, f"{bucket}/texts")
    command = ("prepare", f"{bucket}/texts/*.txt", *_OPTIONS, "--out", f"{bucket}/corpus")
    polyseme(*command, "--workers", "1")
    (texts / "long.txt").write_text("Other words altogether.\n")
    upload(texts, f"{bucket}/texts")
    polyseme(*command, "--workers", "1")
    words = pq.read_table(local_folder(f"{bucket}/corpus") / "vocabulary.parquet")["word"]
    assert sorted(words.to_pylist()) == [".", "Other", "altogether", "words"]


def test_other_settings_are_refused_and_a_key_stands_nowhere(
    texts: Path,
    bucket: str,  # noqa: F811
) -> None:
    upload(texts, f"{bucket}/texts")
    out = f"{bucket}/corpus"
    done = polyseme("prepare", f"{bucket}/texts/long.txt", *_OPTIONS, "--out", out)
    refused = polyseme(
        "prepare", f"{bucket}/texts/long.txt", "--language", "de", "--out", out, code=65
    )
    assert "was prepared with other settings" in " ".join(refused.stderr.split())
    polyseme("prepare", f"{bucket}/texts/more", "--language", "en", "--out", out, "--replace")
    store = open_store(out)
    made = b"".join(found[0] for e in store.list() if (found := store.read(e.name)))
    for text in (made, (done.stdout + done.stderr + refused.stderr).encode()):
        assert SECRET.encode() not in text
        assert ACCESS.encode() not in text


def test_nothing_at_an_address_is_said_so(bucket: str) -> None:  # noqa: F811
    found = polyseme("prepare", f"{bucket}/x", "--language", "en", "--out", f"{bucket}/y", code=66)
    assert f"There is no object, and nothing below it, at {bucket}/x" in " ".join(
        found.stderr.split()
    )
    found = polyseme("inspect", f"{bucket}/y", code=74)
    assert "holds nothing" in " ".join(found.stderr.split())


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return make_case(Path(tmp_path_factory.mktemp("case")))


_EMBED = ("--layers", "all", "--pca", "8", "--workers")
_INDEX = ("--words", "word7,word20,word3", "--workers")


@pytest.mark.parametrize("workers", [1, 2])
def test_vectors_from_and_to_a_bucket_are_the_local_ones(
    case: Case,
    tmp_path: Path,
    bucket: str,  # noqa: F811
    workers: int,
) -> None:
    corpus, model = upload(case.corpus.folder, f"{bucket}/c"), upload(case.model, f"{bucket}/m")
    local = ("embed", case.corpus.folder, "--model", case.model, "--out", tmp_path / "v")
    polyseme(*local, *_EMBED, "1")
    command = ("embed", corpus, "--model", model, "--out", f"{bucket}/v", *_EMBED, str(workers))
    assert f"polyseme vectors info {bucket}/v" in polyseme(*command).stdout
    fetched = local_folder(f"{bucket}/v")
    assert hashes(fetched, "vectors") == hashes(tmp_path / "v", "vectors")
    assert sha256_of(fetched / "manifest.json") == sha256_of(tmp_path / "v" / "manifest.json")
    assert "files are intact" in " ".join(
        polyseme("vectors", "info", f"{bucket}/v", "--verify").stdout.split()
    )
    before = {entry.name: entry.etag for entry in open_store(f"{bucket}/v").list()}
    again = polyseme(*command)
    assert "files from an earlier run were reused" in " ".join(again.stdout.split())
    found = {entry.name: entry.etag for entry in open_store(f"{bucket}/v").list()}
    assert found == before


def test_texts_are_prepared_in_the_bucket_and_embedded_there(
    case: Case,
    tmp_path: Path,
    bucket: str,  # noqa: F811
) -> None:
    texts = upload(case.text.parent / "model", f"{bucket}/m")
    store = open_store(f"{bucket}/texts")
    store.put(case.text, "text.txt")
    model = ("--model", texts, "--layers", "top", "--workers", "1")
    polyseme("embed", f"{bucket}/texts/text.txt", *model, "--out", f"{bucket}/v")
    polyseme("embed", case.text, *model, "--out", tmp_path / "v")
    assert hashes(local_folder(f"{bucket}/v"), "vectors") == hashes(tmp_path / "v", "vectors")


@pytest.mark.parametrize("workers", [1, 2])
def test_an_index_from_and_to_a_bucket_is_the_local_one(
    case: Case,
    tmp_path: Path,
    bucket: str,  # noqa: F811
    workers: int,
) -> None:
    corpus, model = upload(case.corpus.folder, f"{bucket}/c"), upload(case.model, f"{bucket}/m")
    local = ("index", case.corpus.folder, "--model", case.model, "--out", tmp_path / "i")
    polyseme(*local, *_INDEX, "1")
    command = ("index", corpus, "--model", model, "--out", f"{bucket}/i", *_INDEX, str(workers))
    assert f"--index {bucket}/i" in " ".join(polyseme(*command).stdout.split())
    for top in ("data", "uses"):
        assert hashes(local_folder(f"{bucket}/i"), top) == hashes(tmp_path / "i", top)
    names = [entry.name for entry in open_store(f"{bucket}/i").list()]
    tops = {name.split("/")[0] for name in names}
    assert tops == {"data", "uses", "config.toml", "manifest.json"}
    assert not any("/" in name.removeprefix("uses/") for name in names if name.startswith("uses"))
    assert "is intact" in polyseme(*command).stdout
    index = IndexFolder.open(Path(f"{bucket}/i"))
    index.check_corpus(Corpus.open(corpus))


def test_ranges_of_words_are_sorted_from_and_to_a_bucket(
    case: Case,
    tmp_path: Path,
    bucket: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(word_range, "BUFFER", 20_000)
    out = [tmp_path / "i", Path(f"{bucket}/i")]
    for where in out:
        values = {"corpus": case.corpus.folder, "model": case.model, "out": where}
        index(
            build(
                IndexConfig,
                {
                    **values,
                    "index": {"words": [f"word{n}" for n in range(30)]},
                    "executor": {"workers": 1},
                },
            )
        )
    here, there = (local_folder(where) for where in out)
    assert len(list((here / "uses").iterdir())) > 5
    for top in ("data", "uses"):
        assert hashes(there, top) == hashes(here, top)


def test_a_part_is_fetched_where_its_file_is_not(case: Case, bucket: str, tmp_path: Path) -> None:  # noqa: F811
    part = parts_of(Corpus.open(upload(case.corpus.folder, f"{bucket}/c")))[0]
    remote = tuple(replace(each, path=tmp_path / "x") for each in part.remote)
    elsewhere = replace(part, shard=tmp_path / "nowhere" / part.shard.name, remote=remote)
    staged = elsewhere.staged(tmp_path / "scratch")
    assert list(staged.sentences()) == list(part.sentences())
    assert ShardWords(words_of(staged.shard))[0].offsets[-1] > 0
