"""A finished folder ↔ a repository of the Hugging Face Hub.

    push   model or corpus → repository: every hash is checked, then all files go in one commit
    pull   repository → folder: all files of one commit, which appear only if every hash fits

A model becomes a model repository, OWNER/NAME; a corpus a dataset, datasets/OWNER/NAME. This is the
one place that sends anything to a network, and only when a user asks for it. Who you are is what
`hf auth login` remembers; another hub is chosen by the variable HF_ENDPOINT.

The Hub's README.md is for its readers: a model's card goes there with a head for the Hub's search,
and its owner may edit it. The card as the manifest has it lies beside it, and is what `pull` takes.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from polyseme.errors import HubError, MissingExtraError, StorageError
from polyseme.limits import JSON_BYTES, read_json, read_text
from polyseme.progress import NullProgress, Progress
from polyseme.storage.files import publish_folder, scratch_folder
from polyseme.storage.folders import MANIFEST, damaged_files, listed_files
from polyseme.storage.hub_card import corpus_card, model_card

_NAME = re.compile(r"(datasets/)?((?!datasets/)\w[\w.-]{0,95}/\w[\w.-]{0,95})", re.ASCII)
_TYPES = {"model": "model", "corpus": "dataset"}
"""What each of our folders is called on the Hub."""
_FILES = {
    "model": re.compile(
        r"model\.safetensors|config\.toml|README\.md|(vocabulary|characters)\.parquet"
    ),
    "corpus": re.compile(
        r"config\.toml|vocabulary\.parquet|(shards|words|quarantine)/part-\d+[\w.-]*"
    ),
}
"""What files each of them has: nothing else is fetched, whatever a manifest says."""
_CARD = "README.md"
_OWN_CARD = "polyseme/README.md"
"""A model's card, byte for byte."""


@dataclass(frozen=True)
class Repository:
    """A repository of the Hub, as a user names it."""

    name: str
    """OWNER/NAME."""
    repo_type: str = "model"

    @classmethod
    def parse(cls, text: str) -> "Repository":
        """OWNER/NAME, or datasets/OWNER/NAME."""
        found = _NAME.fullmatch(text)
        if found is None:
            raise HubError(
                f"{text!r} does not name a repository: OWNER/NAME was expected, or "
                "datasets/OWNER/NAME for a corpus."
            )
        return cls(found[2], "dataset" if found[1] else "model")

    def __str__(self) -> str:
        return f"datasets/{self.name}" if self.repo_type == "dataset" else self.name


@dataclass(frozen=True)
class Transfer:
    """What went to the Hub, or came from it."""

    repository: Repository
    commit: str
    num_files: int
    num_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "repository": str(self.repository)}


def push(
    folder: Path,
    repository: str,
    *,
    private: bool = False,
    message: str | None = None,
    progress: Progress | None = None,
) -> Transfer:
    """Upload a model or a corpus, in one commit. What the Hub has already is not sent again."""
    api = _import_hub().HfApi()
    kind, manifest = _read_folder(folder)
    wanted = Repository.parse(repository)
    target = Repository(wanted.name, _TYPES[kind])
    if wanted.repo_type == "dataset" and target != wanted:
        raise HubError(f"{quote(str(folder))} holds a {kind}, not a dataset: push it to {target}.")
    files = manifest["files"]
    _check_files(folder, manifest, progress or NullProgress())
    operations = [_addition(_on_hub(name), folder / name) for name in (*files, MANIFEST)]
    operations.append(_addition(_CARD, _card(folder, target.name, manifest).encode()))
    with _faults_explained(target):
        api.create_repo(
            target.name, repo_type=target.repo_type, private=private or None, exist_ok=True
        )
        done = api.create_commit(
            target.name,
            operations,
            commit_message=message or f"Upload a {kind} with Polyseme",
            repo_type=target.repo_type,
        )
    return Transfer(target, str(done.oid), len(operations), _total_bytes(files))


def pull(
    repository: str, out: Path, *, revision: str | None = None, progress: Progress | None = None
) -> Transfer:
    """Download what `push` uploaded into a new folder. It appears whole, or not at all."""
    api, progress = _import_hub().HfApi(), progress or NullProgress()
    target = Repository.parse(repository)
    if out.exists():
        raise StorageError(f"{out} is there already. Choose a new folder for --out.")
    with _faults_explained(target), scratch_folder(out.absolute().parent) as work:
        found = api.repo_info(target.name, repo_type=target.repo_type, revision=revision)
        commit = str(found.sha)
        fetch = _Fetch(api, target, commit, work / "fetched")
        files = _listed_on_hub(fetch, target)
        progress.start("Downloading", len(files))
        for number, name in enumerate(files, start=1):
            fetch(name)
            progress.update(number, name)
        manifest = {"files": files}
        for name in damaged_files(fetch.folder, manifest):
            raise HubError(
                f"{name} of {target} is not what its {MANIFEST} says (SHA-256 differs). Nothing "
                "was kept. Ask whoever uploaded it to push it again."
            )
        whole = work / "whole"
        for name in (*files, MANIFEST):
            (whole / name).parent.mkdir(parents=True, exist_ok=True)
            (fetch.folder / name).rename(whole / name)
        publish_folder(whole, out.absolute())
    return Transfer(target, commit, len(files) + 1, _total_bytes(files))


