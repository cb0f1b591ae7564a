"""What the pages say, in the language of the reader: a file of sentences for each language."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from polyseme.display import printable
from polyseme.errors import InputError, PolysemeError
from polyseme.limits import TOML_BYTES, parse_toml, read_text
from polyseme.meanings.change.measure import SENTENCES as CHANGE_SENTENCES
from polyseme.meanings.concordance.conditions import SENTENCES, ConditionError, say_in
from polyseme.meanings.concordance.cql import SENTENCES as QUERY_SENTENCES

_log = logging.getLogger(__name__)
_FOLDER = Path(__file__).parent / "languages"
LANGUAGES = {"en": "en", "zh": "zh-Hans"}
"""Each language's file, and its name to a browser."""


class Language:
    """Sentences by key. `say("uses", n=3)`; numbers are written with their thousands apart.

    A sentence may choose a word by a number: `{n} {n:use|uses}`.
    """

    def __init__(self, code: str) -> None:
        self.code = code
        self.tag = LANGUAGES[code]
        self.other = next(each for each in LANGUAGES if each != code)
        self._sentences = sentences(code)

    def __call__(self, key: str, **values: object) -> str:
        """The sentence of a key with values put in. Values are text to whoever shows it."""
        told = {name: _Count(v) if isinstance(v, int) else v for name, v in values.items()}
        return self._sentences[key].format(**told)

    def condition(self, error: ConditionError) -> str:
        """What is wrong with a condition or a query."""
        language = {key: self._sentences[f"{error.prefix}_{key}"] for key in error.language}
        return printable(say_in(language, error.sentences))


class _Count(int):
    def __format__(self, spec: str) -> str:
        one, is_choice, many = spec.partition("|")
        if is_choice:
            return one if abs(self) == 1 else many
        return format(int(self), spec or ",")


class PageError(InputError):
    """A mistake that the pages explain by one of their own sentences."""

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(Language("en")(key, **values))
        self.key, self.values = key, values


@contextmanager
def told_as(key: str, **values: object) -> Iterator[None]:
    """What fails here is explained by this sentence: other messages are for a terminal."""
    try:
        yield
    except PageError:
        raise
    except PolysemeError as error:
        raise PageError(key, **values) from error


def log_details(error: PolysemeError) -> None:
    """Tell the terminal what a page says can be read there."""
    if isinstance(error, PageError) and error.key not in ("model_error", "notes_error"):
        return
    if not isinstance(error, ConditionError):
        _log.warning("%s", printable(str(error.__cause__ or error)))


@cache
def sentences(code: str) -> Mapping[str, str]:
    """All sentences of a language. What the library says in English need not be said again."""
    library = {"condition": SENTENCES, "query": QUERY_SENTENCES, "change": CHANGE_SENTENCES}
    of_library = {f"{of}_{key}": text for of, told in library.items() for key, text in told.items()}
    return {**of_library, **parse_toml(read_text(_FOLDER / f"{code}.toml", TOML_BYTES))}


def choose_language(asked: str, accepted: str, default: str) -> str:
    """The one asked for; or what the corpus is opened in; or what the browser prefers."""
    if asked in LANGUAGES:
        return asked
    if default in LANGUAGES:
        return default
    for part in accepted.split(","):
        code = part.strip()[:2].lower()
        if code in LANGUAGES:
            return code
    return "en"
