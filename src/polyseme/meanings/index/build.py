"""The two ends of making an index: whether it is there already, and making it whole at the end.

A new index is complete beside the old one before the manifest, in one step, says that it is the
one. Then the old one's files go, and what the new one was made from.
"""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from polyseme.config import build
from polyseme.embedding.corpus_parts import parts_of
from polyseme.embedding.loading import fingerprint_of
from polyseme.embedding.model_work import environments_of
from polyseme.errors import PolysemeError, UseIndexError
from polyseme.executors import Receipt
from polyseme.executors.commit import RECEIPTS
from polyseme.meanings.features.use_describer import UseDescriber
from polyseme.meanings.index.folder import (
    ARTIFACT,
    COUNTS,
    DATA,
    PARTS,
    WORDS,
    IndexFolder,
    file_names,
)
from polyseme.meanings.index.merge import Merge
from polyseme.meanings.index.row_group import IndexPart, shape_of
from polyseme.meanings.settings import UseIndexConfig
from polyseme.storage.files import describe_files, sha256_of
from polyseme.storage.folders import MANIFEST, check_holds, write_manifest
from polyseme.text.corpus import Corpus


def finished(
    folder: Path, model: str, corpus: Corpus, config: UseIndexConfig, *, may_differ: bool
) -> bool:
    """Whether this very index is there, whole. One of something else is refused."""
    if not (folder / MANIFEST).exists():
        return False
    check_holds(folder, ARTIFACT.name, ARTIFACT.made_by, ARTIFACT.error)  # not a model, say
    try:
        found = IndexFolder.open(folder)
    except PolysemeError:
        if may_differ or _is_ours(folder):
            return False  # damaged: it is made again
        raise
    made_from = found.manifest["model"], found.manifest["corpus"]
    wanted = fingerprint_of(model, config.pooling), sha256_of(corpus.folder / MANIFEST)
    if made_from != wanted or build(UseIndexConfig, found.manifest["settings"]) != config:
        if may_differ:
            return False
        what = next(
            name
            for name, differs in (
                ("another model", made_from[0] != wanted[0]),
                ("another corpus, or of this one as it was", made_from[1] != wanted[1]),
                ("other words or settings", True),
            )
            if differs
        )
        raise UseIndexError(
            f"{folder} holds an index of {what}. Choose another --out, or add --replace to rebuild "
            "it."
        )
    if found.damaged_files():
        return False
    _tidy(found)
    return True


def _is_ours(folder: Path) -> bool:
    """Whether a folder with a damaged manifest was one of an index."""
    return (folder / DATA).is_dir()


def settle(
    folder: Path,
    work: IndexPart,
    describer: UseDescriber,
    corpus: Corpus,
    words: dict[str, int],
    receipts: Sequence[Receipt],
) -> IndexFolder:
    """Make one index of all parts, and the folder an index."""
    corpus_hash = sha256_of(corpus.folder / MANIFEST)
    key = hashlib.sha256(f"{work.key}\n{corpus_hash}".encode()).hexdigest()[:16]
    merge = Merge(folder, key, parts_of(corpus), shape_of(describer))
    merge.run(corpus, words, describer.words, describer.syntax)
    counts = {name: sum(receipt.counts[name] for receipt in receipts) for name in COUNTS}
    write_manifest(
        folder,
        ARTIFACT,
        describe_files(folder, file_names(key)),
        model=describer.embedder.fingerprint,
        corpus=corpus_hash,
        key=key,
        settings=work.config.model_dump(mode="json"),
        environments=environments_of(receipts),
        shape=merge.shape,
        columns=list(work.columns),
        counts=counts,
    )
    found = IndexFolder.open(folder)
    _tidy(found)
    return found


def _tidy(index: IndexFolder) -> None:
    """Take away an older index's files, and what this one was made from."""
    for path in sorted((index.folder / DATA).iterdir()):
        if path.is_file() and f"{DATA}/{path.name}" not in index.manifest["files"]:
            path.unlink()
    for name in (RECEIPTS, PARTS):
        if (index.folder / name).is_dir() and not (index.folder / name).is_symlink():
            shutil.rmtree(index.folder / name)
    (index.folder / WORDS).unlink(missing_ok=True)
