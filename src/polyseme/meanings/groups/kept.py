"""What is measured or found once on a corpus, kept beside it in `NAME.calibration/`.

Each file is JSON with the key of what it was made from: another corpus, model or question has
another key. What cannot be written is found again the next time.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.limits import read_json
from polyseme.storage.files import write_text
from polyseme.text.corpus import Corpus, beside, state_of


def folder_of(folder: Path) -> Path:
    """Where what is found on the corpus in a folder is kept."""
    return beside(folder, "calibration")


@dataclass(frozen=True)
class Kept:
    """One file."""

    path: Path
    key: str

    @classmethod
    def of(cls, corpus: Corpus, kind: str, version: int, *asked: object) -> "Kept":
        """What a question has as its answer in this state of the corpus."""
        state = state_of(corpus)
        key = json.dumps([version, state, *asked])
        name = f"{kind}-{state[:8]}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
        return cls(folder_of(corpus.folder) / name, key)

    def read(self, parse: Callable[[dict[str, Any]], Any]) -> Any:
        """What `parse` makes of it; None if it is not there, or made from something else."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            found = read_json(self.path)
            if found["key"] == self.key:
                return parse(found)
        return None

    def write(self, values: Mapping[str, object]) -> None:
        """Keep it, and remove what was kept of earlier states of the corpus."""
        text = json.dumps({"key": self.key, **values}, indent=1)
        kind, _, state = self.path.name.partition("-")
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(exist_ok=True)
            for older in self.path.parent.glob(f"{kind}-*.json"):
                if not older.name.startswith(f"{kind}-{state[:8]}"):
                    older.unlink()
            write_text(self.path, text + "\n")
