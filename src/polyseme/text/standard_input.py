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
    lines = _read_lines()
    return [text for each in given for text in (lines if each == STANDARD_INPUT else [each])]


def _read_lines() -> list[str]:
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise InputError("There is no standard input to read from.")
    lines: list[str] = []
    size = 0
    while raw := stream.readline(LONGEST_LINE + 1):
        size += len(raw)
        if len(raw) > LONGEST_LINE or len(lines) >= MAX_LINES or size > 32 * LONGEST_LINE:
            raise InputError(
                f"Standard input has a line over {LONGEST_LINE:,} bytes, or more than can be held "
                "at once. Give it in parts."
            )
        try:
            line = raw.decode("utf-8").strip()
        except UnicodeError as error:
            raise InputError(
                f"Line {len(lines) + 1} of standard input is not UTF-8. Convert it first, for "
                "example with: iconv -f GB18030 -t UTF-8"
            ) from error
        lines += [line] if line else []
    if not lines:
        raise InputError("Standard input has no text. Pipe something into it: one text a line.")
    return lines
