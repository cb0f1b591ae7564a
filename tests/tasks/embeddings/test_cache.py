"""Layers of a frozen model, worked out once and kept on disk."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from polyseme.config import build
from polyseme.embedding.embedder import Embedder
from polyseme.errors import VectorsError
from polyseme.tasks.embeddings.features import Sentences
from polyseme.tasks.embeddings.frozen import (
    Cached,
    Frozen,
    FrozenConfig,
    LayerCache,
    LayerSource,
    cache_key,
)
from tasks.embeddings.making import SENTENCES

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


def test_a_second_opening_works_nothing_out(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = gather(source(frozen(tmp_path, models["elmo"])), 0, 1)
    monkeypatch.setattr(LayerCache, "make", never)
    assert np.array_equal(gather(source(frozen(tmp_path, models["elmo"])), 0, 1), first)


def test_a_sentence_that_stands_twice_is_kept_once(models: dict[str, Path], tmp_path: Path) -> None:
    made = source(frozen(tmp_path, models["elmo"]), [SENTENCES[0]] * 50)
    assert isinstance(made, Cached)
    assert made.cache.num_bytes == 3 * 3 * 16 * 2


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
    assert len(list(tmp_path.glob("*.bin"))) == 2


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 1)


def grow(file: Path) -> None:
    with file.open("ab") as stream:
        stream.write(b"\0")


@pytest.mark.parametrize("damage", [cut, grow, Path.unlink, lambda file: file.write_text("[")])
def test_a_file_of_another_size_is_made_anew(
    damage: Any, models: dict[str, Path], tmp_path: Path
) -> None:
    expected = gather(source(frozen(tmp_path, models["elmo"])), *range(len(LONG)))
    (file,) = tmp_path.glob("*.bin")
    damage(file)
    found = gather(source(frozen(tmp_path, models["elmo"])), *range(len(LONG)))
    assert np.array_equal(found, expected)
    assert list(tmp_path.iterdir()) == [file]


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
    assert len({cache_key(sentences) for sentences in sets}) == len(sets)
