"""The model card: what a model is, what it was made from, how good it is, what it is not for."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyseme.model import Model, count_parameters
from polyseme.pretraining.evaluation import Evaluation
from polyseme.storage.files import canonical_json, sha256_of
from polyseme.storage.folders import MANIFEST
from polyseme.storage.installed import model_folder
from polyseme.text.corpus import Corpus
from polyseme.training.checkpoint import Outcome

_LIMITS = """## Limitations

- Text must be split into the same words as its corpus: use the segmenter named above.
- Other languages, periods and domains than its corpus: continue pretraining on your own text with
  `polyseme pretrain CORPUS --from THIS --out NEW`.
- Facts and long texts: it reads one sentence at a time and reproduces what its corpus said, with
  the biases of its authors.
- Where a large pretrained Transformer exists for your language and domain, it is stronger on most
  tasks.
"""


def run_metadata(corpus: Corpus, outcome: Outcome, found: Evaluation) -> dict[str, Any]:
    """What the manifest and the card tell of a finished run."""
    counts = corpus.read_stats
    digest = hashlib.sha256(canonical_json(corpus.hashes).encode()).hexdigest()
    return {
        "corpus": {
            "words": counts["words"],
            "sentences": counts["sentences"],
            "documents": counts["documents"],
            "language": corpus.config.language,
            "sha256": digest,
        },
        "steps": outcome.steps,
        "words": outcome.words,
        "hours": outcome.seconds / 3600,
        "perplexity": found.values("perplexity"),
        "accuracy": found.values("accuracy"),
        "held_out_predictions": sum(part.count for part in found.parts.values()),
    }


def began_with(folder: Path, metadata: Mapping[str, Any], *, share: float = 0) -> dict[str, Any]:
    """Which model a run began with, what that had read, and its share in the finished weights."""
    found = model_folder(folder)
    told = {name: metadata[name] for name in ("steps", "words") if name in metadata}
    mixed = {"share": share} if share else {}
    return {"name": found.name, "sha256": sha256_of(found / MANIFEST), **told, **mixed}


def write_card(model: Model, name: str) -> str:
    """The card as Markdown, from what the model itself knows."""
    told = model.metadata
    corpus, preparation = told["corpus"], model.preparation
    lines = [
        f"# {name}",
        "",
        f"{told['about']} Trained with Polyseme.",
        "",
        "## Data",
        "",
        (
            f"- {corpus['words']:,} words in {corpus['sentences']:,} sentences of "
            f"{corpus['documents']:,} documents; language `{corpus['language']}`."
        ),
        f"- Segmenter (tokenizer): {_told(preparation.segmenter if preparation else {})}.",
        f"- Licence of the text: {told['licence'] or 'not stated; ask whoever trained it'}.",
        f"- SHA-256 of the corpus's list of files: `{corpus['sha256']}`.",
        "",
        "## Training",
        "",
        (
            f"- {count_parameters(model.network):,} parameters; {model.vocabulary.size:,} words "
            f"can be predicted, {model.vocabulary.num_characters:,} character ids read."
        ),
        f"- {told['steps']:,} steps, {told['words']:,} words read, {told['hours']:.2f} hours.",
        *_began(told.get("began_with")),
        "- Settings of the model: `config.toml`. Of the run, and all hashes: `manifest.json`.",
        "",
        "## Held-out perplexity",
        "",
        (
            f"On {told['held_out_predictions']:,} predictions in held-out documents, over the "
            "whole vocabulary, including the unknown word and the end of the sentence."
        ),
        "",
        *_measures(told),
        _LIMITS,
    ]
    return "\n".join(lines)


def _told(described: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in described.items() if name != "dictionary")


def _began(told: Mapping[str, Any] | None) -> list[str]:
    if told is None:
        return []
    read = f" ({told['steps']:,} steps, {told['words']:,} words read)" if "words" in told else ""
    lines = [f"- Initialized from `{told['name']}`{read}, manifest `{told['sha256']}`."]
    if "share" in told:
        lines.append(
            f"- Interpolated: {1 - told['share']:.0%} of the trained weights, {told['share']:.0%} "
            f"of those of `{told['name']}`."
        )
    return lines


def _measures(told: Mapping[str, Any]) -> list[str]:
    unigram = told.get("unigram_perplexity", {})
    rows = [
        f"| {part} | {value:,.2f} | {f'{unigram[part]:,.2f}' if part in unigram else ''} |"
        for part, value in told["perplexity"].items()
    ]
    accuracies = told.get("accuracy", {}).items()
    others = [f"\nAccuracy of {part}: {value:.2%}." for part, value in accuracies]
    return ["| part | perplexity | of a unigram model |", "|---|---:|---:|", *rows, *others, ""]
