"""Explore a corpus in the browser: group a word's uses by meaning, map, edit and compare them.

Serves pages on this machine only, to whoever has the printed address; nothing is sent anywhere.
Your edits (names, merges, labels) are logged in a folder of notes; `polyseme senses --edits`
replays them.

Examples:

  polyseme explore corpus/novels

  polyseme explore corpus/novels --model models/en-mini

  polyseme explore corpus/novels --model models/en-mini --index index/novels

  polyseme explore corpus/novels --model models/en-mini --no-browser --port 8123
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import Field
from rich.console import RenderableType

from polyseme.config import Folder, OptionalFolder, Settings
from polyseme.embedding.settings import ModelName
from polyseme.explorer import PagesConfig
from polyseme.processes import open_port
from polyseme.progress import SILENT, Progress
from polyseme.storage.installed import default_model
from polyseme.storage.store import is_url


class ExploreConfig(Settings):
    """Which corpus, by which model."""

    arguments: ClassVar[tuple[str, ...]] = ("corpus",)

    corpus: Folder
    """The corpus folder."""
    model: ModelName = None
    index: OptionalFolder = None
    """Read uses from this index (`polyseme index`), made with the model, where it has the word."""
    notes: Path | None = None
    """Folder for your edits and labels; by default a folder beside the corpus, CORPUS-notes."""
    word: str = ""
    """The word to begin with."""
    serve: PagesConfig = Field(default_factory=PagesConfig)
    """Where the pages are served."""


@dataclass(frozen=True)
class ExploreResult:
    """Where notes are kept."""

    notes: Path


def run(config: ExploreConfig, progress: Progress = SILENT) -> ExploreResult:
    """Serve pages until they are no longer wanted."""
    from polyseme.processes import hold_little_memory
    from polyseme.text.corpus import Corpus

    hold_little_memory()
    with open_port(config.serve.port) as listening:
        corpus = Corpus.open(config.corpus)
        model = config.model or default_model(corpus.config.language)

        from polyseme.explorer.server import serve
        from polyseme.explorer.view import View
        from polyseme.explorer.workspace import Workspace
        from polyseme.meanings.index.use_index import open_for
        from polyseme.meanings.use_map import lay_out_aside

        index = None if config.index is None else open_for(config.index, corpus, model)
        # Beside the corpus; of one in a store, where the explorer was started.
        beside = Path.cwd() if is_url(config.corpus) else config.corpus.resolve().parent
        notes = config.notes or beside / f"{config.corpus.resolve().name}-notes"
        workspace = Workspace(
            corpus,
            model,
            notes,
            opening=View(q=config.word),
            index=index,
            lay_out=lay_out_aside,
        )
        serve(workspace, config.serve, listening, on_ready=Announcement(progress))
    return ExploreResult(notes)


@dataclass
class Announcement:
    """Says where the pages are."""

    progress: Progress
    is_first: bool = True

    def __call__(self, address: str) -> None:
        """An address, and later another."""
        if self.is_first:
            self.progress.log(f"The explorer is at {address}")
            self.progress.log(
                "It is reachable from this machine only, and the address works once. Stop it with "
                "Ctrl-C."
            )
        else:
            self.progress.log(f"To open it in another browser: {address}")
        self.is_first = False


def show(result: ExploreResult) -> RenderableType:
    """Where what was judged is."""
    return f"Stopped. Notes are kept in {result.notes}."
