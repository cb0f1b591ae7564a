"""An index: the same uses as without it, and refused as soon as anything in it is not as it was."""

import json
import random
import shutil
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from executors.jobs import hashes
from pretraining.making import tiny_model

from meanings.making import make_corpus
from polyseme.commands.index import IndexConfig, run
from polyseme.config import build
from polyseme.errors import ConfigError, InputError, PolysemeError, UseIndexError
from polyseme.meanings.concordance.search import Query
from polyseme.meanings.concordance.uses import Uses, find_uses
from polyseme.meanings.features.use_features import UseFeatures
from polyseme.meanings.groups.grouping import group_uses
from polyseme.meanings.index import folder as index_folder
from polyseme.meanings.index import word_range
from polyseme.meanings.index.row_group import drawn
from polyseme.meanings.index.use_index import UseIndex, find_source, load_encoder, open_for
from polyseme.meanings.settings import UseIndexConfig
from polyseme.storage import folders
from polyseme.storage.files import describe_file, sha256_of
from polyseme.storage.folders import _DIGEST, _digest
from polyseme.storage.records import map_array
from polyseme.text.corpus import Corpus

WORDS = [f"word{number}" for number in range(30)]
Made = tuple[Corpus, Path, Path]


def documents(seed: int, number: int = 120) -> list[tuple[str, dict[str, Any]]]:
    choose = random.Random(seed)
    found = []
    for document in range(number):
        text = " . ".join(" ".join(choose.choices(WORDS, k=7)) for _ in range(4)) + " ."
        text = text.replace("word1 ", "Word1 ") if document % 3 else text
        meta = {"year": str(1800 + document)} if document % 5 else {}
        found.append((text, meta))
    return found


