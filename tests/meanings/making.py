"""Small corpora, prepared from documents written in the test."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpora import prepared

from polyseme.text.corpus import Corpus

Document = tuple[str, dict[str, Any]]
"""Text, and a value for each column of metadata."""
NOVELS: list[Document] = [
    ("We sat on the river bank . The Bank was closed .", {"year": "1850", "author": "Austen"}),
    ("BANK , bank and bank !", {"year": "1861", "author": "Dickens"}),
    ("The river rose . No river bank held .", {"year": "1900"}),
    ("Nobody came to the banks .", {"year": "ca. 1850", "author": "Dickens"}),
]


def make_corpus(
    folder: Path, documents: Sequence[Document], *, meta: Sequence[str] = (), **settings: Any
) -> Corpus:
    """A corpus of these documents, named d0, d1 and so on, words between spaces."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"text": text, "id": f"d{number}", **values})
        for number, (text, values) in enumerate(documents)
    ]
    (folder / "texts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    own: dict[str, Any] = {"segmenter": "whitespace", "held_out": 0.0, "id_column": "id"}
    own |= {"meta": tuple(meta), **settings}
    return prepared(folder / "texts.jsonl", folder / "corpus", **own)


def make_novels(folder: Path) -> Corpus:
    """Six sentences of four documents."""
    return make_corpus(folder, NOVELS, meta=("year", "author"))
