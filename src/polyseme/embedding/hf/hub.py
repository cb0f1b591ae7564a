"""Where a model of Hugging Face lies: in a folder, or in that library's own cache.

Nothing is fetched unless it is asked for. What was fetched once is found again without a network.
"""

import re
from pathlib import Path
from shlex import quote

from polyseme.embedding.hf.network import import_transformers
from polyseme.errors import ModelError

_REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*")  # OWNER/MODEL
# Neither pickle nor code: what would not be read is not fetched.
_WANTED = ["*.json", "*.txt", "*.model", "*.safetensors"]


def find_folder(name: str, *, download: bool = False) -> Path:
    """The folder that is meant by `hf:NAME`: itself, or where the cache has a model so named."""
    folder = Path(name)
    if folder.is_dir() or not _REPOSITORY.fullmatch(name):
        return folder  # whoever opens it says what is wrong with it
    import_transformers()  # which brings the library that knows the cache
    import huggingface_hub

    try:
        found = huggingface_hub.snapshot_download(
            name, local_files_only=not download, allow_patterns=_WANTED
        )
    except (OSError, ValueError) as error:
        if download:
            raise ModelError(f"{name} cannot be fetched: {error}") from error
        raise ModelError(
            f"There is no folder {quote(name)}, nor has Hugging Face's cache a model of this name. "
            f"Fetch one with: hf download OWNER/MODEL --local-dir {quote(name)}"
        ) from error
    return Path(found)
