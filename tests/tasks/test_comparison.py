"""Variants of one task, and what they are compared with.

Tasks trained with several seeds, found in their folder.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyseme.config import build
from polyseme.errors import ConfigError, ModelError
from polyseme.tasks import measures
from polyseme.tasks.comparison import VariantResult, as_variant
from polyseme.tasks.embeddings.finetuned import FineTunedConfig
from polyseme.tasks.embeddings.frozen import FrozenConfig
from polyseme.tasks.measures import SeedComparison
from polyseme.tasks.task import TaskConfig, best_in, is_task, seed_folder, trained_in
from tasks.making import config_of, examples_for, task_of

BOTH: dict[str, Any] = {
    "data": {"train": "train", "reader": {"kind": "columns"}},
    "embeddings": {
        "words": {
            "vectors": {"kind": "model", "model": "static"},
            "characters": {},
            "dropout": 0.2,
        },
        "model": {"kind": "frozen", "model": "elmo", "cache": {"folder": "here"}},
        "insert_at": "both",
    },
    "network": {"kind": "tagging"},
}


def test_variants_differ_in_embeddings_and_in_nothing_else() -> None:
    config = build(TaskConfig, BOTH)
    variants = {
        variant: as_variant(config, variant)
        for variant in ("none", "static", "frozen", "finetuned")
    }
    assert variants["frozen"].embeddings == config.embeddings
    assert variants["static"].embeddings.model is None
    assert variants["static"].embeddings.words == config.embeddings.words
    none = variants["none"].embeddings
    assert none.model is None
    assert none.words is not None
    assert none.words.vectors is not None
    assert (none.words.vectors.kind, none.words.trained, none.words.dropout) == ("new", True, 0.2)
    assert isinstance(variants["finetuned"].embeddings.model, FineTunedConfig)
    assert variants["finetuned"].embeddings.model.model == Path("elmo")
    for changed in variants.values():
        assert changed.network == config.network
        assert changed.training == config.training
        assert changed.tokenizer_from == Path("elmo")  # the same words, whatever the embeddings


def test_a_variant_keeps_its_own_settings_where_the_task_has_them() -> None:
    values = {
        **BOTH,
        "embeddings": {"model": {"kind": "finetuned", "model": "elmo", "lr_scale": 0.5}},
    }
    config = build(TaskConfig, values)
    tuned = as_variant(config, "finetuned").embeddings.model
    assert isinstance(tuned, FineTunedConfig)
    assert tuned.lr_scale == 0.5
    assert as_variant(config, "frozen").embeddings.model == FrozenConfig(model=Path("elmo"))


def test_static_is_the_same_however_layers_are_mixed() -> None:
    mixes: tuple[dict[str, float], ...] = ({}, {"layer_norm": True, "dropout": 0.1})
    plain, normalized = (
        build(TaskConfig, {**BOTH, "embeddings": {**BOTH["embeddings"], "mix": mix}})
        for mix in mixes
    )
    for variant in ("none", "static"):
        assert as_variant(plain, variant) == as_variant(normalized, variant)
    assert as_variant(plain, "frozen") != as_variant(normalized, "frozen")


def test_a_variant_that_needs_what_the_task_lacks_is_refused() -> None:
    without_words = build(
        TaskConfig, {**BOTH, "embeddings": {"model": BOTH["embeddings"]["model"]}}
    )
    with pytest.raises(ConfigError, match=r"embeddings\.words"):
        as_variant(without_words, "static")
    without_model = build(
        TaskConfig, {**BOTH, "embeddings": {"words": BOTH["embeddings"]["words"]}}
    )
    with pytest.raises(ConfigError, match=r"embeddings\.model"):
        as_variant(without_model, "finetuned")


def test_a_task_on_characters_learned_alone_has_no_words() -> None:
    character_labels = {"tokenizer_from": "elmo"}
    config = build(
        TaskConfig,
        {**BOTH, "embeddings": {**BOTH["embeddings"], "character_labels": character_labels}},
    )
    none = as_variant(config, "none").embeddings
    assert (none.words, none.model, none.character_labels) == (
        None,
        None,
        config.embeddings.character_labels,
    )
    assert (
        as_variant(config, "static").embeddings.character_labels
        == config.embeddings.character_labels
    )


def test_error_reduction_is_the_part_of_errors_that_is_gone() -> None:
    first, second = (
        VariantResult("static", [0.8, 0.8], [], None),
        VariantResult("frozen", [0.84, 0.86], [], None),
    )
    assert second.error_reduction(first) == pytest.approx(0.25)
    assert str(second.score) == "85.00 ± 1.41"


def save_seeds(folder: Path, models: dict[str, Path], *dev: float) -> None:
    """Untrained tasks that say they are so good on the development data."""
    task, _ = task_of(config_of("pairs, static", models, folder / "cache"), examples_for("pairs"))
    for seed, value in enumerate(dev, start=1):
        replace(task, metadata={"dev": value}).save(seed_folder(folder, seed))


def test_the_best_is_that_with_the_highest_measure(models: dict[str, Path], tmp_path: Path) -> None:
    save_seeds(tmp_path, models, 0.25, 0.75, 0.5)
    assert best_in(tmp_path) == tmp_path / "seed-2"
    assert best_in(tmp_path / "seed-3") == tmp_path / "seed-3"


def test_seeds_come_in_the_order_of_their_numbers(models: dict[str, Path], tmp_path: Path) -> None:
    save_seeds(tmp_path, models, *[0.5] * 11)
    assert [path.name for path in trained_in(tmp_path)] == [f"seed-{k}" for k in range(1, 12)]
    assert best_in(tmp_path) == tmp_path / "seed-1"


def test_a_folder_without_a_finished_task_is_told(tmp_path: Path) -> None:
    (tmp_path / "seed-1").mkdir()
    assert not is_task(tmp_path)
    with pytest.raises(ModelError, match=r"was interrupted.*a task was expected"):
        best_in(tmp_path)


def test_seeds_are_compared_by_all_ways_to_deal_them() -> None:
    found = SeedComparison.of([0.50, 0.52, 0.51], [0.60, 0.61, 0.59])
    assert found is not None
    assert found.difference == pytest.approx(0.09)
    assert found.standard_error == pytest.approx(0.01 * (2 / 3) ** 0.5)
    assert found.p_value == pytest.approx(2 / 20)  # of 20 ways, this one and its mirror
    assert SeedComparison.of([0.5], [0.6, 0.7]) is None
    same = SeedComparison.of([0.5, 0.5], [0.5, 0.5])
    assert same is not None
    assert same.p_value == 1.0


def test_equal_variants_are_told_apart_as_rarely_as_p_says() -> None:
    random = np.random.default_rng(1)
    found = [SeedComparison.of(*random.normal(size=(2, 5)).tolist()) for _ in range(200)]
    share = np.mean([each is not None and each.p_value <= 0.05 for each in found])
    assert 0.01 <= share <= 0.1


def test_of_very_many_ways_a_sample_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = [0.1, 0.2, 0.3, 0.4, 0.5], [0.3, 0.4, 0.5, 0.6, 0.7]
    exact = SeedComparison.of(first, second)
    monkeypatch.setattr(measures, "_WAYS", 200)
    drawn = SeedComparison.of(first, second)
    assert exact is not None
    assert drawn is not None
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.25)
    assert drawn.p_value >= 1 / 21
