"""What a frozen model adds to static vectors, task by task.

    python -m benchmarks.gains DATA --english models/en-mini --chinese models/zh-mini \
        --static-english en-static.bin --static-chinese zh-static.bin \
        --out gains --seeds 1,2,3

DATA holds the archives of labelled data, as NAME.tar.xz or unpacked; static vectors are files (see
benchmarks.static_vectors) or models. Each task is trained with static vectors alone and with the
model's layers beside them, all else being the same; settings are chosen on development data, and
`--on test` is for the end. What is finished is not trained again, so the command can be stopped
and run again; `--only conll2003,sst` chooses tasks. With `--folds`, a task that has one file only
is cross-validated, one seed for each of five folds, instead of measured on one fold with all seeds.
"""

import argparse
import json
import sys
import tarfile
import zipfile
from pathlib import Path

from benchmarks.tasks import NUM_FOLDS, TASKS, LabelledSet, join_documents, settings_of
from polyseme.config import build, overlay
from polyseme.processes import keep_freed_memory
from polyseme.progress import NullProgress
from polyseme.storage.files import write_text
from polyseme.tasks.comparison import (
    Run,
    VariantResult,
    compare_runs,
    compare_variants,
    measured_on,
)
from polyseme.tasks.embeddings import Variant
from polyseme.tasks.task import TaskConfig
from polyseme.tasks.training import Splits

VARIANTS: tuple[Variant, ...] = ("static", "frozen")


def main() -> None:
    arguments = _parser().parse_args()
    keep_freed_memory()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    chosen = arguments.only.split(",") if arguments.only else list(TASKS)
    for language in {TASKS[name].language for name in chosen}:
        if not (getattr(arguments, language) and getattr(arguments, f"static_{language}")):
            sys.exit(f"For {language} tasks, give --{language} and --static-{language}; or --only.")
    for name in chosen:
        task = TASKS[name]
        data = unpacked(arguments.data, task.archive, arguments.out / "data")
        if task.documents is not None:
            data = join_documents(task, data, arguments.out / "data" / f"{name}-joined")
        folds = range(NUM_FOLDS if arguments.folds and task.is_split else 1)
        configs = [_config(task, data, arguments, fold) for fold in folds]
        if len(configs) > 1:
            # Each fold is measured on by a task that has not seen it, and has a seed of its own.
            runs = [_fold(config, seed) for seed, config in enumerate(configs, start=1)]
            rows = compare_runs(runs, VARIANTS, arguments.out / name, progress=NullProgress())
        else:
            rows = compare_variants(
                configs[0],
                VARIANTS,
                arguments.out / name,
                seeds=seeds,
                on_test=arguments.on == "test",
                progress=NullProgress(),
            )
        _tell(name, configs[0], rows, arguments, folds=len(folds))


def unpacked(folder: Path, name: str, scratch: Path) -> Path:
    """The folder of a data set; its archive is unpacked once."""
    if (folder / name).is_dir():
        return folder / name
    target = scratch / name
    if not target.is_dir():
        with tarfile.open(folder / f"{name}.tar.xz") as archive:
            archive.extractall(target, filter="data")
        for packed in target.rglob("*.zip"):
            zipfile.ZipFile(packed).extractall(packed.parent)
    return target


def _config(task: LabelledSet, data: Path, arguments: argparse.Namespace, fold: int) -> TaskConfig:
    values = settings_of(task, data, vars(arguments), cache=arguments.out / "cache", fold=fold)
    for assignment in arguments.set:
        values = overlay(values, assignment)
    return build(TaskConfig, values)


def _fold(config: TaskConfig, seed: int) -> Run:
    splits = Splits.read(config)
    return Run(config, splits, measured_on(config, splits, on_test=True), seed)


def _tell(
    name: str,
    config: TaskConfig,
    rows: list[VariantResult],
    arguments: argparse.Namespace,
    *,
    folds: int,
) -> None:
    static, frozen = rows
    against = frozen.against
    assert against is not None
    gone = frozen.error_reduction(static)
    minutes = sum(told["seconds"] for row in rows for told in row.metadata) / 60
    print(
        f"{name:12} {config.measured_by:9} {static.score!s:14} -> {frozen.score!s:14} "
        f"errors {-gone:+.1%}  p {against.p_value:.4f}  {minutes:.0f} min",
        flush=True,
    )
    told = {
        "task": name,
        "on": arguments.on,
        "measure": config.measured_by,
        "folds": folds,
        "examples": frozen.metadata[0]["examples"],
        "static": static.values,
        "frozen": frozen.values,
        "error_reduction": gone,
        "p_value": against.p_value,
        "mixes": [metadata["mixes"] for metadata in frozen.metadata],
    }
    path = arguments.out / f"{name}-{arguments.on}.json"
    write_text(path, json.dumps(told, indent=1))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path)
    for name in ("english", "chinese", "static-english", "static-chinese"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--only", default="")
    parser.add_argument("--folds", action="store_true")
    parser.add_argument("--on", choices=["dev", "test"], default="dev")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    return parser


if __name__ == "__main__":
    main()
