"""Open the explorer on demo texts: English novels, or Chinese classics.

English: novels of 1840-1859 and of 1900-1920, beginning with the word *train*. Chinese: books from
before 600 and after 1300, beginning with 走. The first start prepares the texts, in some seconds;
they are kept for the next.

Examples:

  polyseme demo

  polyseme demo --language zh

  polyseme demo --no-browser --port 8123
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field
from rich.console import RenderableType

from polyseme.commands.explore import announce
from polyseme.config import Settings
from polyseme.explorer.settings import ServeConfig
from polyseme.progress import NullProgress, Progress

if TYPE_CHECKING:
    from polyseme.text.corpus import Corpus


class _Demo(NamedTuple):
    texts: str
    model: str
    word: str
    finer: int
    """Steps to more groups than usual that the word is shown in."""
    meta: tuple[str, ...]


_DEMOS = {
    "en": _Demo("demo-en", "en-mini", "train", 1, ("year", "author", "title", "period")),
    "zh": _Demo("demo-zh", "zh-mini", "走", 1, ("year", "dynasty", "title", "period")),
}
_SHARD_BYTES = 1 << 20  # so small that all workers have something to do
_NAME = "texts.jsonl"


class DemoConfig(Settings):
    """Which texts, and where they are kept once they are prepared."""

    language: Literal["en", "zh"] = "en"
    """Of texts and pages: en or zh."""
    cache: Path | None = None
    """Folder for the prepared texts and your notes; by default `polyseme` in your cache folder."""
    serve: ServeConfig = Field(default_factory=ServeConfig)
    """Where the pages are served."""


@dataclass(frozen=True)
class DemoResult:
    """Where the demo keeps what it made."""

    folder: Path


def run(config: DemoConfig, progress: Progress | None = None) -> DemoResult:
    """Prepare the texts if need be, then serve pages until they are no longer wanted."""
    from polyseme.explorer.server import serve
    from polyseme.explorer.view import View
    from polyseme.explorer.workspace import Workspace
    from polyseme.storage.installed import model_folder, require_texts

    progress = progress or NullProgress()
    demo = _DEMOS[config.language]
    model = model_folder(demo.model)
    folder = (config.cache or cache_folder()) / demo.texts
    corpus = _corpus(require_texts(demo.texts), folder, config.language, progress)
    opening = View(q=demo.word, finer=demo.finer)
    workspace = Workspace(corpus, str(model), folder / "notes", opening=opening)
    serve(
        workspace,
        config.serve,
        language=config.language,
        on_ready=lambda address: announce(address, progress),
    )
    return DemoResult(folder)


def show(result: DemoResult) -> RenderableType:
    """Where to find it again, and what to do next."""
    return (
        f"Ended. Texts and notes are in {result.folder}. With texts of your own: polyseme prepare "
        "TEXTS --language CODE --out corpus, then polyseme explore corpus --model MODEL."
    )


def cache_folder() -> Path:
    """Where this user's programs keep what they can make again."""
    given = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(given) if given else Path.home() / ".cache") / "polyseme"


def _corpus(texts: Path, folder: Path, language: str, progress: Progress) -> "Corpus":
    """The demo's corpus: the one that is there, if it is of these texts, or a new one."""
    from polyseme.commands import prepare
    from polyseme.config import build
    from polyseme.storage.files import disk_faults_explained, make_output, sha256_of
    from polyseme.storage.folders import holds
    from polyseme.text.corpus import Corpus

    # Named after the texts: those of a later version are prepared again, and notes stay.
    place = folder / f"corpus-{sha256_of(texts)[:10]}"
    if holds(place, "corpus"):
        return Corpus.open(place)
    with disk_faults_explained(folder):
        make_output(folder)
        unpacked = _unpack(texts, folder / _NAME)
    settings = {
        "inputs": [str(unpacked)],
        "out": place,
        "corpus": {
            "language": language,
            "meta": _DEMOS[language].meta,
            "shard_bytes": _SHARD_BYTES,
        },
    }
    corpus = prepare.run(build(prepare.PrepareConfig, settings), progress).corpus
    unpacked.unlink(missing_ok=True)
    return corpus


def _unpack(texts: Path, to: Path) -> Path:
    """Plain text can be shared among workers; a packed file cannot."""
    from polyseme.config import build
    from polyseme.storage.files import scratch_for
    from polyseme.text.settings import CorpusConfig
    from polyseme.text.sources import find_sources
    from polyseme.text.streams import read_blocks

    [source] = find_sources([str(texts)], build(CorpusConfig, {"language": "en"})).sources
    with scratch_for(to) as scratch, scratch.open("wb") as file:
        for block in read_blocks(source, 0, 0):
            file.write(block)
    return to
