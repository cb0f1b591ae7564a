"""Chinese words by jieba: its dictionary, and its model for words the dictionary lacks."""

import warnings
from typing import Any

from polyseme.errors import MissingExtraError
from polyseme.files import sha256_of
from polyseme.text.segmenters import Words


class JiebaWords:
    """jieba in its default mode, with its own dictionary."""

    def __init__(self) -> None:
        self._jieba = _import_jieba()
        tokenizer = self._jieba.Tokenizer()
        # Not `initialize()`: that reads a cache of marshalled data from the shared temporary
        # folder, where anyone on the machine could have put it.
        with tokenizer.get_dict_file() as dictionary:
            tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(dictionary)
            self._dictionary = dictionary.name
        tokenizer.initialized = True
        self._cut = tokenizer.cut

    def split(self, text: str) -> Words:
        """jieba's words, without those that are white space."""
        words, starts, place = [], [], 0
        for word in self._cut(text):
            if not word.isspace():
                words.append(word)
                starts.append(place)
            place += len(word)
        return Words(words, starts)

    def describe(self) -> dict[str, str]:
        """jieba's version and the hash of its dictionary."""
        from pathlib import Path

        return {
            "name": "jieba",
            "version": self._jieba.__version__,
            "dictionary": sha256_of(Path(self._dictionary)),
        }


def _import_jieba() -> Any:
    try:
        with warnings.catch_warnings():  # its source has escapes newer Pythons complain of
            warnings.simplefilter("ignore")
            import jieba
    except ImportError as error:
        raise MissingExtraError("jieba", extra="zh", purpose="Finding Chinese words") from error
    return jieba
