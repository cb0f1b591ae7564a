"""Encodings: of a stream by its byte-order mark, of a page by the label it carries."""

import codecs

# Longest first: the UTF-32 mark begins with the UTF-16 one.
_MARKS = [
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
]
# What browsers take some labels for (WHATWG Encoding Standard): a larger encoding.
_BROADER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-16": "utf-16-le",
}
# The standard's. Python knows more, and none of those is for pages: `punycode` takes half a minute
# a megabyte.
_CODECS = frozenset((
    *(f"iso8859-{number}" for number in (*range(2, 9), 10, 13, 14, 15, 16)),
    *("utf-8", "utf-16-be", "utf-16-le", "gb18030", "big5hkscs", "euc_jp", "iso2022_jp", "koi8-r"),
    *("koi8-u", "mac-roman", "mac-cyrillic", "cp866", "cp874", "cp932", "cp949"),
    *(f"cp{number}" for number in range(1250, 1259)),
))  # fmt: skip
_SUGGESTED = {
    "zh": "gb18030 or big5",
    "ja": "shift_jis or euc_jp",
    "ko": "cp949",
    **dict.fromkeys(("ru", "uk", "be", "bg", "sr", "mk"), "cp1251 or koi8-r"),
    **dict.fromkeys(("pl", "cs", "sk", "hu", "sl", "hr", "ro"), "cp1250 or iso8859-2"),
    "el": "cp1253",
    "tr": "cp1254",
    "he": "cp1255",
    "ar": "cp1256",
    **dict.fromkeys(("lt", "lv", "et"), "cp1257"),
    "vi": "cp1258",
    "th": "cp874",
}


def encoding_of(head: bytes, stated: str) -> tuple[str, int]:
    """The encoding of a stream that begins with `head`, and the length of its byte-order mark."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding, len(mark)
    # Without a mark the standard says big-endian, but files in the wild are little-endian.
    return {"utf-16": "utf-16-le", "utf-32": "utf-32-le", "utf-8-sig": "utf-8"}.get(
        stated, stated
    ), 0


def newline_in(encoding: str) -> bytes:
    """A line end in this encoding, without a byte-order mark."""
    return "\n".encode(encoding)


def codec_of(label: str) -> str | None:
    """The codec for what a page says of itself; None if it is none of those that pages have."""
    label = label.strip().lower().removeprefix("x-")
    if label.startswith("windows-"):
        label = {"windows-31j": "cp932"}.get(label, f"cp{label.removeprefix('windows-')}")
    try:  # Hebrew and Arabic by the order of their letters: iso-8859-8-i
        name = codecs.lookup(label.removesuffix("-i").removesuffix("-e")).name
    except (LookupError, ValueError):
        return None
    name = _BROADER.get(name, name)
    return name if name in _CODECS else None


def suggested(language: str) -> str:
    """What texts in a language are often written in, if not in UTF-8."""
    return _SUGGESTED.get(language.partition("-")[0].lower(), "cp1252 or latin-1")
