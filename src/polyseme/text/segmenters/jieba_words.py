"""Chinese words as jieba finds them: its dictionary, its model for words the dictionary lacks."""

import hashlib
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polyseme.errors import InputError, MissingExtraError
from polyseme.limits import LimitError, read_bytes
from polyseme.storage.files import sha256_of
from polyseme.text.segmenters import WordSpans
from polyseme.text.segmenters.likeliest_words import LikeliestWords
from polyseme.text.settings import USER_DICTIONARY

_ENTRY = re.compile(r"(\S+)( [0-9]+)?(?: [a-z]+)?")
# The time of jieba itself grows with the square of a run of unknown Chinese characters. One this
# long without any mark is cut here, as it was when our models were trained; at worst that divides
# one word in 500 characters.
_LONG_RUN = re.compile(r"[\u4e00-\u9fd5]{500}")


class JiebaWords:
    """The words of jieba's default mode, with its own dictionary and the user's words.

    A tokenizer of its own: jieba's global one, and what others did to it, are left alone. It says
    which words there are and how frequent; `LikeliestWords` finds them in a text.
    """

    def __init__(self, user_words: tuple[str, ...] = ()) -> None:
        tokenizer = _import_jieba().Tokenizer()
        # Not `initialize()`: that reads a cache of marshalled data from the shared temporary
        # folder, where anyone on the machine could have put it.
        with tokenizer.get_dict_file() as dictionary:
            tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(dictionary)
        tokenizer.initialized = True
        for entry in user_words:
            word, _, frequency = entry.partition(" ")
            # Without a number jieba finds the least that keeps the word whole.
            tokenizer.add_word(word, int(frequency) if frequency else None)
        self._words_of = LikeliestWords(tokenizer.FREQ, tokenizer.total, _import_model())

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
            yield from self._words_of.cut(text[begin : run.end()])
            begin = run.end()
        yield from self._words_of.cut(text[begin:])


def read_user_words(path: Path) -> tuple[str, ...]:
    """The words of a user dictionary in jieba's format: a word, its frequency, its tag a line.

    Tags are left out: they do not change which words are found.
    """
    try:
        data = read_bytes(path, 4 * USER_DICTIONARY)
        lines = data.decode("utf-8-sig").splitlines()
    except FileNotFoundError as error:
        raise InputError(f"There is no user dictionary {path}.") from error
    except UnicodeError as error:
        raise InputError(f"The user dictionary {path} is not UTF-8. Save it as UTF-8.") from error
    except (OSError, LimitError) as error:
        raise InputError(f"The user dictionary {path} cannot be read: {error}.") from error
    found = (_ENTRY.fullmatch(line.strip()) for line in lines if line.strip())
    words = [match and match.group(1) + (match.group(2) or "") for match in found]
    if not all(words):
        number = words.index(None) + 1
        raise InputError(
            f"{path}: entry {number} is not a word. Write one per line, alone or with a "
            "frequency: 大模型 500."
        )
    return tuple(dict.fromkeys(word for word in words if word))


def user_words_hash(user_words: tuple[str, ...]) -> str:
    """SHA-256 of the user's words, in their order."""
    return hashlib.sha256("\n".join(user_words).encode("utf-8")).hexdigest()


def dictionary_hash() -> str:
    """SHA-256 of the dictionary jieba comes with."""
    with _import_jieba().Tokenizer().get_dict_file() as dictionary:
        return sha256_of(Path(dictionary.name))


def _import_model() -> tuple[Any, Any, Any]:
    """Start, transition and emission probabilities of jieba's hidden Markov model."""
    from jieba import finalseg

    return finalseg.start_P, finalseg.trans_P, finalseg.emit_P


def _import_jieba() -> Any:
    try:
        with warnings.catch_warnings():  # its source has escapes newer Pythons complain of
            warnings.simplefilter("ignore")
            import jieba
    except ImportError as error:
        raise MissingExtraError.of("jieba", extra="zh", purpose="Finding Chinese words") from error
    return jieba
