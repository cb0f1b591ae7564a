"""Arrays out of HDF5 files and torch pickles that anyone may have written.

    in   an HDF5 file, or a torch file with a state dict
    out  float32 arrays by name

Nothing in such a file is run: torch reads it with `weights_only`, and of HDF5 only plain arrays
that lie in the file itself are taken. Both parsers are large and written in C, so they work in a
child process with limits on memory and time, which hands back a safetensors file. A child that
crashes or hangs is a refused file.
"""

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import MissingExtraError, ModelError, extra_needed_for
from polyseme.processes import limit_memory, python_process
from polyseme.storage.files import scratch_folder, scratch_for

Floats = NDArray[np.float32]

SAFE_TORCH = (2, 10)
"""The first torch whose `weights_only` has no known hole."""
SECONDS = 120
"""How long the child may take. The largest published file has 0.4 GB and takes a few seconds."""
MEMORY = 512 << 20
"""Bytes the child may take beyond three times the file, where the system has such limits."""
_REFUSED = 3  # exit code; the reason is on standard output


class _RefusedError(Exception):
    """What a file holds is not what weights are made of; the text says what it was."""


def read_hdf5(path: Path, *, scratch: Path) -> dict[str, Floats]:
    """The arrays of an HDF5 file by their full names, such as "CNN/W_cnn_0"."""
    if importlib.util.find_spec("h5py") is None:
        raise MissingExtraError.of("h5py", extra="torch", purpose="Reading HDF5 weights")
    return _read("hdf5", path, scratch)


def read_state_dict(path: Path, *, scratch: Path) -> dict[str, Floats]:
    """The tensors of a torch file that holds a state dict, in either of torch's containers."""
    found = importlib.metadata.version("torch")
    if tuple(int(part) for part in found.split(".")[:2]) < SAFE_TORCH:
        raise ModelError(
            f"Reading {path} needs torch 2.10 or later, and this is {found}: a pickle could "
            "corrupt its memory (CVE-2026-24747). Update torch and run the command again."
        )
    return _read("torch", path, scratch)


def write_hdf5(path: Path, arrays: Mapping[str, Floats]) -> None:
    """Write arrays as contiguous float32, atomically; the same arrays give the same bytes."""
    with extra_needed_for("Writing HDF5"):
        import h5py  # type: ignore[import-untyped, unused-ignore]
    with scratch_for(path) as scratch, h5py.File(scratch, "w", libver="earliest") as file:
        for name, array in sorted(arrays.items()):
            data = np.ascontiguousarray(array, dtype="<f4")
            file.create_dataset(name, data=data, track_times=False)


def _read(kind: str, path: Path, scratch: Path) -> dict[str, Floats]:
    from safetensors.numpy import load_file

    if not path.is_file():
        raise ModelError(f"There is no file {path}.")
    try:
        with scratch_folder(scratch) as folder:
            parsed = folder / "arrays.safetensors"
            _run_child(kind, path.resolve(), parsed.resolve())
            arrays: dict[str, Floats] = load_file(parsed)
    except _RefusedError as error:
        raise ModelError(
            f"{path} was refused: {error}. Published weights are not like that; take the file "
            "again from where it was published, and compare its SHA-256 if one is given there."
        ) from error
    return arrays


def _run_child(kind: str, path: Path, parsed: Path) -> None:
    """Have the file parsed, and its arrays written to `parsed`."""
    command = python_process(__name__, "parse", kind, str(path), str(parsed))
    # An untrusted file may choose HDF5's filters, but not where their code is loaded from.
    environment = os.environ | {"HDF5_PLUGIN_PRELOAD": "::"}
    try:
        child = subprocess.run(  # noqa: S603 - this same interpreter
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # the words of such a file stay off our terminal
            env=environment,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _RefusedError(f"parsing it took more than {SECONDS} seconds") from error
    if child.returncode == _REFUSED:
        raise _RefusedError(child.stdout.decode("ascii", "replace"))
    if child.returncode:
        raise _RefusedError(f"parsing it crashed (code {child.returncode})")


# In the child


def parse(kind: str, path: str, parsed: str) -> None:
    """Read the file at `path` and write its arrays to `parsed`; the whole life of the child."""
    from safetensors.numpy import save_file

    # Imported before memory is limited: torch alone maps gigabytes that it never uses.
    find = {"hdf5": _import_hdf5, "torch": _import_torch}[kind]()
    limit_memory(MEMORY + 3 * Path(path).stat().st_size)
    try:
        save_file(dict(find(Path(path))), parsed)
    except MemoryError:
        _refuse("reading it takes more memory than weights need")
    except _RefusedError as error:
        _refuse(str(error))
    # Parsers of hostile files fail in every way there is.
    except Exception as error:  # noqa: BLE001
        _refuse(f"{type(error).__name__}: {error}")


def _refuse(reason: str) -> NoReturn:
    # On one line and without terminal codes: parts of it come from the file.
    text = " ".join(reason.split()).encode("ascii", "backslashreplace").decode()
    sys.stdout.write("".join(letter if letter.isprintable() else "?" for letter in text)[:500])
    sys.stdout.flush()
    raise SystemExit(_REFUSED)


def _import_hdf5() -> Any:
    import h5py  # noqa: F401

    return _hdf5_arrays


def _hdf5_arrays(path: Path) -> Iterator[tuple[str, Floats]]:
    import h5py

    datasets: dict[str, h5py.Dataset] = {}

    def collect(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            datasets[name] = item

    with h5py.File(path, "r") as file:
        file.visititems(collect)  # meets every object once, and follows no soft or external link
        for name, dataset in datasets.items():
            if dataset.external or dataset.is_virtual:
                raise _RefusedError(f"{name!r} keeps its numbers in another file")
            if dataset.dtype.kind != "f":
                raise _RefusedError(f"{name!r} holds other numbers than floats")
        _check_size(path, sum(dataset.nbytes for dataset in datasets.values()))
        for name, dataset in datasets.items():
            yield name, _as_float32(dataset[()])


def _import_torch() -> Any:
    import torch  # noqa: F401

    return _torch_arrays


def _torch_arrays(path: Path) -> Iterator[tuple[str, Floats]]:
    import torch

    # With weights_only, its pickle can name tensors and containers and nothing else.
    found = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(found, dict) or not found:
        raise _RefusedError("it holds something else than a dict of tensors")
    for name, tensor in found.items():
        if type(name) is not str or not isinstance(tensor, torch.Tensor):
            raise _RefusedError(f"{name!r} is not a tensor with a name")
        if tensor.layout is not torch.strided or not tensor.is_floating_point():
            raise _RefusedError(f"{name!r} holds other numbers than floats, or a sparse tensor")
    _check_size(path, sum(tensor.nbytes for tensor in found.values()))
    for name, tensor in found.items():
        yield name, _as_float32(tensor.detach().to(torch.float32).numpy())


def _check_size(path: Path, num_bytes: int) -> None:
    """Shapes are promises: an array may be compressed, never written, or one number repeated."""
    if num_bytes > path.stat().st_size:
        raise _RefusedError(f"its arrays have {num_bytes:,} bytes, more than the file")


def _as_float32(array: Any) -> Floats:
    with np.errstate(over="ignore"):  # what becomes infinite is refused with its name later
        return np.ascontiguousarray(array, dtype=np.float32).reshape(np.shape(array))
