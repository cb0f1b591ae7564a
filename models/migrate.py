"""Rewrite a model of format 1 as format 2, which has other names for the same settings and weights.

    python models/migrate.py OLD NEW

No number changes: vectors stay the same to the last bit, and perplexities to the last digit.
"""

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import tomli_w
from safetensors.torch import load_file, save

from polyseme.data.vocabulary import CHARACTERS
from polyseme.model import ARTIFACT, CARD, WEIGHTS
from polyseme.storage.files import describe_files
from polyseme.storage.folders import CONFIG, MANIFEST, write_manifest
from polyseme.text.corpus import VOCABULARY
from polyseme.text.preprocessing import Preparation

# Settings by the path of their table. A later row sees the names that earlier ones gave.
SETTINGS: list[tuple[str, str, str]] = [
    ("model", "lexicon", "vocabulary"),
    ("model.encoder", "context", "contextualizer"),
    ("model.encoder.contextualizer", "layers", "num_layers"),
    ("model.encoder.contextualizer", "width", "proj_size"),  # both models are LSTMs
    ("model.encoder.contextualizer", "cells", "hidden_size"),
    ("model.encoder.input", "lookup", "word_dim"),
    ("model.encoder.input.characters", "character_width", "char_dim"),
    ("model.encoder.input.characters", "highways", "num_highway_layers"),
    ("model.encoder.input.characters", "width", "dim"),
    ("model.encoder.input.characters.filters", "number", "num_filters"),
    ("model.objective", "share", "mask_probability"),
    ("model.objective", "hidden", "mask_token_share"),
    ("model.objective", "replaced", "random_token_share"),
    ("model.objective", "predicts", "architecture"),
    ("model.objective", "reach", "window"),
    ("model.objective.softmax", "samples", "num_samples"),
    ("model.objective.softmax", "shrink", "div_value"),
    ("training", "warmup", "warmup_ratio"),
    ("training", "clip_norm", "max_grad_norm"),
    ("training", "accumulate", "gradient_accumulation_steps"),
    ("training", "keep", "keep_checkpoints"),
    ("training", "when_not_finite", "on_nonfinite"),
]
VALUES: list[tuple[str, str, Any, Any]] = [
    ("model.encoder", "direction", "apart", "separate"),
    ("model.encoder.input", "kind", "fused", "word+characters"),
    ("model.objective", "kind", "neighbours", "word2vec"),
    ("model.objective", "kind", "nothing", "encoder_only"),
    ("model.objective", "architecture", "word", "cbow"),
    ("model.objective", "architecture", "neighbours", "skipgram"),
    ("training", "on_nonfinite", "halt", "raise"),
]
"""Table, setting, old value, new value."""
TENSORS: list[tuple[str, str]] = [
    (r"^encoder\.context\.", "encoder.contextualizer."),
    (r"^(encoder\.contextualizer\.layers\.\d+)\.input_weight$", r"\1.weight_ih"),
    (r"^(encoder\.contextualizer\.layers\.\d+)\.state_weight$", r"\1.weight_hh"),
    (r"^(encoder\.contextualizer\.layers\.\d+)\.projection$", r"\1.weight_hr"),
    (r"^encoder\.inputs\.table\.", "encoder.inputs.word_embedding."),
    (r"^encoder\.inputs\.characters\.characters\.", "encoder.inputs.characters.char_embedding."),
    (r"^(encoder\.inputs\.characters\.highways\.\d+)\.both\.", r"\1.linear."),
    (r"^objective\.next\.", "objective.next_sentence."),
    (r"^objective\.softmax\.groups\.", "objective.softmax.clusters."),
]
"""Patterns in a weight's name, and what takes their place."""


def main(old: Path, new: Path) -> None:
    """Write the folder `new` from the folder `old`."""
    manifest = json.loads((old / MANIFEST).read_text("utf-8"))
    if manifest["format"] != 1:
        sys.exit(f"{old} has model format {manifest['format']}, not 1.")
    new.mkdir(parents=True)
    settings = rename(tomllib.loads((old / CONFIG).read_text("utf-8")))
    (new / CONFIG).write_text(tomli_w.dumps(settings), "utf-8")
    weights = {rename_tensor(name): weight for name, weight in load_file(old / WEIGHTS).items()}
    (new / WEIGHTS).write_bytes(save(weights))
    table = pq.read_table(old / VOCABULARY)
    told = {b"polyseme.vocabulary": table.schema.metadata[b"polyseme.lexicon"]}
    pq.write_table(table.replace_schema_metadata(told), new / VOCABULARY, compression="zstd")
    for name in (CARD, CHARACTERS):
        if (old / name).exists():
            (new / name).write_bytes((old / name).read_bytes())
    metadata = manifest["facts"]
    metadata["settings"] = rename(metadata.get("settings", {}))
    write_manifest(
        new,
        ARTIFACT,
        describe_files(new, manifest["files"]),
        preparation=preparation(manifest["preparation"]),
        metadata=metadata,
    )


def preparation(old: dict[str, Any]) -> dict[str, Any]:
    """How the text was prepared, as `Preparation` has it."""
    if not old:
        return {}
    settings = dict(old["settings"])
    settings["unicode_normalization"] = settings.pop("normalise")
    tools = {name: old["preparation"][name] for name in ("segmenter", "script", "polyseme")}
    return Preparation.from_manifest({"settings": settings, **tools}).to_manifest()


def rename(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with their new names and values; others as they are, in the same order."""
    for table, old, new in SETTINGS:
        for found in _tables(settings, table):
            items = [(new if name == old else name, value) for name, value in found.items()]
            found.clear()
            found.update(items)
    for table, name, old, new in VALUES:
        for found in _tables(settings, table):
            if found.get(name) == old:
                found[name] = new
    return settings


def rename_tensor(name: str) -> str:
    """The name a weight has now."""
    for old, new in TENSORS:
        name = re.sub(old, new, name)
    return name


def _tables(settings: dict[str, Any], path: str) -> list[dict[str, Any]]:
    """The table at a path, or all tables of the list that is there."""
    found: Any = settings
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    several = found if isinstance(found, list) else [found]
    return [table for table in several if isinstance(table, dict)]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
