"""The rules of a scheme, by another road than `transitions`."""

from collections.abc import Sequence

from polyseme.tasks.spans import Scheme, convert


def is_allowed(labels: Sequence[str], scheme: Scheme) -> bool:
    """Whether a sentence's labels keep the rules: their spans give the same again."""
    return convert(labels, scheme) == list(labels)
