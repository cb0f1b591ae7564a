"""A word in, its lemma out: what `prepare --annotate` adds to texts that have no annotation.

By word lists and rules of simplemma, which knows a word and no context: `left` is `leave`, also of
a hand. Its version is part of what a shard is made from.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from importlib.metadata import version

from polyseme.errors import ConfigError, extra_needed_for

_REMEMBERED = 1 << 18  # words


def lemmatizer(language: str) -> Callable[[str], str]:
    """What lemmatizes words of a language; an error if there is nothing for it."""
    with extra_needed_for("--annotate lemma"):
        import simplemma
    lemmatize = partial(simplemma.lemmatize, lang=language)
    try:
        lemmatize("a")
    except ValueError as error:
        raise ConfigError(
            f"There are no lemmas for --language {language}: simplemma has none. Leave out "
            "--annotate lemma, or give texts that have lemmas, with --word-attributes lemma."
        ) from error
    return lru_cache(_REMEMBERED)(lemmatize)


def lemmatizer_version() -> str:
    """The tool and its version."""
    with extra_needed_for("--annotate lemma"):
        import simplemma  # noqa: F401  # the error, if it is not there
    return f"simplemma {version('simplemma')}"
