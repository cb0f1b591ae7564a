"""Every file is read through a bounded reader, and SECURITY.md tells the limits as they are."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import polyseme

PACKAGE = Path(polyseme.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
SECURITY = Path(__file__).parents[2] / "SECURITY.md"
METHODS = {"read_text", "read_bytes", "fromfile", "memmap", "iter_batches", "read_row_group"}
"""Called on a path, an array module or a Parquet file."""
CALLS = {
    "json.load", "json.loads", "tomllib.load", "tomllib.loads", "load_file", "safe_open",
    "pq.ParquetFile", "pq.read_table", "pq.read_metadata", "pq.read_schema", "ds.dataset",
    "gzip.open", "gzip.GzipFile", "os.open", "open", "zipfile.ZipFile", "h5py.File",
}  # fmt: skip
OPENS = {"rb", "r", "r+", "rb+"}
MAY = {
    "cli/app.py": {"os.open"},  # to write
    "cli/__init__.py": {"file.read_text"},  # our own source, for its docstrings
    "errors.py": {"distribution('polyseme').read_text", "json.loads"},  # what pip wrote of us
    "text/segmenters/spacy_rules.py": {"path.read_text"},  # spaCy's own sources
    "limits.py": {"os.open", "json.loads", "tomllib.loads"},  # the bounded readers
    "storage/parquet.py": {
        "pq.ParquetFile", "self._file.iter_batches", "self._file.read_row_group",
    },  # the bounded reader of Parquet
    "text/word_counts.py": {"pq.ParquetFile", "file.read_row_group"},  # what was just written
    "embedding/model_work.py": {"json.loads"},  # a value of a manifest whose size was looked at
    "embedding/folder.py": {"ds.dataset"},  # after `ParquetReader.check`, text as dictionaries
    "embedding/bulk.py": {"safe_open"},  # after its size was looked at
    "storage/weights.py": {"load_file", "path.open", "safe_open"},  # after its header was looked at
    "storage/records.py": {"np.memmap"},  # mapped, not read
    # Our own sources, and the system's.
    "encoders/kernels/build.py": {"source.read_bytes", "Path('/proc/cpuinfo').read_text"},
    # Weights after their size was looked at, and their hash; what was dumped in the same line.
    "training/checkpoint.py": {"load_file", "json.loads"},
    "training/processes.py": {"json.loads"},  # from another process of the same run
    # Our own style sheets and scripts.
    "meanings/report/__init__.py": {"files(__package__).joinpath('style.css').read_text"},
    "meanings/use_map/__init__.py": {"files(__package__).joinpath(name).read_text"},
    "executors/commit.py": {"json.loads"},  # what was dumped in the same line
    "storage/files.py": {"path.open", "os.open"},  # hashing in pieces; flushing
    "text/remote_sources.py": {"path.open"},  # to write
    "text/streams.py": {"source.path.open", "gzip.GzipFile"},  # in blocks, measured
    "text/plan.py": {"source.path.open"},  # in windows
    "text/formats/lines.py": {"piece.source.path.open"},  # four bytes
    "tasks/embeddings/vector_files.py": {"path.open", "gzip.GzipFile"},  # in rows, measured
    "storage/archives.py": {"zipfile.ZipFile"},  # its index is looked at first
    # In a process with limits, held against the size of the file; or to write.
    "legacy/weight_files.py": {"h5py.File", "load_file"},
    "commands/demo.py": {"json.loads"},  # what a process of ours tells
    "serving/dispatch.py": {"json.loads"},  # what an engine of ours tells
    "serving/engine.py": {"json.loads"},  # what the server tells it
    "processes.py": {"Path('/proc/self/statm').read_text"},
}  # fmt: skip
"""Which file may read what without `limits`, and why that is bounded."""


def reads(text: str) -> Iterator[str]:
    """The calls in a file that read one, whatever its size."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        name = called.rpartition(".")[2]
        is_method = "." in called and name in METHODS
        opened = [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)]
        is_opened = "." in called and name == "open" and bool(OPENS.intersection(map(str, opened)))
        if called in CALLS or is_method or is_opened:
            yield called


def test_every_file_is_read_through_a_bounded_reader() -> None:
    assert len(FILES) > 200
    found = {
        path.relative_to(PACKAGE).as_posix(): set(reads(path.read_text(encoding="utf-8")))
        for path in FILES
    }
    # What may read by itself still does: the list names nothing that is gone.
    assert {name: calls for name, calls in found.items() if calls} == MAY


@pytest.mark.parametrize(
    "text",
    [
        "path.read_text()",
        "(folder / name).read_bytes()",
        "json.loads(text)",
        "json.load(stream)",
        "tomllib.loads(text)",
        "pq.read_table(path)",
        "pq.ParquetFile(path)",
        "load_file(path)",
        "open(path)",
        "path.open('rb')",
        "np.memmap(path)",
    ],
)
def test_a_file_that_read_without_bound_would_be_noticed(text: str) -> None:
    assert list(reads(text))


@pytest.mark.parametrize("text", ["read_text(path, limit)", "path.open('wb')", "parse_json(text)"])
def test_bounded_readers_are_let_pass(text: str) -> None:
    assert not list(reads(text))


def rows(text: str) -> list[tuple[str, str]]:
    """What the table tells: a limit as it is written, and where it stands in the code."""
    table = text.partition("## Limits of what is read")[2].partition("\n## ")[0]
    return re.findall(r"^\|[^|]+\|[^|]+\| ([0-9,]+) \| `([\w.]+)` \|$", table, re.MULTILINE)


def value_of(place: str) -> float:
    module, _, name = place.rpartition(".")
    return float(getattr(importlib.import_module(module), name))


def test_the_table_tells_the_limits_as_they_are() -> None:
    text = SECURITY.read_text(encoding="utf-8")
    found = rows(text)
    table = text.partition("## Limits of what is read")[2].partition("\n## ")[0]
    assert len(found) == sum(line.startswith("| ") for line in table.splitlines()) - 1
    wrong = [
        (told, place) for told, place in found if float(told.replace(",", "")) != value_of(place)
    ]
    assert found
    assert wrong == []


def test_a_limit_that_was_changed_would_be_noticed() -> None:
    changed = "## Limits of what is read\n| a | b | 17 | `polyseme.limits.TOML_PARTS` |\n"
    [(told, place)] = rows(changed)
    assert float(told) != value_of(place)


def test_every_shared_limit_is_in_the_table() -> None:
    places = {place for _, place in rows(SECURITY.read_text(encoding="utf-8"))}
    for module in ("limits", "storage.parquet"):
        names = vars(importlib.import_module(f"polyseme.{module}"))
        for name, value in names.items():
            if name.isupper() and not name.startswith("_") and isinstance(value, int):
                is_here = f"polyseme.{module}.{name}" in places
                assert is_here or f"polyseme.limits.{name}" in places, name