def make_index(model: Path, corpus: Corpus, out: Path, **settings: Any) -> UseIndex:
    values = {"model": model, "corpus": corpus.folder, "out": out, "replace": False,
              "executor": {"workers": 1}, **settings}  # fmt: skip
    values["index"] = {"min_uses": 5, **settings.get("index", {})}
    run(build(IndexConfig, values))
    return UseIndex.open(out)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A corpus in many parts, a model, and the index of all its content words."""
    folder = Path(tmp_path_factory.mktemp("index"))
    corpus = make_corpus(folder / "c", documents(1), meta=("year",), shard_bytes=4096)
    torch.manual_seed(1)
    tiny_model(corpus).save(folder / "model", card="A model for tests.")
    # Words of thirty are all frequent: they are named.
    make_index(folder / "model", corpus, folder / "index", index={"words": WORDS})
    assert len(corpus.shards) > 3
    return corpus, folder / "model", folder / "index"


def substitutes(features: UseFeatures) -> list[list[int]]:
    assert features.substitutes is not None
    found: list[list[int]] = features.substitutes.tolist()
    return found


def same_uses(one: Uses, two: Uses) -> bool:
    return (
        one.sentences() == two.sentences()
        and np.array_equal(one.spans, two.spans)
        and all(one.metadata(name) == two.metadata(name) for name in ("document", "year"))
        and [use.text for use in one[:3]] == [use.text for use in two[:3]]
    )


@pytest.mark.parametrize(
    ("query", "where"),
    [
        (Query.of("word1"), ()),
        (Query.of("Word1", case_sensitive=True), ()),
        (Query.of("word7", forms=("word9", "word3")), ()),
        (Query.of(regex="word2[0-9]"), ()),
        (Query.of("word5"), ("year<1850",)),
        (Query.of("word5"), ("year=",)),
        (Query.of("word5"), ("year>3000",)),
        (Query.of("word5"), ("not (year<1850 or year=) and document~d",)),
    ],
)
def test_an_index_has_the_same_uses_with_the_same_features(
    made: Made, query: Query, where: tuple[str, ...]
) -> None:
    corpus, model, folder = made
    lazy = find_uses(corpus, query, where=where)
    found = UseIndex.open(folder).find(corpus, query, where=where)
    assert len(lazy) == len(found.uses)
    assert same_uses(lazy, found.uses)
    ours, theirs = found.encode(found.uses), load_encoder(str(model), corpus).encode(lazy)
    assert np.allclose(ours.context, theirs.context, atol=2e-3)
    assert np.allclose(ours.bag, theirs.bag, atol=2e-3)
    assert substitutes(ours) == substitutes(theirs)
    some = np.arange(1, len(lazy), 3)
    picked = found.encode(found.uses.select(some))
    assert np.array_equal(picked.context, ours.context[some])


def test_with_same_bits_an_index_is_the_same(made: Made, tmp_path: Path) -> None:
    corpus, model, folder = made
    same = {"workers": 1, "same_bits": True}
    words = {"words": WORDS}
    found = make_index(model, corpus, tmp_path / "i", index=words, executor=same)
    uses = found.find(corpus, "word1")
    before = UseIndex.open(folder).find(corpus, "word1")
    assert np.array_equal(uses.encode(uses.uses).context, before.encode(before.uses).context)
    assert len(found.files.manifest["environments"]) == 1


def test_groups_by_the_index_are_those_by_the_model(made: Made) -> None:
    corpus, model, folder = made
    lazy = find_source(corpus, Query.of("word1"), model=str(model))
    quick = find_source(corpus, Query.of("word1"), model=str(model), index=folder)
    one, two = (group_uses(each.encoder.encode(each.uses)) for each in (lazy, quick))
    assert (one.labels == two.labels).mean() > 0.97  # rounding may move a use at the edge
    assert lazy.encoder.words == quick.encoder.words


def test_an_index_needs_no_model(made: Made) -> None:
    corpus, _, folder = made
    assert len(find_source(corpus, Query.of("word1"), index=folder).uses) > 50
    with pytest.raises(ConfigError, match="layer"):
        find_source(corpus, Query.of("word1"), index=folder, layer=1)


def test_what_an_index_does_not_have_is_said(made: Made, tmp_path: Path) -> None:
    corpus, model, folder = made
    index = UseIndex.open(folder)
    with pytest.raises(InputError, match="single words"):
        index.find(corpus, "word1 word2")
    with pytest.raises(InputError, match="has no use of 'wurd'"):
        index.find(corpus, "wurd")
    few = make_index(model, corpus, tmp_path / "few", index={"words": ["word1"]})
    with pytest.raises(InputError, match="made for other words"):
        few.find(corpus, "word2")


def test_another_corpus_or_model_is_refused(made: Made, tmp_path: Path) -> None:
    corpus, _, folder = made
    other = make_corpus(tmp_path / "c", documents(2), meta=("year",))
    with pytest.raises(UseIndexError, match="is not an index of"):
        open_for(folder, other)
    torch.manual_seed(2)
    tiny_model(corpus).save(tmp_path / "model", card="Another.")
    with pytest.raises(UseIndexError, match="another model"):
        open_for(folder, corpus, str(tmp_path / "model"))


def test_a_finished_index_is_left_alone_mended_or_replaced_if_asked(
    made: Made, tmp_path: Path
) -> None:
    corpus, model, _ = made
    out, chosen = tmp_path / "i", {"words": ["word1", "word2"]}
    make_index(model, corpus, out, index=chosen)
    before = hashes(out)
    make_index(model, corpus, out, index=chosen)
    assert hashes(out) == before
    data = next(out.glob("uses/*.bin"))
    data.write_bytes(bytes(len(data.read_bytes())))
    make_index(model, corpus, out, index=chosen)
    assert hashes(out) == before
    with pytest.raises(UseIndexError, match="--replace"):
        make_index(model, corpus, out, index={"words": ["word3"]})
    assert hashes(out) == before
    assert len(make_index(model, corpus, out, index={"words": ["word3"]}, replace=True)) > 50
    assert len(list(out.glob("uses/*.bin"))) == 1
    assert {path.name for path in out.iterdir()} == {"data", "uses", "manifest.json", "config.toml"}
    assert all(path.is_file() for path in (out / "uses").iterdir())


def test_an_index_of_a_corpus_that_was_changed_is_not_taken_for_finished(
    made: Made, tmp_path: Path
) -> None:
    _, model, _ = made
    chosen = {"words": ["word1", "word2"]}
    corpus = make_corpus(tmp_path / "c", documents(1), meta=("year",))
    make_index(model, corpus, tmp_path / "i", index=chosen)
    shutil.rmtree(tmp_path / "c")
    changed = make_corpus(tmp_path / "c", documents(1, number=100), meta=("year",))
    with pytest.raises(UseIndexError, match="another corpus, or of this one as it was"):
        make_index(model, changed, tmp_path / "i", index=chosen)
    again = make_index(model, changed, tmp_path / "i", index=chosen, replace=True)
    assert same_uses(again.find(changed, "word1").uses, find_uses(changed, "word1"))


def test_a_small_buffer_gives_the_same_index(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, model, folder = made
    monkeypatch.setattr(word_range, "BUFFER", 50_000)  # some words at a time, some by themselves
    make_index(model, corpus, tmp_path / "i", index={"words": WORDS})
    small = sorted((tmp_path / "i" / "uses").iterdir())
    [whole] = (folder / "uses").iterdir()
    assert len(small) > 10
    assert b"".join(path.read_bytes() for path in small) == whole.read_bytes()
    one, other = UseIndex.open(folder), UseIndex.open(tmp_path / "i")
    assert len(one) == len(other)
    for query in (Query.of("word1"), Query.of(regex="word[0-9]+")):
        first, second = one.find(corpus, query), other.find(corpus, query)
        assert same_uses(first.uses, second.uses)
        expected, found = first.encode(first.uses), second.encode(second.uses)
        assert np.array_equal(found.context, expected.context)
        assert substitutes(found) == substitutes(expected)


def test_ranges_that_were_sorted_are_not_sorted_again(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, model, folder = made
    monkeypatch.setattr(word_range, "BUFFER", 50_000)
    in_order, sorted_now = word_range._in_order, list[int]()

    def dies_at(last: int) -> Any:
        def in_order_or_death(pieces: Any, words: word_range.WordRange, kind: Any) -> Any:
            if words.number == last:
                raise KeyboardInterrupt
            sorted_now.append(words.number)
            return in_order(pieces, words, kind)

        return in_order_or_death

    monkeypatch.setattr(word_range, "_in_order", dies_at(5))
    with pytest.raises(KeyboardInterrupt):
        make_index(model, corpus, tmp_path / "i", index={"words": WORDS})
    assert max(sorted_now) == 4
    sorted_now.clear()
    monkeypatch.setattr(word_range, "_in_order", dies_at(-1))
    make_index(model, corpus, tmp_path / "i", index={"words": WORDS})
    assert min(sorted_now) == 5
    [whole] = (folder / "uses").iterdir()
    found = b"".join(path.read_bytes() for path in sorted((tmp_path / "i" / "uses").iterdir()))
    assert found == whole.read_bytes()


def test_very_many_ranges_stand_in_a_table_beside_the_manifest(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, model, folder = made
    out = tmp_path / "i"
    monkeypatch.setattr(word_range, "BUFFER", 50_000)
    monkeypatch.setattr(folders, "_MOST_IN_JSON", 15)
    make_index(model, corpus, out, index={"words": WORDS})
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert folders.FILES in manifest["files"]
    assert not any(name.startswith("uses/") for name in manifest["files"])
    assert len(UseIndex.open(out).files.uses_files) == len(list((out / "uses").iterdir())) > 10
    expected, found = (UseIndex.open(each).find(corpus, "word1") for each in (folder, out))
    assert same_uses(found.uses, expected.uses)
    assert not UseIndex.open(out).files.damaged_files()
    before = hashes(out)
    make_index(model, corpus, out, index={"words": WORDS})
    assert hashes(out) == before


def test_an_index_of_format_3_is_read(made: Made, tmp_path: Path) -> None:
    """Its uses are in one file, and its words have no ranges."""
    corpus, _, folder = made
    out = tmp_path / "i"
    shutil.copytree(folder, out)
    [uses] = (out / "uses").iterdir()
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    key, files = manifest["key"], manifest["files"]
    files[f"data/uses-{key}.bin"] = files.pop(f"uses/{uses.name}")
    uses.rename(out / "data" / f"uses-{key}.bin")
    words = out / "data" / f"words-{key}.parquet"
    pq.write_table(pq.read_table(words).drop_columns("range"), words)
    files[f"data/{words.name}"] = describe_file(words)
    metadata = {name: manifest[name] for name in manifest if name not in _NOT_METADATA}
    manifest |= {"format": 3, _DIGEST: _digest(metadata)}
    (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    expected, found = (UseIndex.open(each).find(corpus, "word1") for each in (folder, out))
    assert same_uses(found.uses, expected.uses)
    assert np.array_equal(found.encode(found.uses).bag, expected.encode(expected.uses).bag)


def test_parts_do_not_stay_open_while_they_are_merged(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be more of them than files that may be open."""
    corpus, model, _ = made
    mapped: list[weakref.ref[Any]] = []
    most = 0

    def noted(*given: Any) -> Any:
        nonlocal most
        array = map_array(*given)
        mapped.append(weakref.ref(array))
        most = max(most, sum(each() is not None for each in mapped))
        return array

    monkeypatch.setattr(word_range, "map_array", noted)
    make_index(model, corpus, tmp_path / "i", index={"words": WORDS})
    assert len(mapped) == 2 * len(corpus.shards)
    assert most <= 4


