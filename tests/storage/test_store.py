"""Names to bytes, alike in a folder and in a bucket."""

import io
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from bucket import bucket, s3  # noqa: F401

from polyseme.errors import ConfigError, StorageError
from polyseme.storage.store import Store, is_url, open_store, url_of


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return open_store((tmp_path / "store").as_uri())
    return open_store(f"{request.getfixturevalue('bucket')}/some/where")


def test_what_is_put_is_listed_and_read(store: Store, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"0123456789")
    store.put(tmp_path / "x", "shards/b.txt")
    store.put(tmp_path / "x", "shards/a.txt")
    assert store.create("top.json", b"{}")
    assert [(e.name, e.size) for e in store.list()] == [
        ("shards/a.txt", 10),
        ("shards/b.txt", 10),
        ("top.json", 2),
    ]
    assert [e.name for e in store.list("shards")] == ["shards/a.txt", "shards/b.txt"]
    found = store.read("shards/a.txt")
    assert found is not None
    assert found[0] == b"0123456789"
    head = store.head("shards/a.txt")
    assert head is not None
    assert (head.size, head.etag) == (10, found[1])
    assert store.read("nothing") is None
    assert store.head("nothing") is None


def test_a_span_is_fetched_only_from_the_object_that_was_listed(store: Store) -> None:
    store.create("x", b"0123456789")
    entry = store.head("x")
    assert entry is not None
    into = io.BytesIO()
    store.fetch("x", into, (3, 7), entry.etag)
    assert into.getvalue() == b"3456"
    assert store.replace_if("x", b"something else", entry.etag)
    with pytest.raises(StorageError, match="was changed since it was listed"):
        store.fetch("x", io.BytesIO(), (3, 7), entry.etag)
    store.delete(["x"])
    with pytest.raises(StorageError, match="is gone"):
        store.fetch("x", io.BytesIO(), (3, 7), entry.etag)


def test_one_of_many_writers_creates_a_name(store: Store) -> None:
    for number in range(8):
        with ThreadPoolExecutor(8) as threads:
            won = list(threads.map(lambda i, n=number: store.create(f"r/{n}", b"%d" % i), range(8)))
        assert won.count(True) == 1
        found = store.read(f"r/{number}")
        assert found is not None
        assert found[0] == b"%d" % won.index(True)


def test_what_one_has_written_oneself_is_no_refusal(store: Store) -> None:
    assert store.create("x", b"same")
    assert store.create("x", b"same")
    assert not store.create("x", b"other")


def test_only_what_was_seen_is_replaced(store: Store) -> None:
    assert store.replace_if("manifest", b"one", None)
    assert not store.replace_if("manifest", b"two", None)
    seen = store.read("manifest")
    assert seen is not None
    assert store.replace_if("manifest", b"three", seen[1])
    assert not store.replace_if("manifest", b"four", seen[1])
    found = store.read("manifest")
    assert found is not None
    assert found[0] == b"three"


def test_deleting_what_is_not_there_is_no_error(store: Store) -> None:
    store.create("x", b"")
    store.delete(["x", "y"])
    store.delete([])
    assert not list(store.list())


def test_a_large_file_arrives_whole(store: Store, tmp_path: Path) -> None:
    content = bytes(range(256)) * (80 << 10)  # 20 MB, in parts
    (tmp_path / "x").write_bytes(content)
    store.put(tmp_path / "x", "large")
    entry = store.head("large")
    assert entry is not None
    into = io.BytesIO()
    store.fetch("large", into, (0, entry.size), entry.etag)
    assert into.getvalue() == content


def test_a_store_travels_without_keys(store: Store) -> None:
    assert b"secret" not in pickle.dumps(store)
    assert pickle.loads(pickle.dumps(store)) == store


def test_refused_credentials_are_explained_without_naming_them(
    bucket: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "0")
    missing = open_store("s3://no-such-bucket-here/x")
    with pytest.raises(StorageError, match="there is no such bucket"):
        missing.create("x", b"")


def test_an_address_with_a_key_in_it_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match="holds a key") as caught:
        open_store("s3://AKIA:topsecret@bucket/x")
    assert "topsecret" not in str(caught.value)
    with pytest.raises(ConfigError, match="names no bucket"):
        open_store("s3://")


def test_an_address_is_known_also_as_a_path() -> None:
    assert is_url("s3://b/x")
    assert is_url(Path("gs://b/x"))
    assert not is_url("hf:models/bert")
    assert not is_url("C:/texts")
    assert not is_url("folder/s3")
    assert url_of(Path("s3://b/x/")) == "s3://b/x"
    assert url_of("file:///tmp/x") == "file:///tmp/x"
