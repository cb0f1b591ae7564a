"""Layers of a frozen model, worked out once and kept on disk."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from reliability.victims import harm, make_victims, snapshot

from polyseme.config import build
from polyseme.embedding.embedder import Embedder
from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.loader import Kernel
from polyseme.errors import StorageError, VectorsError
from polyseme.tasks.embeddings import cache as caching
from polyseme.tasks.embeddings.cachefolder import LAYERS, MANIFEST, list_caches, trim_caches
from polyseme.tasks.embeddings.features import Sentences
from polyseme.tasks.embeddings.frozen import Cached, Frozen, FrozenConfig, LayerSource
from tasks.embeddings.making import EMBEDDINGS, SENTENCES, embeddings_of
from tasks.embeddings.test_embeddings import train_a_little

LONG = [*SENTENCES, [SENTENCES[1][0]] * 90, SENTENCES[0]]


def frozen(folder: Path, model: Path, cache: dict[str, Any] | None = None, **more: Any) -> Frozen:
    values = {"model": model, "cache": {"folder": folder, **(cache or {})}, **more}
    return Frozen.load(build(FrozenConfig, values), device="cpu")


def source(made: Frozen, sentences: list[list[str]] = LONG, **told: Any) -> LayerSource:
    return made.source(Sentences(sentences), **told)


def gather(source: LayerSource, *numbers: int) -> NDArray[Any]:
    return source.gather(np.array(numbers)).numpy()


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("the layers are worked out again")


@pytest.mark.parametrize("name", ["elmo", "gpt", "bert", "word2vec"])
def test_cached_layers_are_those_of_the_embedder_to_the_last_bit(
    name: str, models: dict[str, Path], tmp_path: Path
) -> None:
    made = source(frozen(tmp_path, models[name], {"dtype": "float32"}, batch_invariant=True))
    embedder = Embedder.load(models[name], device="cpu")
    for number, words in enumerate(LONG):
        alone = next(iter(embedder.stream([words], batch_invariant=True)))
        assert np.array_equal(gather(made, number)[0], alone.transpose(1, 0, 2))


def test_half_the_room_costs_the_fourth_digit(models: dict[str, Path], tmp_path: Path) -> None:
    half = gather(source(frozen(tmp_path, models["elmo"])), *range(len(LONG)))
    whole = gather(source(frozen(tmp_path, models["elmo"]), use_cache=False), *range(len(LONG)))
    assert half.dtype == np.float16
    assert whole.dtype == np.float32
    assert np.allclose(half, whole, rtol=1e-3, atol=1e-6)


def test_a_batch_has_zeros_after_short_sentences(models: dict[str, Path], tmp_path: Path) -> None:
    found = gather(source(frozen(tmp_path, models["elmo"])), 2, 0)
    assert found.shape == (2, 3, 3, 16)
    assert not found[0, 1:].any()
    assert found[1].any(axis=(1, 2)).all()


def test_a_second_opening_works_nothing_out(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = gather(source(frozen(tmp_path, models["elmo"])), 0, 1)
    monkeypatch.setattr("polyseme.tasks.embeddings.frozen.make_cache", never)
    assert np.array_equal(gather(source(frozen(tmp_path, models["elmo"])), 0, 1), first)


def test_layers_made_without_the_kernel_are_not_taken_for_those_made_with_it(
    models: dict[str, Path], tmp_path: Path, library: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kernel in (None, library, None):
        monkeypatch.setattr(loader, "load", lambda chosen=kernel: chosen)
        made = source(frozen(tmp_path, models["elmo"]))
        assert isinstance(made, Cached)
        told = made.cache.origin.environment["kernel"]
        assert (told == "none") == (kernel is None)
    assert len(list_caches(tmp_path)) == 2


@pytest.mark.parametrize(
    "change",
    [
        ("torch.__version__", "0.0"),
        ("torch.backends.cpu.get_cpu_capability", lambda: "OTHER"),
        ("torch.get_num_threads", lambda: 99),
    ],
    ids=lambda change: change[0],
)
def test_layers_made_in_another_environment_are_another_cache(
    models: dict[str, Path],
    tmp_path: Path,
    change: tuple[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = frozen(tmp_path, models["elmo"])
    lengths = np.array([len(words) for words in SENTENCES])
    before = made.origin(SENTENCES, lengths)
    assert made.origin(SENTENCES, lengths).key == before.key
    monkeypatch.setattr(*change)
    assert made.origin(SENTENCES, lengths).key != before.key


def test_a_sentence_that_stands_twice_is_kept_once(models: dict[str, Path], tmp_path: Path) -> None:
    source(frozen(tmp_path, models["elmo"]), [SENTENCES[0]] * 50)
    (entry,) = list_caches(tmp_path)
    assert entry.num_bytes == 3 * 3 * 16 * 2 + 4


@pytest.mark.parametrize(
    "change",
    [
        {"sentences": [*SENTENCES[:-1], ["other"]]},
        {"sentences": [*SENTENCES[:-1], ["odd", *SENTENCES[-1][1:]]]},
        {"sentences": [SENTENCES[0][:1], SENTENCES[0][1:], *SENTENCES[1:]]},
        {"model": "plain elmo"},
        {"cache": {"dtype": "float32"}},
        {"precision": "bfloat16"},
        {"batch_invariant": True},
    ],
    ids=str,
)
def test_other_words_models_or_settings_have_another_cache(
    change: dict[str, Any], models: dict[str, Path], tmp_path: Path
) -> None:
    source(frozen(tmp_path, models["elmo"]), SENTENCES)
    told = {**change}
    sentences = told.pop("sentences", SENTENCES)
    source(frozen(tmp_path, models[told.pop("model", "elmo")], **told), sentences)
    assert len(list_caches(tmp_path)) == 2


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 1)


def grow(file: Path) -> None:
    with file.open("ab") as stream:
        stream.write(b"\0")


def flip(file: Path, place: int = 0) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 0x40
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        (LAYERS, cut),
        (LAYERS, grow),
        (LAYERS, flip),
        (LAYERS, lambda file: flip(file, -1)),
        (LAYERS, Path.unlink),
        (MANIFEST, cut),
        (MANIFEST, Path.unlink),
        (MANIFEST, lambda file: file.write_text("{}")),
        (MANIFEST, lambda file: file.write_text("[" * 3)),
        (MANIFEST, lambda file: file.write_text(file.read_text().replace("float16", "float32"))),
    ],
)
def test_a_damaged_cache_is_made_anew(
    name: str, damage: Any, models: dict[str, Path], tmp_path: Path
) -> None:
    expected = gather(source(frozen(tmp_path, models["elmo"])), *range(len(LONG)))
    (entry,) = list_caches(tmp_path)
    damage(entry.path / name)
    found = gather(source(frozen(tmp_path, models["elmo"])), *range(len(LONG)))
    assert np.array_equal(found, expected)
    assert len(list_caches(tmp_path)) == 1


def test_damage_in_any_sentence_is_met_when_it_is_read(
    models: dict[str, Path], tmp_path: Path
) -> None:
    made = source(frozen(tmp_path, models["elmo"]))
    expected = gather(made, 1)
    (entry,) = list_caches(tmp_path)
    flip(entry.path / LAYERS, (len(LONG[0]) + 2) * 3 * 16 * 2)  # in sentence 1, which is no sample
    opened = source(frozen(tmp_path, models["elmo"]))
    gather(opened, 0, 2)
    with pytest.raises(VectorsError, match="sentence 1 is not as it was written"):
        gather(opened, 1)
    assert np.array_equal(gather(source(frozen(tmp_path, models["elmo"])), 1), expected)


def test_a_cache_of_other_numbers_is_not_believed(models: dict[str, Path], tmp_path: Path) -> None:
    """As after a change of code that changes vectors: manifest, size and checksums all fit."""
    made = frozen(tmp_path, models["elmo"])
    distinct = SENTENCES
    lengths = np.array([len(words) for words in distinct])
    origin = made.origin(distinct, lengths)
    foreign = [vectors + 0.05 for vectors in made.layers(distinct)]
    caching.make_cache(made.config.cache, origin, foreign)
    assert caching.open_cache(tmp_path, origin, lengths) is not None
    found = gather(source(made, SENTENCES), 0)
    right = gather(source(made, SENTENCES, use_cache=False), 0)
    assert np.allclose(found, right, rtol=1e-3, atol=1e-6)


def test_a_cache_that_would_not_fit_is_refused_with_its_size(
    models: dict[str, Path], tmp_path: Path
) -> None:
    sentences = [[f"w{n}", *SENTENCES[1]] for n in range(2_000)]
    num_bytes = 20_000 * 3 * 16 * 2 + 4 * 2_000
    with pytest.raises(StorageError, match=r"would take 0\.00193 GB.*max_gigabytes is 0\.001"):
        source(frozen(tmp_path, models["elmo"], {"max_gigabytes": 0.001}), sentences)
    assert list_caches(tmp_path) == []
    made = frozen(tmp_path, models["elmo"])
    assert made.origin(sentences, np.full(2_000, 10)).num_bytes == num_bytes


def test_all_caches_of_a_folder_count(models: dict[str, Path], tmp_path: Path) -> None:
    source(frozen(tmp_path, models["elmo"]), SENTENCES)
    held = list_caches(tmp_path)[0].num_bytes
    small = frozen(tmp_path, models["elmo"], {"max_gigabytes": (held + 100) / 1e9})
    source(small, SENTENCES)  # it is there already
    with pytest.raises(StorageError, match="in 1 caches"):
        source(small, SENTENCES[:2])


def test_a_full_disk_is_told_beforehand(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        free = 10

    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage)
    with pytest.raises(StorageError, match="has 1e-08 GB left"):
        source(frozen(tmp_path, models["elmo"]))


def test_work_that_is_cut_short_leaves_no_cache(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = frozen(tmp_path, models["elmo"])
    whole = made.layers

    def fails(sentences: list[Any]) -> Any:
        yield from list(whole(sentences))[:2]
        raise KeyboardInterrupt

    monkeypatch.setattr(made, "layers", fails)
    with pytest.raises(KeyboardInterrupt):
        source(made)
    assert list(tmp_path.iterdir()) == []


def test_numbers_too_large_for_float16_are_refused(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = frozen(tmp_path, models["elmo"])
    whole = made.layers
    monkeypatch.setattr(made, "layers", lambda s: (1e6 * vectors for vectors in whole(s)))
    with pytest.raises(VectorsError, match=r"Set cache\.dtype = 'float32'"):
        source(made)


def test_a_cache_whose_manifest_tells_of_another_is_not_opened(
    models: dict[str, Path], tmp_path: Path
) -> None:
    made = frozen(tmp_path, models["elmo"])
    source(made, SENTENCES)
    lengths = np.array([len(words) for words in SENTENCES])
    origin = made.origin(SENTENCES, lengths)
    assert caching.open_cache(tmp_path, origin, lengths) is not None
    manifest = tmp_path / origin.key / MANIFEST
    manifest.write_text(manifest.read_text().replace(origin.words, "0" * 64))
    assert caching.open_cache(tmp_path, origin, lengths) is None


def test_the_longest_idle_are_removed_first(models: dict[str, Path], tmp_path: Path) -> None:
    made = frozen(tmp_path, models["elmo"])
    paths = []
    for number in range(3):
        key = made.origin([SENTENCES[number]], np.array([len(SENTENCES[number])])).key
        source(made, [SENTENCES[number]])
        paths.append(tmp_path / key)
        os.utime(paths[-1] / MANIFEST, (1e9 + number, 1e9 + number))
    source(made, [SENTENCES[0]])  # opened again: no longer idle
    entries = list_caches(tmp_path)
    assert [entry.path for entry in entries] == [paths[1], paths[2], paths[0]]
    removed = trim_caches(tmp_path, sum(entry.num_bytes for entry in entries[1:]) / 1e9)
    assert [entry.path for entry in removed] == paths[1:2]
    trim_caches(tmp_path, 0)
    assert list_caches(tmp_path) == []


def test_training_leaves_a_frozen_model_as_it_was(models: dict[str, Path], tmp_path: Path) -> None:
    files = {path: path.read_bytes() for path in models["elmo"].iterdir() if path.is_file()}
    embeddings = embeddings_of(EMBEDDINGS["frozen at both ends"], models, tmp_path)
    assert embeddings._frozen is not None
    assert isinstance(embeddings._frozen.embedder, Embedder)
    network = embeddings._frozen.embedder.model.network
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    train_a_little(embeddings)
    after = network.state_dict()
    assert all(torch.equal(weight, after[name]) for name, weight in before.items())
    assert not network.training
    assert {path: path.read_bytes() for path in files} == files
    assert not any("encoder" in name for name in embeddings.state_dict())


# --- links in the folder of caches ---------------------------------------------------------


def linked_caches(folder: Path, models: dict[str, Path]) -> tuple[Path, Path]:
    """A cache moved away with a link left in its place, and what it was moved to."""
    source(frozen(folder / "cache", models["elmo"]))
    (entry,) = list_caches(folder / "cache")
    moved = make_victims(folder / "victims") / "cache"
    entry.path.rename(moved)
    entry.path.symlink_to(moved)
    (folder / "cache" / "other").symlink_to(folder / "victims")  # which holds a layers.bin
    return folder / "cache", folder / "victims"


def test_a_link_to_a_cache_is_replaced_and_what_it_leads_to_left(
    models: dict[str, Path], tmp_path: Path
) -> None:
    cache, victims = linked_caches(tmp_path, models)
    before = snapshot(victims)
    source(frozen(cache, models["elmo"]))
    (entry,) = list_caches(cache)
    assert not entry.path.is_symlink()
    trim_caches(cache, 0)
    assert harm(before, snapshot(victims)) == []


def test_old_work_is_not_removed_through_a_link(models: dict[str, Path], tmp_path: Path) -> None:
    cache, victims = linked_caches(tmp_path, models)
    (cache / ".work").symlink_to(victims)
    before = snapshot(victims)
    trim_caches(cache, 0)
    with pytest.raises(StorageError, match=r"\.work is a link"):
        source(frozen(cache, models["elmo"]))
    assert harm(before, snapshot(victims)) == []


@pytest.mark.parametrize("is_hard", [False, True])
def test_a_manifest_that_is_another_file_too_keeps_its_time(
    models: dict[str, Path], tmp_path: Path, is_hard: bool
) -> None:
    source(frozen(tmp_path / "cache", models["elmo"]))
    (entry,) = list_caches(tmp_path / "cache")
    manifest, other = entry.path / MANIFEST, tmp_path / "other"
    manifest.rename(other)
    manifest.hardlink_to(other) if is_hard else manifest.symlink_to(other)
    os.utime(other, (1e9, 1e9))
    source(frozen(tmp_path / "cache", models["elmo"]))
    assert other.stat().st_mtime == 1e9


def test_words_order_and_ends_of_sentences_are_all_hashed() -> None:
    """The letters are always the same."""
    sets = [
        [["a", "b"], ["c", "d"]],
        [["a"], ["b", "c", "d"]],
        [["a", "b", "c", "d"]],
        [["ab"], ["cd"]],
        [["ab", "cd"]],
        [["a", "bcd"]],
        [["c", "d"], ["a", "b"]],
        [["a", "b"], [], ["c", "d"]],
    ]
    assert len({caching.hash_words(sentences) for sentences in sets}) == len(sets)
