"""Models, tasks and demo texts that were installed by pip, found by their names.

    in   "en-mini"
    out  the folder that the package `polyseme-en-mini` brought, or None

Such a package is data alone, under `polyseme_data/NAME/`. Nothing of it is imported: what pip has
written about it says where it lies. In a checkout of the repository the same names stand for the
folders there, so that nothing need be installed to work on the program.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from os import PathLike, fspath
from pathlib import Path
from shlex import quote

from polyseme.errors import ConfigError, InputError, ModelError, installed_from
from polyseme.progress import SILENT, Progress
from polyseme.storage.folders import HF_PREFIX
from polyseme.storage.remote_folders import local_folder
from polyseme.storage.store import is_url

TEXTS = "texts.jsonl.xz"
"""The texts of a demo package: JSON lines, one book each, with title, year and period."""
MODELS = {
    "en-mini": "English, trained on Wikipedia of 2015",
    "zh-mini": "Chinese, trained on Wikipedia of 2023",
    "en-base": "English, the same size, trained longer",
    "zh-base": "Chinese, the same size, trained longer",
    "en-novels": "English, en-base trained further on novels of 1840-1920",
    "zh-classics": "Chinese by characters, zh-base trained further on classics",
}
TASKS = {
    "en-upos": "English parts of speech, by en-base, learned from UD English EWT",
}
DEMOS = {
    "demo-en": "45 English novels, 1840-1859 and 1900-1920",
    "demo-zh": "9 Chinese books, before 600 and after 1300",
}
"""What is published, each with what it is."""
NOT_ON_PYPI = (
    "The models and demo texts are not on PyPI yet: ./packages is in a clone of Polyseme's "
    "repository. Their wheel files can be installed, too (pip install FILE.whl)."
)
"""What makes sense of `pip_command`."""

_NAME = re.compile(r"[a-z][a-z0-9]{0,30}(?:-[a-z0-9]{1,30}){1,3}")
_DATA = "polyseme_data"


@dataclass(frozen=True)
class InstalledData:
    """A model, a task or texts that can be named without a path."""

    name: str
    about: str
    folder: Path | None
    """None if it is not installed."""

    @property
    def num_bytes(self) -> int:
        """What it takes on disk."""
        if self.folder is None:
            return 0
        return sum(path.stat().st_size for path in self.folder.iterdir() if path.is_file())


def locate(name: str) -> Path | None:
    """The folder of an installed model or of installed texts; None if there is none.

    A name is lower-case words with hyphens between; anything else, a path above all, is none.
    """
    if not _NAME.fullmatch(name):
        return None
    return next(filter(None, _places(name)), None)


def require_texts(name: str) -> Path:
    """The file with the texts of an installed demo package, or an error that says how to get it."""
    folder = locate(name)
    if folder is None or not (folder / TEXTS).is_file():
        raise InputError(f"{_not_installed(name)} Or give a folder of texts of your own.")
    return folder / TEXTS


def model_folder(name: str | PathLike[str]) -> Path:
    """The folder of a model: the one that is named, or of an installed model of that name.

    What is in a store is fetched. A folder comes before a name. What is neither is returned as it
    is: whoever opens it says what is wrong.
    """
    return _named_folder(name, "model", MODELS)


def task_folder(name: str | PathLike[str]) -> Path:
    """The folder of a trained task: likewise."""
    return _named_folder(name, "task", TASKS)


def upos_task(language: str) -> str:
    """The published task that tags words of a language with parts of speech; an error if it is not
    installed, or there is none."""
    name = f"{language}-upos"
    if locate(name) is not None:
        return name
    if name in TASKS:
        raise ModelError(f"Parts of speech for --language {language}: {_not_installed(name)}")
    raise ConfigError(
        f"There are no parts of speech for --language {language}. Train a task on words that have "
        "them (docs/how-to/train-a-task.md) and name its folder with --upos-task; or leave upos "
        "out of --annotate, or give texts that have it, with --word-attributes upos."
    )


def default_model(language: str) -> str:
    """The model that is used for a language if none is named; if none is installed, an error.

    That on general texts which was trained longest, then any other.
    """
    names = [name for name in MODELS if name.startswith(f"{language}-")]
    best = sorted(names, key=lambda name: (not name.endswith("-base"), not name.endswith("-mini")))
    if (there := next(filter(locate, best), None)) is not None:
        return there
    raise ModelError(
        f"No model for {language!r} is installed. Name the folder of a model with --model"
        + (f", or install one: {pip_command(names[0])}. {NOT_ON_PYPI}" if names else ".")
    )


def chosen_model(name: str | None, texts: Iterable[str], progress: Progress = SILENT) -> str:
    """The model that is named, or the default for these texts, which is then logged.

    Texts with Chinese characters are taken for Chinese, all others for English.
    """
    if name is not None:
        return name
    is_chinese = any("\u4e00" <= letter <= "\u9fff" for text in texts for letter in text)
    default = default_model("zh" if is_chinese else "en")
    progress.log(f"Model: {default}, the default. Choose another with --model.")
    return default


def list_data() -> list[InstalledData]:
    """What is published, and where it is if it is here."""
    published = {**MODELS, **TASKS, **DEMOS}
    return [InstalledData(name, about, locate(name)) for name, about in published.items()]


def pip_command(name: str) -> str:
    """What installs it, from the sources that Polyseme itself was installed from if they are here.

    See `NOT_ON_PYPI`.
    """
    folder = Path(installed_from(), "packages", name)
    return f"pip install {quote(str(folder)) if folder.is_dir() else f'./packages/{name}'}"


def _named_folder(name: str | PathLike[str], what: str, published: Mapping[str, str]) -> Path:
    if is_url(name):
        return local_folder(name)
    text, folder = fspath(name), Path(name)
    if text.startswith(HF_PREFIX) or folder.exists():
        return folder
    found = locate(text)
    if found is None and text in published:
        raise ModelError(f"{_not_installed(text)} Or name the folder of a {what}.")
    if found is None and "/" not in text and (near := _nearest(text, published)):
        here = "is installed" if locate(near) else "could be installed"
        raise ModelError(f"There is no folder {text} here. Did you mean {near}, which {here}?")
    return found or folder


def _not_installed(name: str) -> str:
    return (
        f"There is no folder {name} here, and the package polyseme-{name} is not installed. "
        f"Install it with: {pip_command(name)}. {NOT_ON_PYPI}"
    )


def _nearest(text: str, published: Mapping[str, str]) -> str | None:
    """The published model that a name was meant to be: en_mini, EN-mini, enmini."""
    plain = text.lower().replace("_", "-").replace(" ", "-")
    return next(iter(difflib.get_close_matches(plain, published, n=1, cutoff=0.8)), None)


def _places(name: str) -> Iterator[Path | None]:
    """Where it may lie: among installed packages, then in the checkout this program is run from."""
    try:
        root = Path(str(distribution(f"polyseme-{name}").locate_file("")))
        yield _inside(root, f"{_DATA}/{name}")
    except PackageNotFoundError:
        pass
    checkout = Path(__file__).parents[3]
    if (checkout / "packages" / name / "pyproject.toml").is_file():
        yield _inside(checkout, f"models/{name}")
        yield _inside(checkout, f"packages/{name}/{_DATA}/{name}")


def _inside(root: Path, place: str) -> Path | None:
    """A folder below another, unless a link leads out of it."""
    folder = (root / place).resolve()
    return folder if folder.is_dir() and folder.is_relative_to(root.resolve()) else None
