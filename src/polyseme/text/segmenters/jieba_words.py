"""Chinese words by jieba: its dictionary, and its model for words the dictionary lacks."""

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polyseme.errors import MissingExtraError
from polyseme.storage.files import sha256_of
from polyseme.text.segmenters import WordSpans

# jieba's time for unknown words grows with the square of a run of Chinese characters. One this
# long without any mark is cut here; at worst that divides one word in 500 characters.
_LONG_RUN = re.compile(r"[\u4e00-\u9fd5]{500}")


class JiebaWords:
    """jieba in its default mode, with its own dictionary."""

    def __init__(self) -> None:
        tokenizer = _import_jieba().Tokenizer()
        # Not `initialize()`: that reads a cache of marshalled data from the shared temporary
        # folder, where anyone on the machine could have put it.
        with tokenizer.get_dict_file() as dictionary:
            tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(dictionary)
        tokenizer.initialized = True
        self._cut = tokenizer.cut

    def split(self, text: str) -> WordSpans:
        """jieba's words, without those that are white space."""
        words, starts, place = [], [], 0
        for word in self._words(text):
            if not word.isspace():
                words.append(word)
                starts.append(place)
            place += len(word)
        return WordSpans(words, starts)

    def _words(self, text: str) -> Iterator[str]:
        begin = 0
        for run in _LONG_RUN.finditer(text):
            yield from self._cut(text[begin : run.end()])
            begin = run.end()
        yield from self._cut(text[begin:])


def dictionary_hash() -> str:
    """SHA-256 of the dictionary jieba comes with."""
    with _import_jieba().Tokenizer().get_dict_file() as dictionary:
        return sha256_of(Path(dictionary.name))


def _import_jieba() -> Any:
    try:
        with warnings.catch_warnings():  # its source has escapes newer Pythons complain of
            warnings.simplefilter("ignore")
            import jieba
    except ImportError as error:
        raise MissingExtraError.of("jieba", extra="zh", purpose="Finding Chinese words") from error
    return jieba
