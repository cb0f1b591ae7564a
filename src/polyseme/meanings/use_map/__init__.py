"""A map of uses: vectors in, a place for each out; and, as scripts and styles, what draws it.

    in   vectors (N, D) of length one, such as `Grouping.vectors`
    out  places (N, 2) between -1 and 1, about (0, 0): near on the map is mostly alike

By t-SNE (van der Maaten and Hinton, 2008), which keeps neighbours together. Distances between
groups, their sizes on the map and empty space between them mean nothing. The same vectors and seed
give the same map. Beyond `MAX_FITTED` uses a sample is laid out, and each of the others is put
between the ones it is most alike. `widget.py` shows it in a notebook.
"""

import re
import signal
import subprocess
import sys
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from polyseme.devices import one_thread
from polyseme.display import printable
from polyseme.errors import extra_needed_for
from polyseme.meanings.concordance.lines import line_of, shortened, shown_value
from polyseme.meanings.concordance.uses import Use
from polyseme.processes import python_process

Floats = npt.NDArray[np.float32]

MAX_FITTED = 2_000
"""Uses that are laid out together; time grows with their number, about 2 ms each."""
_PCA_DIM = 50  # fewer dimensions first: as good a map, in a fraction of the time
_PERPLEXITY = 30.0  # about how many neighbours count for each use
# Half the usual steps and a coarser sum over what is far: a third of the time. 41 of 100 of the ten
# nearest uses are the nearest on the map, too, as many as by the usual values (2,000 uses of 人).
_STEPS, _ANGLE = 500, 0.8
_NEAREST = 5
_ROWS = 4_096  # uses that are placed at once


def lay_out(vectors: npt.NDArray[Any], seed: int = 1) -> Floats:
    """A place for each use, (N, 2)."""
    rows = np.asarray(vectors, np.float32)
    chosen = np.sort(np.random.default_rng(seed).permutation(len(rows))[:MAX_FITTED])
    # Threads of OpenMP wait for each other busily, and on a machine with other work for long.
    with one_thread():
        fitted = _fit(rows[chosen], seed)
    if len(chosen) == len(rows):
        return fitted
    places = _between_nearest(rows, rows[chosen], fitted)
    places[chosen] = fitted
    return places


def lay_out_aside(vectors: npt.NDArray[Any], seed: int = 1) -> Floats:
    """The same in a process that ends: scikit-learn and what it imports take 100 MB for good."""
    rows = np.ascontiguousarray(vectors, np.float32)
    command = python_process(__name__, "answer", *map(str, (*rows.shape, seed)))
    try:
        told = subprocess.run(command, input=rows.tobytes(), capture_output=True, check=True).stdout  # noqa: S603 - this same interpreter, and numbers
        return np.frombuffer(told, np.float32).reshape(len(rows), 2)
    except (OSError, subprocess.SubprocessError, ValueError):
        return lay_out(rows, seed)  # there is no room for a process; or this says what is wrong


def answer(number: str, dim: str, seed: str) -> None:
    """What that process does: vectors on standard input, places on standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who asked
    rows = np.frombuffer(sys.stdin.buffer.read(), np.float32).reshape(int(number), int(dim))
    sys.stdout.buffer.write(lay_out(rows, int(seed)).tobytes())


def _fit(rows: Floats, seed: int) -> Floats:
    if len(rows) < 3:  # nothing to be laid out: on a line
        return np.array([[-0.5, 0], [0.5, 0]], np.float32)[: len(rows)]
    with extra_needed_for("A map of uses"):
        from sklearn.decomposition import PCA
        from sklearn.manifold import TSNE

    if not (rows != rows[0]).any():
        return np.zeros((len(rows), 2), np.float32)
    dim = min(_PCA_DIM, *rows.shape)
    reduced = PCA(dim, svd_solver="randomized", random_state=seed).fit_transform(rows)
    perplexity = min(_PERPLEXITY, (len(rows) - 1) / 3)
    # Its own start by principal components is the same for every seed, and keeps what is far apart
    # apart; it needs two of them.
    start = "pca" if dim > 1 else "random"
    method = TSNE(
        perplexity=perplexity, init=start, random_state=seed, max_iter=_STEPS, angle=_ANGLE
    )
    places = method.fit_transform(reduced)
    # About the middle, the farthest coordinate being 1; both axes by the same factor.
    middle = (places.max(axis=0) + places.min(axis=0)) / 2
    centred = places - middle
    found: Floats = (centred / max(float(np.abs(centred).max()), 1e-12)).astype(np.float32)
    return found


def _between_nearest(rows: Floats, fitted_rows: Floats, fitted: Floats) -> Floats:
    """The mean of the places of the most similar uses among those that were laid out."""
    places = np.empty((len(rows), 2), np.float32)
    for begin in range(0, len(rows), _ROWS):
        part = slice(begin, begin + _ROWS)
        similar = rows[part] @ fitted_rows.T
        nearest = np.argpartition(-similar, _NEAREST - 1, axis=1)[:, :_NEAREST]
        places[part] = fitted[nearest].mean(axis=1)
    return places


NUM_COLOURS = 10
"""More groups begin with the first again."""
SCALE = 10_000
"""Places are sent as whole numbers between 0 and this."""
_AROUND = 80  # cells on either side of a word


@cache
def palette() -> tuple[list[str], list[str]]:
    """The colours of palette.css, on light and on dark paper; the first is for no group."""
    colours = re.findall(r"--g\d+: (#\w+)", own_file("palette.css"))
    return colours[: NUM_COLOURS + 1], colours[NUM_COLOURS + 1 :]


def own_file(name: str) -> str:
    """A style sheet or a script of this folder."""
    return files(__package__).joinpath(name).read_text("utf-8")


def colour_of(group_id: str) -> int:
    """From 1. A group's id stays the same whatever is done to it, and so does its colour."""
    return 1 + (int(group_id) - 1) % NUM_COLOURS if group_id.isdecimal() else 1


def scaled(places: npt.NDArray[Any]) -> tuple[list[int], list[int]]:
    """Places between -1 and 1 as whole numbers, across and upwards."""
    found = ((places + 1) / 2 * SCALE).round().astype(int)
    return found[:, 0].tolist(), found[:, 1].tolist()


def hover_line(use: Use) -> dict[str, str]:
    """What is read by whoever points at a use: its line, and what is known of it."""
    left, form, right = shortened(line_of(use), _AROUND)
    known = [printable(shown_value(name, value)) for name, value in use.metadata.items() if value]
    return {
        "left": left,
        "form": form,
        "right": right,
        "known": " · ".join(known),
    }
