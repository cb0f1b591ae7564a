"""Chinese words as jieba's default mode finds them, in a third of its time.

The words of a run of characters are those of the likeliest path through jieba's dictionary. Where
it leaves single characters beside each other, jieba's hidden Markov model says which of them are
words: each character begins a word, is inside of one, ends one, or stands alone (B, M, E, S), and
the likeliest sequence is found (Viterbi, 1967). Sums are made in jieba's order and ties go where
jieba's go, so that results are the same to the last word; tests compare them.
"""

import hashlib
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from polyseme.errors import InputError, extra_needed_for
from polyseme.limits import LimitError, read_bytes
from polyseme.storage.files import sha256_of
from polyseme.text.segmenters.patterns import WordSpans
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
        from jieba import finalseg

        model = finalseg.start_P, finalseg.trans_P, finalseg.emit_P
        self._words_of = LikeliestWords(tokenizer.FREQ, tokenizer.total, model)

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


def _import_jieba() -> Any:
    with extra_needed_for("Finding Chinese words"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its source has escapes newer Pythons complain of
        import jieba
    return jieba


_RUN = re.compile(r"([\u4E00-\u9FD5a-zA-Z0-9+#&._%\-]+)")
_HAN = re.compile(r"([\u4E00-\u9FD5]+)")
_LATIN = re.compile(r"([a-zA-Z0-9]+(?:\.\d+)?%?)")
_ONLY_BEGINS = -math.inf  # a piece that is no word, but the beginning of one
_LEAST = -1e300  # below any sum of logarithms, and above `_ONLY_BEGINS`
_NEVER = -3.14e100
"""What jieba takes for the logarithm of 0."""


class LikeliestWords:
    """Finds the words of a text."""

    def __init__(self, frequencies: Mapping[str, int], total: int, model: Any) -> None:
        """`frequencies` has the beginnings of all words, too, with 0.

        `model`: logarithms of start, transition and emission probabilities, as jieba has them.
        """
        counts = {*frequencies.values(), 1} - {0}
        shares = {count: math.log(count) - math.log(total) for count in counts}
        self._unknown = shares[1]
        shares[0] = _ONLY_BEGINS
        self._shares = {piece: shares[count] for piece, count in frequencies.items()}
        start, self._moves, emissions = model
        self._start = tuple(start[state] for state in "BMES")
        self._emissions = {
            character: tuple(emissions[state].get(character, _NEVER) for state in "BMES")
            for character in set().union(*emissions.values())
        }

    def cut(self, text: str) -> list[str]:
        """All of a text as words; what is no Chinese, Latin or number, character by character."""
        found: list[str] = []
        for number, part in enumerate(_RUN.split(text)):
            if number % 2:  # a run; the others stand between runs
                self._cut_run(part, found)
            else:
                found += part
        return found

    def _cut_run(self, run: str, found: list[str]) -> None:
        ends = self._path(run)
        begin = single = 0  # since where there were only single characters
        while begin < len(run):
            end = ends[begin]
            if end - begin > 1:
                if single < begin:
                    self._join(run[single:begin], found)
                found.append(run[begin:end])
                single = end
            begin = end
        if single < len(run):
            self._join(run[single:], found)

    def _path(self, run: str) -> list[int]:
        """For each character, where a word that begins there ends, by the likeliest path."""
        share_of, length = self._shares.get, len(run)
        best = [0.0] * (length + 1)
        ends = [0] * length
        for begin in range(length - 1, -1, -1):
            most, ending, end = _LEAST, begin + 1, begin + 1
            share = share_of(run[begin])
            while share is not None:
                total = share + best[end]
                if total >= most:  # of two as likely, the longer word
                    most, ending = total, end
                end += 1
                if end > length:
                    break
                share = share_of(run[begin:end])
            best[begin] = most if most > _LEAST else self._unknown + best[begin + 1]
            ends[begin] = ending
        return ends

    def _join(self, characters: str, found: list[str]) -> None:
        """Single characters one after another: some of them may be a word that nobody listed."""
        if len(characters) == 1 or self._shares.get(characters, _ONLY_BEGINS) > _ONLY_BEGINS:
            found += characters
        elif _HAN.fullmatch(characters):  # as nearly always
            self._cut_by_model(characters, found)
        else:
            for number, part in enumerate(_HAN.split(characters)):
                if number % 2:
                    self._cut_by_model(part, found)
                else:
                    found += filter(None, _LATIN.split(part))

    def _cut_by_model(self, characters: str, found: list[str]) -> None:
        begin = 0
        for end, is_end in enumerate(self._word_ends(characters), start=1):
            if is_end:
                found.append(characters[begin:end])
                begin = end

    def _word_ends(self, characters: str) -> list[bool]:
        """Whether each character ends a word: its likeliest state is E or S."""
        emissions, never = self._emissions.get, (_NEVER,) * 4
        moves = self._moves
        eb, es, sb, ss = moves["E"]["B"], moves["E"]["S"], moves["S"]["B"], moves["S"]["S"]
        be, bm, me, mm = moves["B"]["E"], moves["B"]["M"], moves["M"]["E"], moves["M"]["M"]
        b, m, e, s = map(sum, zip(self._start, emissions(characters[0], never), strict=True))
        came: list[tuple[bool, bool, bool, bool]] = []
        for character in characters[1:]:
            of_b, of_m, of_e, of_s = emissions(character, never)
            # Into B and S from E or S; into M and E from B or M. Of two as likely, S and M.
            e_b, s_b, e_s, s_s = e + eb + of_b, s + sb + of_b, e + es + of_s, s + ss + of_s
            b_m, m_m, b_e, m_e = b + bm + of_m, m + mm + of_m, b + be + of_e, m + me + of_e
            came.append((s_b >= e_b, m_m >= b_m, m_e >= b_e, s_s >= e_s))
            b, m, e, s = max(e_b, s_b), max(b_m, m_m), max(b_e, m_e), max(e_s, s_s)
        return _traced(came, "S" if s >= e else "E")


_BEFORE = {"B": (0, "E", "S"), "M": (1, "B", "M"), "E": (2, "B", "M"), "S": (3, "E", "S")}
"""For each state, which entry tells where it came from, and the two states that may be."""


def _traced(came: list[tuple[bool, bool, bool, bool]], state: str) -> list[bool]:
    """Back from the last state to the first."""
    ends = [True]
    for choices in reversed(came):
        number, *before = _BEFORE[state]
        state = before[choices[number]]
        ends.append(state in "ES")
    return ends[::-1]
