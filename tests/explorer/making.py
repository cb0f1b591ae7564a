"""A corpus of two meanings of *bank*, its explorer, and a browser's requests to it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from corpora import prepared
from meanings.test_named_groups import MODEL, bank_uses
from starlette.testclient import TestClient

from polyseme.explorer.context import AppContext
from polyseme.explorer.explored_word import Job
from polyseme.explorer.server import make_app
from polyseme.explorer.view import GroupingKey, View
from polyseme.explorer.workspace import Workspace
from polyseme.text.corpus import Corpus

PORT = 8123
HOST = f"http://127.0.0.1:{PORT}"


def make_bank_corpus(folder: Path, **metadata: list[str]) -> Corpus:
    """84 uses: rivers in 1850 by ten authors, money in 1950 by ten others."""
    uses, is_river = bank_uses()
    rows = []
    for number, (words, river) in enumerate(zip(uses.sentences(), is_river, strict=True)):
        row: dict[str, Any] = {
            "text": " ".join(words),
            "year": 1850 + number % 5 if river else 1950 + number % 5,
            "author": f"{'River' if river else 'Money'} {number % 10}",
        }
        rows.append(row | {name: values[number % len(values)] for name, values in metadata.items()})
    return make_corpus_of(folder, rows, meta=("year", "author", *metadata))


def make_corpus_of(
    folder: Path, rows: list[dict[str, Any]], meta: tuple[str, ...], language: str = "en"
) -> Corpus:
    """A corpus of JSON rows, a document each."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "texts.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return prepared(folder / "texts.jsonl", folder / "corpus", language=language, meta=meta)


def make_treebank_corpus(folder: Path, glosses: Sequence[str] = ()) -> Corpus:
    """The same uses, each word with its lemma (in capitals) and a gloss; `of` has no lemma."""
    uses, _ = bank_uses()
    blocks: list[str] = []
    for words in uses.sentences():
        lines: list[str] = []
        for word in words:
            gloss = glosses[(len(blocks) + len(lines)) % len(glosses)] if glosses else "g"
            lines.append("\t".join([word, "_" if word == "of" else word.upper(), gloss]))
        blocks.append("\n".join(["<text>", "<s>", *lines, "</s>", "</text>"]))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bank.vert").write_text("\n".join(blocks) + "\n", encoding="utf-8")
    attributes = ("lemma", "gloss")
    return prepared(
        folder / "bank.vert", folder / "corpus", format="vertical", word_attributes=attributes
    )


@dataclass
class Explored:
    """A workspace and a client that has its token."""

    workspace: Workspace
    client: TestClient
    app: AppContext
    """For what pages are made of."""

    def get(self, address: str, **headers: str) -> str:
        """The text of a page that must be there."""
        answer = self.client.get(address, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.text

    def post(self, address: str, **form: str | list[str]) -> str:
        """Where a form leads to."""
        answer = self.client.post(
            address, data=form, headers={"origin": HOST}, follow_redirects=False
        )
        assert answer.status_code == 303, answer.text
        return str(answer.headers["location"])

    def judge(self, view: View, **form: str | list[str]) -> str:
        """An edit of the groups as they are now."""
        state = str(len(self.workspace.edits(view).edits))
        return self.post("/judge", view=urlencode(view.pairs()), state=state, **form)

    def wait_for_groups(self, **view: Any) -> View:
        """A view whose groups and map are there."""
        asked = View(**{"q": "bank", **view})
        self.get(asked.address("/word"))
        word = self.workspace.word(asked)
        _wait_for(word.job)
        _wait_for(word.drawing(GroupingKey(asked.finer, asked.layer)))
        return asked


def _wait_for(job: Job | None) -> None:
    assert job is not None
    assert job.ended.wait(timeout=120)
    assert job.state == "done", job.error


def explore(corpus: Corpus, notes: Path, model: str = str(MODEL)) -> Explored:
    workspace = Workspace(corpus, model, notes)
    guard = make_app(workspace, port=PORT)
    client = TestClient(guard, base_url=HOST)
    assert client.get(f"/?token={guard.new_code()}").status_code == 200
    return Explored(workspace, client, AppContext(workspace))
