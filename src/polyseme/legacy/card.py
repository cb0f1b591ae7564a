"""The card of a model made from old weights: where they came from, and what nobody here knows."""

from collections.abc import Iterable

from polyseme.legacy.opening import Described
from polyseme.model import Model, count_parameters

_UNKNOWN = """## Limitations

- Its training data and its tokenization are unknown. Text that is tokenized differently gets worse
  vectors, without a warning.
- Its perplexity is unknown: the softmax is not part of such files, so it cannot be evaluated.
"""
_STATE = """## Differences from the original program

Here every sentence starts from a zero state, so that its vectors depend on it alone. The programs
these weights were made for carry the state of the LSTMs from batch to batch. `embed_stateful` in
`polyseme.embedding.stateful` does the same, to reproduce old results.
"""


def write_card(model: Model, name: str, *, files: Described, notes: Iterable[str]) -> str:
    """The card as Markdown."""
    metadata, encoder = model.metadata, model.config.encoder
    lines = [
        f"# {name}",
        "",
        f"{metadata['about']} Converted from old weights by `polyseme convert`, without training.",
        "",
        "## Source",
        "",
        f"- Format of the old files: {metadata['kind']}.",
        *(
            f"- `{old}`, {told['bytes']:,} bytes, SHA-256 `{told['sha256']}`."
            for old, told in files.items()
        ),
        f"- Licence: {metadata['licence'] or 'not stated in such files; ask where you got them'}.",
        "",
        "## Model",
        "",
        (
            f"- {count_parameters(model.network):,} parameters; layer 0 and "
            f"{encoder.num_layers - 1} layers with context, "
            f"{encoder.output_dim} dimensions in each."
        ),
        f"- {len(model.vocabulary.words):,} words in its vocabulary; reads {_reads(model)}.",
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
