"""A finished folder ↔ a repository of the Hugging Face Hub.

    push   model or corpus → repository: every hash is checked, then all files go in one commit
    pull   repository → folder: all files of one commit, which appear only if every hash fits

A model becomes a model repository, OWNER/NAME; a corpus a dataset, datasets/OWNER/NAME. This is the
one place that sends anything to a network, and only when a user asks for it. Who you are is what
`hf auth login` remembers; another hub is chosen by the variable HF_ENDPOINT.

The Hub's README.md is for its readers: a model's card goes there with a head for the Hub's search,
and its owner may edit it. The card as the manifest has it lies beside it, and is what `pull` takes.
Fields and licences of that head are those that the Hub documents (hub/model-cards).
"""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from polyseme.errors import HubError, StorageError, extra_needed_for
from polyseme.limits import JSON_BYTES, read_json, read_text
from polyseme.progress import SILENT, Progress
from polyseme.storage.files import publish_folder, scratch_folder
from polyseme.storage.folders import FILES, MANIFEST, all_files, damaged_files, listed_files

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
    progress: Progress = SILENT,
) -> Transfer:
    """Upload a model or a corpus, in one commit. What the Hub has already is not sent again."""
    hub = _import_hub()
    api = hub.HfApi()
    kind, manifest = _read_folder(folder)
    wanted = Repository.parse(repository)
    target = Repository(wanted.name, _TYPES[kind])
    if wanted.repo_type == "dataset" and target != wanted:
        raise HubError(f"{quote(str(folder))} holds a {kind}, not a dataset: push it to {target}.")
    files = manifest["files"]
    progress.start("Checking", len(files))
    for name in damaged_files(folder, manifest, progress.update):
        raise HubError(
            f"{folder / name} is missing or not as it was written (SHA-256 differs from "
            f"{MANIFEST}). Nothing was uploaded."
        )
    if _CARD in files:
        card = model_card(read_text(folder / _CARD, JSON_BYTES), manifest)
    else:
        card = corpus_card(target.name, manifest)
    operations = [hub.CommitOperationAdd(_on_hub(name), folder / name) for name in files]
    operations.append(hub.CommitOperationAdd(MANIFEST, folder / MANIFEST))
    operations.append(hub.CommitOperationAdd(_CARD, card.encode()))
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
    repository: str, out: Path, *, revision: str | None = None, progress: Progress = SILENT
) -> Transfer:
    """Download what `push` uploaded into a new folder. It appears whole, or not at all."""
    api = _import_hub().HfApi()
    target = Repository.parse(repository)
    if out.exists():
        raise StorageError(f"{out} is there already. Choose a new folder for --out.")
    with _faults_explained(target), scratch_folder(out.absolute().parent) as work:
        found = api.repo_info(target.name, repo_type=target.repo_type, revision=revision)
        commit, fetched = str(found.sha), work / "fetched"

        def fetch(*names: str) -> None:
            api.snapshot_download(
                target.name,
                repo_type=target.repo_type,
                revision=commit,
                local_dir=fetched,
                allow_patterns=[_on_hub(name) for name in names],
            )

        fetch(MANIFEST)
        if FILES in (files := _listed_files(fetched / MANIFEST, target)):
            fetch(FILES)
            files = _listed_files(fetched / MANIFEST, target)
        progress.start("Downloading", len(files))
        fetch(*files)
        progress.update(len(files))
        if (fetched / _OWN_CARD).is_file():
            (fetched / _OWN_CARD).replace(fetched / _CARD)
        for name in damaged_files(fetched, {"files": files}):
            raise HubError(
                f"{name} of {target} is missing or not what its {MANIFEST} says (SHA-256 differs). "
                "Nothing was kept. Ask whoever uploaded it to push it again."
            )
        whole = work / "whole"  # without what the library leaves beside the files
        for name in (*files, MANIFEST):
            (whole / name).parent.mkdir(parents=True, exist_ok=True)
            (fetched / name).rename(whole / name)
        publish_folder(whole, out.absolute())
    return Transfer(target, commit, len(files) + 1, _total_bytes(files))


def _listed_files(path: Path, target: Repository) -> Mapping[str, Mapping[str, Any]]:
    """The files of a manifest that came from the Hub, with those of its table if that is there:
    only such as `push` uploads."""
    not_ours = f"{target} holds nothing that `polyseme push` uploaded"
    if not path.is_file():
        raise HubError(f"{not_ours}: it has no {MANIFEST}.")
    try:
        manifest = read_json(path)
        files: Mapping[str, Mapping[str, Any]] = listed_files(manifest)
        if (path.parent / FILES).is_file():
            files = all_files(path.parent, files)
        kind = manifest["artifact"]
        if _TYPES.get(kind) != target.repo_type:
            raise ValueError(f"it is of a {kind!r:.40}")
        if strange := [name for name in files if not _FILES[kind].fullmatch(name)]:
            raise ValueError(f"it names {strange[0]}, and no {kind} has such a file")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise HubError(f"{not_ours}: its {MANIFEST} cannot be trusted ({error}).") from error
    return files


