"""`pretrain` and `embed` as they come, beside a program that never waits.

    python -m benchmarks.beside_busy pretrain CORPUS
    python -m benchmarks.beside_busy embed    CORPUS --model MODEL

By default they should be at least 0.8 times as fast as the better of one and two threads (for
`embed`: workers), whatever else runs. Whole commands in turns, words per second by the clock.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.pretrain_threads import company
from benchmarks.side_by_side import print_facts, print_table, take_turns

_WAYS = {
    "pretrain": {
        "default": {},
        "1 thread": {"OMP_NUM_THREADS": "1"},
        "2 threads": {"OMP_NUM_THREADS": "2"},
        "2 threads that spin": {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "ACTIVE"},
    },
    "embed": {"default": {}, "1 worker": {"--workers": "1"}, "2 workers": {"--workers": "2"}},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", choices=sorted(_WAYS))
    parser.add_argument("corpus")
    parser.add_argument("--model", default="models/en-mini")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    print_facts()
    ways = {name: partial(_speed, args, way) for name, way in _WAYS[args.command].items()}
    with company(is_there=True):
        found = take_turns(ways, args.repeats)
    medians = {name: statistics.median(speeds) for name, speeds in found.items()}
    rows = [
        (name, f"{medians[name]:,.0f}", " ".join(f"{speed:,.0f}" for speed in found[name]))
        for name in found
    ]
    print_table((f"{args.command} in company", "words/s", "each turn"), rows)
    default, one, two = list(medians.values())[:3]
    print(f"\ndefault / better of one and two: {default / max(one, two):.2f}")


def _speed(args: argparse.Namespace, way: dict[str, str]) -> float:
    variables = {name: value for name, value in way.items() if not name.startswith("--")}
    options = [part for name in way.keys() - variables for part in (name, way[name])]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder, "out"))
        asked = {
            "pretrain": [args.corpus, "--steps", str(args.steps), "--held-out-words", "1"],
            "embed": [args.model, args.corpus, "--layers", "top"],
        }[args.command]
        command = [sys.executable, "-m", "polyseme", args.command, *asked, *options]
        done = subprocess.run(
            [*command, "--out", out, "--json"],
            env={**plain, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(done.stderr)
    told = json.loads(done.stdout)
    words = told["words"] if args.command == "pretrain" else told["counts"]["words_read"]
    return float(words) / float(told["seconds"])


if __name__ == "__main__":
    main()
