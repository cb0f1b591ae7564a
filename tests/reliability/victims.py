"""Files outside an output folder, what may stand in one to harm them, and whether they were."""

import hashlib
import os
import random
import shutil
import stat
from collections.abc import Collection, Sequence
from pathlib import Path

from executors.jobs import forge_receipt

Snapshot = dict[str, tuple[object, ...]]
Names = Sequence[str]

LINKABLE = ("shards", "vectors", "checkpoints")
"""Folders that may be links to another disk: new files may come there, nothing else may change."""
# Names that lead, or look as if they led, to a file of the victims; {v} is their folder.
LEADING_OUT = (
    *("../victims/{n}", "{v}/{n}", "shards/../../victims/{n}", "shards/../../../victims/{n}"),
    *("./../victims/{n}", "shards//../../victims/{n}", "vectors/../../victims/{n}"),
    *(
        "\uff0e\uff0e/victims/{n}",
        "..\u2215victims\u2215{n}",
        "\u2025/victims/{n}",
        "..\\victims\\{n}",
    ),
    *(
        "shards/..",
        "..",
        ".",
        "",
        "/",
        "~/{n}",
        "../victims/{n}\n",
        "../victims/{n}\0",
        ".work/../../{n}",
    ),
    *("receipts/../../victims/{n}", "quarantine/../../victims/{n}", "corpus/../../victims/{n}"),
)


def make_victims(folder: Path) -> Path:
    """Files with names that a careless command would take for its own; some may not be written."""
    for name in ("bulk", "sub/deep", ".work", "step-000000001", "checkpoint-3", "shards", "empty"):
        (folder / name).mkdir(parents=True)
    texts = {
        "precious.txt": "years of work",
        "run.jsonl": '{"step": 900000, "loss": 1.0}\nnot a line of ours\n',
        "manifest.json": "{}",
        "config.toml": "[corpus]\nlanguage = 'en'\n",
        "layers.bin": "numbers",
        "sub/deep/thesis.tex": "chapter one",
        ".work/unfinished": "half",
        "checkpoint-3/weights.safetensors": "weights",
        "step-000000001/weights.safetensors": "weights",
        "shards/part-00000.parquet": "someone else's shard",
        "shards/part-00000-0000.parquet": "someone else's vectors",
        "part-00000.parquet": "someone else's shard",
        "part-00000-0000.parquet": "someone else's vectors",
        "part-00000.json": "someone else's receipt",
        "part-00000.jsonl": "someone else's lines",
        "part-00099.parquet": "someone else's, too",
    }
    for number, (name, text) in enumerate(texts.items()):
        path = folder / name
        path.write_text(text)
        path.chmod(0o444 if number % 3 else 0o640)
        os.utime(path, (1e9 + number, 1e9 + number))
    return folder


def snapshot(folder: Path) -> Snapshot:
    """Every name below a folder with kind, mode, time, and content or target."""
    found: Snapshot = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        told = path.lstat()
        what = (
            str(path.readlink())
            if path.is_symlink()
            else hashlib.sha256(path.read_bytes()).hexdigest()
            if stat.S_ISREG(told.st_mode)
            else ""
        )
        name = path.relative_to(folder).as_posix()
        found[name] = (stat.S_IFMT(told.st_mode), told.st_mode, told.st_mtime_ns, what)
    return found


def harm(before: Snapshot, after: Snapshot, open_to: Collection[str] = ()) -> list[str]:
    """What is gone, changed or new. Folders in `open_to` may get new files, and so a new time."""
    gone = [f"{name} is gone" for name in before.keys() - after.keys()]
    changed = [
        f"{name} was changed"
        for name in before.keys() & after.keys()
        if before[name] != after[name] and name not in open_to
    ]
    new = [
        f"{name} is new"
        for name in after.keys() - before.keys()
        if not any(top == "." or name.startswith(f"{top}/") for top in open_to)
    ]
    return sorted(gone + changed + new)


class Planter:
    """Puts things into an output folder that lead to the victims, by a seed."""

    def __init__(
        self, out: Path, victims: Path, choose: random.Random, files: Names, folders: Names
    ) -> None:
        self.out, self.victims, self.choose = out, victims, choose
        self.files, self.folders = files, folders
        self.open_to: set[str] = set()
        self.planted: list[str] = []

    def plant(self, number: int) -> None:
        """So many of them; what stood there before is moved away."""
        kinds = [self.link_file, self.link_folder, self.hard_link, self.receipt, self.other_kind]
        for _ in range(number):
            self.choose.choices(kinds, [3, 4, 2, 3, 1])[0]()

    def link_file(self) -> None:
        """A link in the place of a file: to a file, a folder, nothing, or itself."""
        name = self.choose.choice(self.files)
        targets = ["precious.txt", "run.jsonl", "config.toml", "not-there", "sub", "empty"]
        self._link(name, self.choose.choice([*targets, "itself"]))

    def link_folder(self) -> None:
        name = self.choose.choice(self.folders)
        targets = [".", "bulk", "sub", "shards", ".work", "empty", "not-there", "precious.txt"]
        target = self.choose.choice([*targets, "itself"])
        if self._link(name, target) and name.rpartition("/")[2] in LINKABLE:
            self.open_to.add(target)

    def hard_link(self) -> None:
        name = self.choose.choice(self.files)
        files = ["precious.txt", "run.jsonl", "config.toml", "manifest.json"]
        path = self._room(name)
        if path is not None:
            os.link(self.victims / self.choose.choice(files), path)
            self.planted.append(f"{name} as a hard link")

    def receipt(self) -> None:
        """A receipt, its seal right, that names files elsewhere."""
        below = self.choose.choice(["", "", "corpus/"])
        stem = self.choose.choice(["part-00000", "part-00099", "part-00000-0000", "zz"])
        names = [
            name.format(
                v=self.victims, n=self.choose.choice(["precious.txt", "part-00000.parquet"])
            )
            for name in self.choose.sample(LEADING_OUT, 2)
        ]
        names.append(self.choose.choice(["shards", "vectors"]) + "/part-00099.parquet")
        path = self._room(f"{below}receipts/{stem}.json")
        if path is not None:
            path.write_text(forge_receipt(stem, names), encoding="utf-8")
            self.planted.append(f"{path.name} naming {names}")

    def other_kind(self) -> None:
        """A folder for a file, or a file for a folder, that may not be written to."""
        is_file = self.choose.random() < 0.5
        name = self.choose.choice(self.folders if is_file else self.files)
        path = self._room(name)
        if path is not None:
            path.write_text("no folder") if is_file else path.mkdir()
            path.chmod(0o444 if is_file else 0o755)
            self.planted.append(f"{name} of another kind")

    def _link(self, name: str, target: str) -> bool:
        path = self._room(name)
        if path is None:
            return False
        path.symlink_to(path if target == "itself" else self.victims / target)
        self.planted.append(f"{name} -> {target}")
        return True

    def _room(self, name: str) -> Path | None:
        """The path with nothing at it; None if a link or a file is on the way there."""
        path = self.out / name
        for part in [path.parent, *path.parent.parents]:
            if part == self.out:
                break
            if part.is_symlink() or part.is_file():
                return None
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        return path
