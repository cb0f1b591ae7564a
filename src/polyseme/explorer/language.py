"""What the pages say, in the language of the reader: a file of sentences for each language."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from polyseme.limits import TOML_BYTES, parse_toml, read_text
from polyseme.meanings.concordance.conditions import SENTENCES, ConditionError, say_in
from polyseme.printable import printable

_FOLDER = Path(__file__).parent / "languages"
LANGUAGES = {"en": "en", "zh": "zh-Hans"}
"""Each language's file, and its name to a browser."""


class Language:
    """Sentences by key. `say("uses", n=3)`; numbers are written with their thousands apart."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.tag = LANGUAGES[code]
        self.other = next(each for each in LANGUAGES if each != code)
        self._sentences = sentences(code)

    def __call__(self, key: str, **values: object) -> str:
        """The sentence of a key with values put in. Values are text to whoever shows it."""
        told = {name: f"{v:,}" if isinstance(v, int) else v for name, v in values.items()}
        return self._sentences[key].format(**told)

    def condition(self, error: ConditionError) -> str:
        """What is wrong with a condition."""
        language = {key: self._sentences[f"condition_{key}"] for key in SENTENCES}
        return printable(say_in(language, error.sentences))


@cache
def sentences(code: str) -> Mapping[str, str]:
    """All sentences of a language. What the library says in English need not be said again."""
    of_library = {f"condition_{key}": text for key, text in SENTENCES.items()}
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