def test_uses_beyond_the_most_are_drawn_evenly_and_the_same_every_time(made: Made) -> None:
    config = UseIndexConfig(max_uses=1_000)
    sentences, begins = np.divmod(np.arange(200_000), 5)
    kept = drawn(config, sentences, begins, np.full(200_000, 200_000))
    assert 900 < kept.sum() < 1_100
    quarters = kept.reshape(4, -1).sum(axis=1)
    assert quarters.min() > 180
    assert abs(np.corrcoef(kept[:-1], kept[1:])[0, 1]) < 0.02
    other = drawn(
        config.model_copy(update={"seed": 2}), sentences, begins, np.full(200_000, 200_000)
    )
    assert (kept & other).sum() < 50
    assert drawn(config, sentences, begins, np.full(200_000, 1_000)).sum() == 200_000


def test_a_drawn_index_says_so(made: Made, tmp_path: Path) -> None:
    corpus, model, _ = made
    index = make_index(model, corpus, tmp_path / "i", index={"words": ["word4"], "max_uses": 30})
    found = index.find(corpus, "word4")
    assert 10 < len(found.uses) < 60
    total = len(find_uses(corpus, "word4"))
    assert found.notes == [
        f"The index has {len(found.uses)} of the {total} uses in the corpus, a random sample."
    ]


