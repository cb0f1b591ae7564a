"""Whatever goes wrong, the command line says so in words and ends with the right code."""

import ctypes
import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from polyseme.cli import app as cli
from polyseme.cli.faults import explain
from polyseme.errors import (
    AccessError,
    ConfigError,
    InputError,
    InternalError,
    OutOfMemoryError,
    PolysemeError,
    StorageError,
)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        pa.ArrowMemoryError("malloc of size 1 failed"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("std::bad_alloc"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_too_little_memory_is_told_with_what_to_make_smaller(error: Exception) -> None:
    explained = explain(error)
    assert isinstance(explained, OutOfMemoryError)
    assert explained.exit_code == 71
    assert "--workers" in str(explained)
    assert "batches" in str(explained)


@pytest.mark.parametrize(
    ("number", "kind", "code"),
    [
        (errno.EACCES, AccessError, 77),
        (errno.EPERM, AccessError, 77),
        (errno.ENOENT, InputError, 66),
        (errno.EISDIR, InputError, 66),
        (errno.ENAMETOOLONG, InputError, 66),
        (errno.ENOSPC, StorageError, 74),
        (errno.EIO, StorageError, 74),
        (errno.EMFILE, StorageError, 74),
    ],
)
def test_what_the_system_refuses_is_told_with_the_file(
    number: int, kind: type[PolysemeError], code: int
) -> None:
    explained = explain(OSError(number, os.strerror(number), "/data/texts/a.txt"))
    assert type(explained) is kind
    assert explained.exit_code == code
    assert "/data/texts/a.txt" in str(explained)
    assert os.strerror(number) in str(explained)


def test_a_file_name_that_speaks_of_memory_is_not_taken_for_a_lack_of_it() -> None:
    error = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "out of memory.txt")
    assert isinstance(explain(error), InputError)
    assert isinstance(explain(ValueError("no column 'out of memory'")), InternalError)


def test_an_error_for_users_is_shown_as_it_is() -> None:
    error = ConfigError("one", "two")
    assert explain(error) is error


def run_main(fault: Exception, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of the command line when its work ends with this."""

    def fail(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr(cli, "_build_app", lambda _: fail)
    monkeypatch.setattr(sys, "argv", ["polyseme", "prepare"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_a_fault_of_ours_is_one_sentence_and_a_file_for_the_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert run_main(ZeroDivisionError("division by \udcff"), monkeypatch) == 70
    told = capsys.readouterr().err
    assert "Traceback" not in told
    assert "bug in Polyseme" in told
    [file] = tmp_path.iterdir()
    assert str(file) in told
    assert "Traceback" in file.read_text(encoding="utf-8")
    assert file.stat().st_mode & 0o077 == 0


def test_a_fault_of_ours_is_told_though_no_file_can_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    assert run_main(ZeroDivisionError("x"), monkeypatch) == 70
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fault", "code"),
    [(MemoryError(), 71), (PermissionError(errno.EACCES, "no", "f"), 77), (KeyError("x"), 70)],
)
def test_the_exit_code_says_what_kind_of_fault_it_was(
    fault: Exception, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_main(fault, monkeypatch) == code


_DROP_FROM_BOUNDING_SET, _DAC_OVERRIDE, _DAC_READ_SEARCH = 24, 1, 2  # prctl(2), capabilities(7)


def _obey_permissions() -> None:
    """Also root may then read and write only what the bits of a file allow."""
    for capability in (_DAC_OVERRIDE, _DAC_READ_SEARCH):
        if ctypes.CDLL(None).prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0):
            os._exit(99)


def as_any_user(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """`polyseme` run by someone whom permissions bind."""
    return subprocess.run(
        [sys.executable, "-m", "polyseme", *map(str, words)],
        preexec_fn=_obey_permissions if os.getuid() == 0 else None,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
        env={**os.environ, "COLUMNS": "300"},
    )


LANGUAGE = ("--language", "en", "--segmenter", "whitespace")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_text_that_may_not_be_read_is_told_without_a_traceback(
    tmp_path: Path, workers: int
) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("One day.\n" * 600, encoding="utf-8")
    (tmp_path / "b.txt").chmod(0)
    options = (*LANGUAGE, "--workers", str(workers), "--set", "corpus.shard_bytes=4096")
    result = as_any_user("prepare", tmp_path / "*.txt", *options, "--out", tmp_path / "out")
    assert "Traceback" not in result.stderr
    assert result.returncode == 77, result.stderr
    assert "b.txt cannot be read or written by this user: Permission denied" in result.stderr


def test_a_folder_that_may_not_be_written_to_is_told_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One day.\n", encoding="utf-8")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    out = closed / "out"
    result = as_any_user("prepare", tmp_path / "a.txt", *LANGUAGE, "--out", out)
    assert "Traceback" not in result.stderr
    assert result.returncode == 77, result.stderr
    assert f"{out} cannot be read or written" in result.stderr


def test_a_corpus_that_may_not_be_looked_into_is_told_without_a_traceback(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    result = as_any_user("inspect", closed / "corpus")
    assert "Traceback" not in result.stderr
    assert result.returncode == 77, result.stderr


def test_output_that_nobody_reads_is_no_reason_for_words() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "polyseme", "--help"]
    result = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert result.stderr == b""
    assert result.returncode in (1, 141)  # Typer's, or ours where Typer has done its part


def test_a_terminal_that_lacks_letters_is_no_reason_to_fail(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "polyseme", "inspect", str(tmp_path / "中文")],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "300"},
        check=False,
    )
    assert result.returncode == 65
    assert rb"\u4e2d\u6587" in result.stderr


def test_counts_that_do_not_add_up_are_refused_with_asserts_off_too() -> None:
    code = (
        "import sys; assert not __debug__ or sys.exit('-O is not on')\n"
        "from polyseme.errors import InternalError\n"
        "from polyseme.text.records import ReadStats\n"
        "made = ReadStats()\n"
        "made.counts['read'] = 5\n"
        "try: made.check()\n"
        "except InternalError as error: print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-O", "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    assert "read: 5 and 0" in result.stdout
