"""Texts that are given on the command line, or a line each on standard input, where one is `-`."""

import sys
from collections.abc import Sequence

from polyseme.errors import InputError
from polyseme.limits import LONGEST_LINE

STANDARD_INPUT = "-"
MAX_LINES = 1_000_000
"""Texts that are read from standard input: they are in memory together."""


def texts_of(given: Sequence[str]) -> list[str]:
    """What was given, each `-` replaced by the lines of standard input that are not blank."""
    if STANDARD_INPUT not in given:
        return list(given)
    lines = [line.strip() for line in _read_lines().values()]
    return [text for each in given for text in (lines if each == STANDARD_INPUT else [each])]


def pairs_of_lines() -> dict[int, tuple[str, str]]:
    """The two texts of each line of standard input, a tab between them, by the line's number."""
    pairs: dict[int, tuple[str, str]] = {}
    for number, line in _read_lines().items():
        texts = [text.strip() for text in line.split("\t")]
        if len(texts) != 2 or not all(texts):
            raise InputError(
                f"Line {number} of standard input has {len(texts) - 1} tabs. Expected: two "
                f"sentences with one tab between them; found: {line!r:.80}."
            )
        pairs[number] = texts[0], texts[1]
    return pairs


def _read_lines() -> dict[int, str]:
    """The lines that are not blank, by their numbers, which begin at 1."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise InputError("There is no standard input to read from.")
    lines: dict[int, str] = {}
    number = size = 0
    while raw := stream.readline(LONGEST_LINE + 1):
        number, size = number + 1, size + len(raw)
        if len(raw) > LONGEST_LINE or len(lines) >= MAX_LINES or size > 32 * LONGEST_LINE:
            raise InputError(
                f"Standard input has a line over {LONGEST_LINE:,} bytes, or more than can be held "
                "at once. Give it in parts."
            )
        try:
            # Some programs on Windows begin a pipe with a byte order mark.
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeError as error:
            raise InputError(
                f"Line {number} of standard input is not UTF-8. Convert it first, for example "
                "with: iconv -f GB18030 -t UTF-8"
            ) from error
        if line.strip():
            lines[number] = line
    if not lines:
        raise InputError("Standard input has no text. Pipe something into it: one text per line.")
    return lines
