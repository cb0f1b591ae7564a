"""How fast `pretrain` is, where its time goes, and what each choice costs.

    python -m benchmarks.pretrain whole     CORPUS   the loop against the bare step
    python -m benchmarks.pretrain step               LSTM layers against nn.LSTM
    python -m benchmarks.pretrain precision CORPUS   bfloat16 against float32
    python -m benchmarks.pretrain softmax            sampled, full and adaptive, by vocabulary
    python -m benchmarks.pretrain processes CORPUS   two processes against two threads
    python -m benchmarks.pretrain threads   CORPUS   all threads, one, adaptive; in company
    python -m benchmarks.pretrain versions  CORPUS --before FOLDER   another checkout, in turns

Each compares things side by side in one run, in turns, and prints medians: the machine's mood
is in both. From the project's root, on a processor; threads are torch's unless told.
"""

import argparse
from collections.abc import Callable

import torch

from benchmarks.pretrain_processes import processes
from benchmarks.pretrain_softmax import softmax
from benchmarks.pretrain_step import step
from benchmarks.pretrain_threads import threads
from benchmarks.pretrain_versions import versions
from benchmarks.pretrain_whole import precision, whole

_PRECISIONS = ["float32", "bfloat16"]


def main() -> None:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(required=True)
    on_corpus: dict[str, Callable[[argparse.Namespace], None]] = {
        "whole": whole,
        "precision": precision,
        "processes": processes,
        "threads": threads,
        "versions": versions,
    }
    for name, do in on_corpus.items():
        verb = _verb(verbs, name, do)
        verb.add_argument("corpus", help="folder that `polyseme prepare` made")
        verb.add_argument("--preset", default="elmo-mini")
        verb.add_argument("--steps", type=int, default=60)
        verb.add_argument(
            "--words", type=int, help="most words in a batch; the point's unless told"
        )
        if name != "precision":
            verb.add_argument("--precision", choices=["auto", *_PRECISIONS], default="auto")
        if name == "versions":
            verb.add_argument("--before", required=True, help="the other checkout's folder")
            verb.set_defaults(steps=2, repeats=30)
        if name != "processes":
            verb.add_argument("--threads", type=int)
    _add_step(_verb(verbs, "step", step, repeats=7))
    _add_softmax(_verb(verbs, "softmax", softmax))
    args = parser.parse_args()
    if isinstance(getattr(args, "threads", None), int):
        torch.set_num_threads(args.threads)
    args.do(args)


def _verb(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    do: Callable[[argparse.Namespace], None],
    *,
    repeats: int = 3,
) -> argparse.ArgumentParser:
    assert do.__doc__ is not None
    verb = verbs.add_parser(name, help=do.__doc__)
    verb.set_defaults(do=do)
    verb.add_argument("--repeats", type=int, default=repeats)
    return verb


def _add_step(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--hidden-size", type=int, help="with --proj-size: this size only")
    verb.add_argument("--proj-size", type=int)
    verb.add_argument("--layers", type=int, default=2)
    verb.add_argument("--rows", type=int, default=128, help="sentences")
    verb.add_argument("--length", type=int, default=27, help="words in each")
    verb.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    verb.add_argument("--precision", choices=_PRECISIONS, nargs="+", default=_PRECISIONS)


def _add_softmax(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--vocabulary", type=int, nargs="+", default=[50_000, 200_000, 800_000])
    verb.add_argument("--width", type=int, default=192)
    verb.add_argument("--words", type=int, default=2_000)
    verb.add_argument("--precision", choices=_PRECISIONS, default="float32")
    verb.add_argument("--threads", type=int)


if __name__ == "__main__":
    main()
