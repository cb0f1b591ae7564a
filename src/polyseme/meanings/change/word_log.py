"""What a long comparison of words has found so far, word by word, so that it can go on.

    in   a file, and what was asked: corpus, model, sides, settings
    out  the words that are done; each new one is on the disk before the next is begun

A line is there once its line end is. A file of another question is refused, not overwritten.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from polyseme.errors import InputError
from polyseme.limits import FILE_BYTES, parse_json, read_bytes
from polyseme.meanings.change.word_changes import ChangedWord
from polyseme.storage.files import canonical_json, write_text

_CHANGE: TypeAdapter[ChangedWord | None] = TypeAdapter(ChangedWord | None)


class WordLog:
    """Words that were compared, and those that had too few documents."""

    def __init__(self, path: Path, asked: Mapping[str, Any]) -> None:
        self.path, self._asked = path, parse_json(canonical_json(dict(asked)))
        self.found: dict[str, ChangedWord | None] = {}
        if path.exists():
            self._read()
        else:
            write_text(path, json.dumps({"asked": self._asked}, ensure_ascii=False) + "\n")

    def add(self, word: str, change: ChangedWord | None) -> None:
        """Keep a word's result; returns once it is on the disk."""
        found = None if change is None else asdict(change)
        line = json.dumps({"word": word, "found": found}, ensure_ascii=False) + "\n"
        with self.path.open("ab") as file:
            file.write(line.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        self.found[word] = change

    def remove(self) -> None:
        """All is done and written elsewhere."""
        self.path.unlink(missing_ok=True)

    def _read(self) -> None:
        try:
            content = read_bytes(self.path, FILE_BYTES)
            whole = content[: content.rfind(b"\n") + 1]
            header, *lines = whole.decode("utf-8").splitlines()
            asked = parse_json(header)["asked"]
            for line in lines:
                entry = parse_json(line)
                self.found[str(entry["word"])] = _CHANGE.validate_python(entry["found"])
        except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
            raise InputError(
                f"{self.path}, an unfinished run, is damaged. Remove it to start again."
            ) from error
        if asked != self._asked:
            differ = sorted(k for k in {*asked, *self._asked} if asked.get(k) != self._asked.get(k))
            raise InputError(
                f"{self.path} is an unfinished run with other settings ({', '.join(differ)} "
                "differs). Resume that run, remove the file, or choose another --out."
            )
        if len(whole) < len(content):  # a line that was cut short when a process was killed
            os.truncate(self.path, len(whole))
