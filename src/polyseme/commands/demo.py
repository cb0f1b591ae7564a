"""Open the explorer on demo texts: English novels, or Chinese classics.

English: novels of 1840-1859 and of 1900-1920, starting with the word *bank*. Chinese: books from
before 600 and after 1300, split into characters, starting with 走. The models were trained on more
books like these. The first start prepares the texts, which takes a few seconds.

Examples:

  polyseme demo

  polyseme demo --language zh

  polyseme demo --no-browser --port 8123
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field
from rich.console import RenderableType

from polyseme.commands.explore import Announcement
from polyseme.config import Settings
from polyseme.explorer import PagesConfig
from polyseme.processes import open_port, python_process
from polyseme.progress import SILENT, Progress
from polyseme.text.settings import SegmenterName

if TYPE_CHECKING:
    from polyseme.embedding.word_embedder import WordEmbedder
    from polyseme.text.corpus import Corpus


class _Demo(NamedTuple):
    texts: str
    model: str
    word: str
    finer: int  # by how many steps its groups are finer than usual
    others: tuple[str, ...]  # words to try after it
    sides: tuple[str, str]  # two periods to compare it in
    shard_bytes: int  # so small that all workers have something to do, to the end
    meta: tuple[str, ...]
    segmenter: SegmenterName | None
    """None: that of the language. Classical Chinese is read by characters."""
    title: str  # what the corpus is called where it is read and cited


_DEMOS = {
    "en": _Demo(
        "demo-en",
        "en-novels",
        "bank, banks",
        0,
        ("kind", "train"),
        ("year<1860", "year>=1900"),
        1 << 20,
        ("year", "author", "title", "period"),
        None,
        "45 English novels, 1840–1859 and 1900–1920",
    ),
    "zh": _Demo(
        "demo-zh",
        "zh-classics",
        "走",
        1,
        ("打", "行"),
        ("year<600", "year>=1300"),
        1 << 18,
        ("year", "dynasty", "title", "period"),
        "characters",
        "古籍九种：600 年以前与 1300 年以后",
    ),
}
_NAME = "texts.jsonl"


class DemoConfig(Settings):
    """Which texts, and where they are kept once they are prepared."""

    language: Literal["en", "zh"] = "en"
    """Of texts and pages: en or zh."""
    cache: Path | None = None
    """Folder for the prepared texts and your notes; by default `polyseme` in your cache folder."""
    serve: PagesConfig = Field(default_factory=PagesConfig)
    """Where the pages are served."""


@dataclass(frozen=True)
class DemoResult:
    """Where the demo keeps what it made."""

    folder: Path


def run(config: DemoConfig, progress: Progress = SILENT) -> DemoResult:
    """Prepare the texts if need be, then serve pages until they are no longer wanted."""
    from polyseme.processes import hold_little_memory
    from polyseme.storage.installed import model_folder, require_texts

    hold_little_memory()
    demo = _DEMOS[config.language]
    model = str(model_folder(demo.model))
    folder = (config.cache or cache_folder()) / demo.texts
    texts = require_texts(demo.texts)
    with open_port(config.serve.port) as listening:
        corpus, embedder = _open(texts, folder, config.language, model, progress)

        from polyseme.explorer.server import serve
        from polyseme.explorer.view import View
        from polyseme.explorer.workspace import Workspace
        from polyseme.meanings.use_map import lay_out_aside

        opening, notes = View(q=demo.word, finer=demo.finer), folder / "notes"
        before, after = demo.sides
        examples = tuple(View(q=word, finer=demo.finer) for word in demo.others)
        compared = View(q=demo.word, finer=demo.finer, before=(before,), after=(after,))
        workspace = Workspace(
            corpus,
            model,
            notes,
            opening=opening,
            examples=(*examples, compared),
            embedder=embedder,
            title=demo.title,
            lay_out=lay_out_aside,
        )
        serve(
            workspace,
            config.serve,
            listening,
            language=config.language,
            on_ready=Announcement(progress),
        )
    return DemoResult(folder)


def show(result: DemoResult) -> RenderableType:
    """Where to find it again, and what to do next."""
    return (
        f"Stopped. Texts and notes are in {result.folder}. With texts of your own: polyseme "
        "prepare TEXTS --language CODE --out corpus, then polyseme explore corpus --model MODEL."
    )


def cache_folder() -> Path:
    """Where this user's programs keep what they can make again."""
    given = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(given) if given else Path.home() / ".cache") / "polyseme"


def _open(
    texts: Path, folder: Path, language: str, model: str, progress: Progress
) -> "tuple[Corpus, WordEmbedder | None]":
    """The demo's corpus: the one that is there, if it is of these texts, or a new one.

    While texts are prepared, the model is loaded besides.
    """
    from polyseme.storage.files import sha256_of
    from polyseme.storage.folders import holds
    from polyseme.text.corpus import Corpus

    # Named after the texts: those of a later version are prepared again, and notes stay.
    place = folder / f"corpus-{sha256_of(texts)[:10]}"
    if holds(place, "corpus"):
        return Corpus.open(place), None
    with ThreadPoolExecutor(1) as beside:
        embedder = beside.submit(_load, model)
        _prepare_aside(texts, folder, place, language, progress)
        return Corpus.open(place), embedder.result()


def _load(model: str) -> "WordEmbedder":
    """The model, with all that pages need: most of the time is for importing it."""
    import polyseme.explorer.server  # noqa: F401
    from polyseme.embedding.loading import load_embedder
    from polyseme.explorer.context import load_templates

    load_templates()
    return load_embedder(model)


def _prepare_aside(
    texts: Path, folder: Path, place: Path, language: str, progress: Progress
) -> None:
    """In a process that ends, with all that preparing imports. What went wrong there, or where
    there is no room for a process, is done here, from where it stopped."""
    command = python_process(
        __name__, "prepare_texts", str(texts), str(folder), str(place), language
    )
    with (
        suppress(OSError),
        subprocess.Popen(  # noqa: S603 - this same interpreter, and our own settings
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as child,
    ):
        assert child.stdout is not None
        for line in child.stdout:
            told = json.loads(line)
            getattr(progress, told[0])(*told[1:])
        if child.wait() == 0:
            return
    _prepare(texts, folder, place, language, progress)


class _ToldProgress:
    """Tells the process that began this one."""

    def log(self, message: str) -> None:
        self._tell("log", message)

    def start(self, what: str, total: int) -> None:
        self._tell("start", what, total)

    def update(self, done: int, note: str = "") -> None:
        self._tell("update", done, note)

    def _tell(self, *told: object) -> None:
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


def prepare_texts(texts: str, folder: str, place: str, language: str) -> None:
    """What that process does: a line of JSON on standard output for each step."""
    _prepare(Path(texts), Path(folder), Path(place), language, _ToldProgress())


def _prepare(texts: Path, folder: Path, place: Path, language: str, progress: Progress) -> None:
    from polyseme.commands import prepare
    from polyseme.config import build
    from polyseme.storage.files import disk_faults_explained, make_output

    with disk_faults_explained(folder):
        make_output(folder)
        unpacked = _unpack(texts, folder / _NAME)
    demo = _DEMOS[language]
    settings = {
        "inputs": [str(unpacked)],
        "out": place,
        "corpus": {
            "language": language,
            "segmenter": demo.segmenter,
            "meta": demo.meta,
            "shard_bytes": demo.shard_bytes,
        },
    }
    prepare.run(build(prepare.PrepareConfig, settings), progress)
    unpacked.unlink(missing_ok=True)


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