def _read_folder(folder: Path) -> tuple[str, dict[str, Any]]:
    """What a folder holds, and its manifest."""
    try:
        manifest = read_json(folder / MANIFEST)
        manifest["files"] = all_files(folder, listed_files(manifest))
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


def _on_hub(name: str) -> str:
    """Where a file of ours lies in a repository."""
    return _OWN_CARD if name == _CARD else name


def _total_bytes(files: Mapping[str, Mapping[str, Any]]) -> int:
    return sum(int(described.get("bytes", 0)) for described in files.values())


def _import_hub() -> Any:
    with extra_needed_for("Exchanging folders with a hub"):
        import huggingface_hub
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
    except errors.RepositoryNotFoundError as error:
        raise HubError(
            f"The Hub has no {target}, or you may not see it. Check its name; for one of your own, "
            "log in first: hf auth login"
        ) from error
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


# The card that the Hub shows: YAML between two lines of hyphens, then Markdown

_LICENCES = frozenset({
    "apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "gpl-2.0", "gpl-3.0", "lgpl-2.1",
    "lgpl-3.0", "agpl-3.0", "mpl-2.0", "unlicense", "odc-by", "odbl", "pddl", "cc0-1.0",
    "cc-by-2.0", "cc-by-2.5", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0",
    "cc-by-nc-2.0", "cc-by-nc-3.0", "cc-by-nc-4.0", "cc-by-nd-4.0", "cc-by-nc-nd-3.0",
    "cc-by-nc-nd-4.0", "cc-by-nc-sa-2.0", "cc-by-nc-sa-3.0", "cc-by-nc-sa-4.0",
})  # fmt: skip
"""Those that people state, of the Hub's list; what is none of them is `other`, with its name."""
_HEAD = "---\n"


def model_card(own: str, manifest: Mapping[str, Any]) -> str:
    """A model's own card below its head; one that has a head already stays as it is."""
    if own.startswith(_HEAD):
        return own
    told = _mapping(manifest.get("metadata"))
    fields = {
        "language": _language(_mapping(told.get("corpus")).get("language")),
        "license": _licence(told.get("licence")),
        "license_name": _licence_name(told.get("licence")),
        "library_name": "polyseme",
        "pipeline_tag": "feature-extraction",
        "tags": ["polyseme", "word-embeddings", "contextual-word-embeddings"],
    }
    return _head(fields) + own


def corpus_card(name: str, manifest: Mapping[str, Any]) -> str:
    """The card of a dataset, with its size and how to get it."""
    settings = _mapping(_mapping(manifest.get("preparation")).get("settings"))
    counts = _mapping(manifest.get("read_stats"))
    rows = [
        f"- {counts[key]:,} {key}" for key in ("documents", "sentences", "words") if key in counts
    ]
    fields = {"language": _language(settings.get("language")), "tags": ["polyseme"]}
    pull = f"polyseme pull datasets/{name} --out corpus"
    body = [f"# {name}", "", "A corpus prepared with Polyseme.", "", *rows, "", f"Get it: `{pull}`"]
    return _head(fields) + "\n".join([*body, ""])


def _head(fields: Mapping[str, Any]) -> str:
    # JSON is YAML: nothing in a value can end the head or begin another field.
    lines = [f"{name}: {json.dumps(value)}" for name, value in fields.items() if value]
    return f"{_HEAD}{chr(10).join(lines)}\n{_HEAD}\n"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _language(code: object) -> list[str]:
    """As the Hub lists them: ISO 639, without a region."""
    found = re.match(r"[a-z]{2,3}\b", code) if isinstance(code, str) else None
    return [found[0]] if found else []


def _licence(stated: object) -> str:
    """The Hub's identifier of what was stated, such as "CC BY-SA 3.0 (Wikipedia)"."""
    if not isinstance(stated, str) or not stated.strip():
        return ""
    plain = re.sub(r"[\s_]+", "-", stated.partition("(")[0].strip().lower())
    return plain if plain in _LICENCES else "other"


def _licence_name(stated: object) -> str:
    """What the Hub asks for beside `other`."""
    return stated.strip() if isinstance(stated, str) and _licence(stated) == "other" else ""
