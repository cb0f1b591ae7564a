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
weights were made for carry the state of the LSTMs from batch to batch. `embed_carrying` in
`polyseme.vectors.carry` does the same, to repeat old results.
"""


def write_card(model: Model, name: str, *, files: Described, notes: Iterable[str]) -> str:
    """The card as Markdown."""
    facts, encoder = model.facts, model.config.encoder
    lines = [
        f"# {name}",
        "",
        f"{facts['about']} Made from old weights by `polyseme convert`; not trained any further.",
        "",
        "## Where it comes from",
        "",
        f"- Kind of the old files: {facts['kind']}.",
        *(
            f"- `{old}`, {told['bytes']:,} bytes, SHA-256 `{told['sha256']}`."
            for old, told in files.items()
        ),
        f"- Licence: {facts['licence'] or 'not stated in such files; ask where you got them'}.",
        "",
        "## What it is",
        "",
        (
            f"- {count_parameters(model.network):,} parameters; layer 0 and "
            f"{encoder.num_layers - 1} layers with context, "
            f"{encoder.output_width} dimensions in each."
        ),
        f"- {len(model.lexicon.words):,} words listed; reads {_reads(model)}.",
        *(f"- {note}" for note in notes),
        "",
        _UNKNOWN,
        _STATE,
    ]
    return "\n".join(lines)


def _reads(model: Model) -> str:
    kinds = {"bytes": "every spelling, byte by byte", "none": "listed words only"}
    known = f"spellings, in {model.lexicon.num_characters:,} character ids"
    return kinds.get(model.config.lexicon.characters, known)
