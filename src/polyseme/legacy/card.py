"""The card of a model made from old weights: where they came from, and what nobody here knows."""

from collections.abc import Iterable

from polyseme.legacy.opening import Described
from polyseme.model import Model, count_parameters

_UNKNOWN = """## What is not known

- Which texts it was trained on, and how they were split into words. Words split in another way
  get worse vectors, and nothing will tell.
- How well it predicts: the softmax is not part of such files, so it cannot be measured.
"""
_STATE = """## Other numbers than from the program it was made for

Here every sentence starts from zero, so that its vectors depend on it alone. The programs these
weights were made for carry the state of the LSTMs from batch to batch. `embed_stateful` in
`polyseme.embedding.stateful` does the same, to repeat old results.
"""


def write_card(model: Model, name: str, *, files: Described, notes: Iterable[str]) -> str:
    """The card as Markdown."""
    metadata, encoder = model.metadata, model.config.encoder
    lines = [
        f"# {name}",
        "",
        f"{metadata['about']} Made from old weights by `polyseme convert`, not trained further.",
        "",
        "## Where it comes from",
        "",
        f"- Kind of the old files: {metadata['kind']}.",
        *(
            f"- `{old}`, {told['bytes']:,} bytes, SHA-256 `{told['sha256']}`."
            for old, told in files.items()
        ),
        f"- Licence: {metadata['licence'] or 'not stated in such files; ask where you got them'}.",
        "",
        "## What it is",
        "",
        (
            f"- {count_parameters(model.network):,} parameters; layer 0 and "
            f"{encoder.num_layers - 1} layers with context, "
            f"{encoder.output_dim} dimensions in each."
        ),
        f"- {len(model.vocabulary.words):,} words listed; reads {_reads(model)}.",
        *(f"- {note}" for note in notes),
        "",
        _UNKNOWN,
        _STATE,
    ]
    return "\n".join(lines)


def _reads(model: Model) -> str:
    kinds = {"bytes": "every word, byte by byte", "none": "listed words only"}
    known = f"words, in {model.vocabulary.num_characters:,} character ids"
    return kinds.get(model.config.vocabulary.characters, known)