def test_content_words_are_neither_rare_nor_everywhere(made: Made, tmp_path: Path) -> None:
    texts: list[tuple[str, dict[str, Any]]] = [
        (f"the t{n % 700} of {'plant' if n % 40 == 0 else 'x'} 7 .", {}) for n in range(3_000)
    ]
    corpus = make_corpus(tmp_path / "c", texts)
    index = make_index(made[1], corpus, tmp_path / "i", index={"min_uses": 5})
    with pytest.raises(InputError, match="made for other words"):
        index.find(corpus, "the")
    with pytest.raises(InputError, match="made for other words"):
        index.find(corpus, "t600")
    assert len(index.find(corpus, "t1").uses) == 5
    with pytest.raises(InputError, match="no content word"):
        make_index(made[1], corpus, tmp_path / "j", index={"min_uses": 4_000})


@pytest.mark.parametrize("mutants", [80, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_bit_of_a_feature_can_change_unnoticed(made: Made, tmp_path: Path, mutants: int) -> None:
    corpus, _, folder = made
    good = UseIndex.open(folder).find(corpus, "word1")
    expected = good.encode(good.uses)
    shutil.copytree(folder, tmp_path / "i")
    choose = random.Random(1)
    refused = 0
    # Sentences and their words are not held against a hash when they are read.
    files = [path for path in (tmp_path / "i").glob("*/*") if path.suffix != ".npy"]
    for file in sorted(files):
        whole = file.read_bytes()
        for turn in range(1 + mutants // len(files)):
            at = choose.randrange(len(whole))
            changed = bytes([whole[at] ^ (1 << choose.randrange(8))])
            file.write_bytes(whole[:at] + changed + whole[at + 1 :] if turn else whole[:at])
            try:
                found = UseIndex.open(tmp_path / "i").find(corpus, "word1")
                features = found.encode(found.uses)
            except UseIndexError as error:
                assert "index command again" in str(error)  # noqa: PT017
                refused += 1
                continue
            # A bit of another word, or of another sentence.
            assert same_uses(found.uses, good.uses)
            assert np.array_equal(features.context, expected.context)
            assert substitutes(features) == substitutes(expected)
        file.write_bytes(whole)
        file.unlink()
        with pytest.raises(UseIndexError):
            UseIndex.open(tmp_path / "i")
        file.write_bytes(whole)
    assert refused > mutants // 2


WRONG: list[Any] = [None, -1, 0, 10**12, "x", [], {}, True, 1.5]


def test_a_hostile_manifest_is_refused_in_words(made: Made, tmp_path: Path) -> None:
    corpus, _, folder = made
    shutil.copytree(folder, tmp_path / "i")
    path = tmp_path / "i" / "manifest.json"
    good = json.loads(path.read_text(encoding="utf-8"))
    refused = tried = 0
    for name, value in good.items():
        inner = {**value} if isinstance(value, dict) else {}
        wrong = [{**good, name: each} for each in WRONG]
        wrong += [{**good, name: {**inner, key: each}} for key in inner for each in WRONG]
        for manifest in wrong:
            tried += 1
            metadata = {key: manifest[key] for key in good if key not in _NOT_METADATA}
            path.write_text(json.dumps({**manifest, _DIGEST: _digest(metadata)}), "utf-8")
            try:
                UseIndex.open(tmp_path / "i").find(corpus, "word1")
            except PolysemeError:
                refused += 1
    assert tried > 200
    assert refused > tried // 2


_NOT_METADATA = ("artifact", "format", "files", _DIGEST)


def test_one_that_is_replaced_while_it_is_read_stays_what_it_was(
    made: Made, tmp_path: Path
) -> None:
    corpus, model, _ = made
    out = tmp_path / "i"
    make_index(model, corpus, out, index={"words": ["word1", "word2"]})
    old = UseIndex.open(out)
    expected = old.find(corpus, "word1").uses.sentences()
    make_index(model, corpus, out, index={"words": ["word1"], "max_uses": 20}, replace=True)
    assert old.find(corpus, "word1").uses.sentences() == expected
    assert len(UseIndex.open(out).find(corpus, "word1").uses) < 60


def test_an_unfinished_or_strange_folder_is_no_index(made: Made, tmp_path: Path) -> None:
    corpus, model, _ = made
    (tmp_path / "parts").mkdir()
    with pytest.raises(UseIndexError, match="an index was expected"):
        UseIndex.open(tmp_path)
    with pytest.raises(UseIndexError, match="holds a corpus"):
        UseIndex.open(corpus.folder)
    with pytest.raises(UseIndexError, match="other things"):
        make_index(model, corpus, tmp_path, index={"words": ["word1"]})
    with pytest.raises(UseIndexError, match="holds a model"):
        make_index(model, corpus, model, index={"words": ["word1"]}, replace=True)


def test_a_file_that_goes_while_it_is_looked_at_is_no_damage(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another index may take its place at any moment: the next look finds that one."""
    corpus, _, folder = made
    gone: list[Path] = []

    def goes_once(path: Path) -> str:
        if not gone:
            gone.append(path)
            raise FileNotFoundError(2, "No such file", str(path))
        return sha256_of(path)

    monkeypatch.setattr(index_folder, "sha256_of", goes_once)
    assert UseIndex.open(folder).find(corpus, "word1").uses
    assert len(gone) == 1