@dataclass(frozen=True)
class _Fetch:
    """Downloads files of one commit into a folder."""

    api: Any
    repository: Repository
    commit: str
    folder: Path

    def __call__(self, name: str) -> Path:
        fetched = Path(
            self.api.hf_hub_download(
                self.repository.name,
                _on_hub(name),
                repo_type=self.repository.repo_type,
                revision=self.commit,
                local_dir=self.folder,
            )
        )
        return fetched.rename(self.folder / name)

    def sizes(self, names: list[str]) -> dict[str, int]:
        """How large the Hub says files are; one it does not have is not among them."""
        told = self.api.get_paths_info(
            self.repository.name,
            [_on_hub(name) for name in names],
            repo_type=self.repository.repo_type,
            revision=self.commit,
        )
        sizes = {each.path: each.size for each in told if hasattr(each, "size")}
        return {name: sizes[_on_hub(name)] for name in names if _on_hub(name) in sizes}


def _listed_on_hub(fetch: _Fetch, target: Repository) -> dict[str, dict[str, Any]]:
    """The files of the manifest, of the sizes it says: before anything large is fetched."""
    not_ours = f"{target} holds nothing that `polyseme push` uploaded"
    size = fetch.sizes([MANIFEST]).get(MANIFEST)
    if size is None or size > JSON_BYTES:
        raise HubError(f"{not_ours}: it has no {MANIFEST} of at most {JSON_BYTES:,} bytes.")
    try:
        manifest = read_json(fetch(MANIFEST))
        files = listed_files(manifest)
        kind = manifest["artifact"]
        if _TYPES.get(kind) != target.repo_type:
            raise ValueError(f"it is of a {kind!r:.40}")
        if strange := [name for name in files if not _FILES[kind].fullmatch(name)]:
            raise ValueError(f"it names {strange[0]}, and no {kind} has such a file")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise HubError(f"{not_ours}: its {MANIFEST} cannot be trusted ({error}).") from error
    sizes = fetch.sizes(list(files))
    for name, described in files.items():
        if sizes.get(name) != described.get("bytes", sizes.get(name)) or name not in sizes:
            raise HubError(
                f"{name} of {target} has {sizes.get(name)} bytes, its {MANIFEST} says "
                f"{described.get('bytes')}. Nothing was kept."
            )
    return files


def _read_folder(folder: Path) -> tuple[str, dict[str, Any]]:
    """What a folder holds, and its manifest."""
    try:
        manifest = read_json(folder / MANIFEST)
        listed_files(manifest)
        kind = manifest["artifact"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise HubError(
            f"{quote(str(folder))} holds no finished model or corpus: its {MANIFEST} cannot be "
            f"read ({error})."
        ) from error
    if kind not in _TYPES:
        raise HubError(
            f"{quote(str(folder))} holds {kind!r:.40}; a model or a corpus was expected."
        )
    return kind, manifest


def _check_files(folder: Path, manifest: Mapping[str, Any], progress: Progress) -> None:
    """Refuse to publish what is not as it was written."""
    progress.start("Checking", len(manifest["files"]))
    for name in damaged_files(folder, manifest, progress.update):
        raise HubError(
            f"{folder / name} is missing or not as it was written (SHA-256 differs from "
            f"{MANIFEST}). Nothing was uploaded."
        )


def _card(folder: Path, name: str, manifest: Mapping[str, Any]) -> str:
    if _CARD not in manifest["files"]:
        return corpus_card(name, manifest)
    return model_card(read_text(folder / _CARD, JSON_BYTES), manifest)


def _on_hub(name: str) -> str:
    """Where a file of ours lies in a repository."""
    return _OWN_CARD if name == _CARD else name


def _addition(name: str, content: "Path | bytes") -> Any:
    from huggingface_hub import CommitOperationAdd

    return CommitOperationAdd(name, content)


def _total_bytes(files: Mapping[str, Mapping[str, Any]]) -> int:
    return sum(int(described.get("bytes", 0)) for described in files.values())


def _import_hub() -> Any:
    try:
        import huggingface_hub
    except ModuleNotFoundError as error:
        raise MissingExtraError.of(
            "huggingface_hub", extra="hub", purpose="Exchanging folders with a hub"
        ) from error
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()  # ours are shown
    return huggingface_hub


@contextlib.contextmanager
def _faults_explained(target: Repository) -> Iterator[None]:
    """Turn what the Hub, or the way to it, answers into an error that says what to do."""
    import warnings

    from huggingface_hub import errors

    # The common ancestor of what its HTTP library raises when there is no network.
    broken: type[Exception] = errors.HfHubHTTPError.__mro__[1]
    try:
        with warnings.catch_warnings():
            # The library warns its programmers, and of tables in a model, which has its words in
            # one: nothing that our users could do anything about.
            warnings.simplefilter("ignore")
            yield
    except errors.GatedRepoError as error:
        raise HubError(f"{target} is gated, and you have no access: {error}") from error
    except errors.RepositoryNotFoundError as error:
        raise HubError(
            f"The Hub has no {target}, or you may not see it. Check its name; for one of your own, "
            "log in first: hf auth login"
        ) from error
    except (errors.RevisionNotFoundError, errors.RemoteEntryNotFoundError) as error:
        raise HubError(f"{target} has no such revision or file: {error}") from error
    except errors.OfflineModeIsEnabled as error:
        raise HubError("HF_HUB_OFFLINE is set: the network is not used.") from error
    except errors.HfHubHTTPError as error:
        raise HubError(f"The Hub refused ({target}): {error}") from error
    except RuntimeError as error:  # one of several uploads at a time
        raise HubError(f"Uploading to {target} failed: {error.__cause__ or error}") from error
    except (broken, errors.LocalEntryNotFoundError) as error:
        raise HubError(
            f"The Hub cannot be reached ({type(error).__name__}: {error}). Folders that are here "
            "need no network."
        ) from error
