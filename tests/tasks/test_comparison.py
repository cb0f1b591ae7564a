"""Variants of one task, and what they are compared with."""

from pathlib import Path
from typing import Any

import pytest

from polyseme.config import build
from polyseme.errors import ConfigError
from polyseme.tasks.comparison import VariantResult, as_variant
from polyseme.tasks.embeddings.finetuned import FineTunedConfig
from polyseme.tasks.embeddings.frozen import FrozenConfig
from polyseme.tasks.settings import TaskConfig

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
