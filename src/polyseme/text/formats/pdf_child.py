"""The process in which a PDF is parsed: a page's lines out for each page, then it ends.

    in   standard input: the open file; arguments: none
    out  a line of JSON each: {"info": {...}}, {"page": text} or {"bad_page": why}, ...,
         {"end": null}; or {"fault": reason, "detail": why}

Started by `pdf.py` and by nobody else. pypdf reads what PDFs have in them, in Python; a hostile one
can make it work without end, or fill the memory. So it has this process, with limits, to itself.
"""

import io
import json
import logging
import os
import sys
from typing import Any

from polyseme.limits import FILE_BYTES, LONGEST_LINE
from polyseme.processes import limit_memory

MEMORY = 1 << 30
"""Bytes it may take beyond what it has when it begins, where the system has such limits."""


def main() -> None:
    """Read the PDF on standard input and tell its pages."""
    import pypdf

    logging.disable()  # an untrusted file's words have no business on our terminal
    limit_memory(MEMORY)
    try:
        _tell_pages(pypdf.PdfReader(_open_input()))
    except pypdf.errors.DependencyError:
        _tell(fault="encrypted", detail="it is encrypted in a way that needs a password")
    except MemoryError:
        _tell(fault="broken-file", detail=f"it takes over {MEMORY:,} bytes of memory")
    # Parsers of hostile files fail in every way there is.
    except Exception as error:  # noqa: BLE001
        _tell(fault="broken-file", detail=_described(error))


def _open_input() -> io.BufferedReader:
    stream = os.fdopen(os.dup(0), "rb")
    if os.fstat(stream.fileno()).st_size > FILE_BYTES:
        raise ValueError(f"over {FILE_BYTES:,} bytes")
    return stream


def _tell_pages(reader: Any) -> None:
    if reader.is_encrypted and not reader.decrypt(""):
        _tell(fault="encrypted", detail="it needs a password")
        return
    info = reader.metadata or {}
    names = {"title": "/Title", "author": "/Author", "date": "/CreationDate"}
    _tell(info={name: str(info[key])[:1000] for name, key in names.items() if info.get(key)})
    for page in reader.pages:
        try:
            text = page.extract_text()[: LONGEST_LINE + 1]
        except Exception as error:  # noqa: BLE001 - as above, but it costs a page alone
            _tell(bad_page=_described(error))
        else:
            _tell(page=text)
    _tell(end=None)


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def _tell(**answer: Any) -> None:
    # ASCII: whatever letters a page is said to have, the line can be written.
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
