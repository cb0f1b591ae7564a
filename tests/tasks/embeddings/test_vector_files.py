"""Files of static vectors, as they should be and as they are."""

import gzip
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from polyseme.errors import InputError
from polyseme.tasks.embeddings.vector_files import read_vectors

VECTORS = {"the": [0.5, -1.0, 2.0], "水": [1.0, 2.0, 3.0], "play": [0.25, 0.0, -0.125]}


def text_of(vectors: dict[str, list[float]], end: str = "\n") -> bytes:
    rows = (f"{word} {' '.join(map(str, numbers))}{end}" for word, numbers in vectors.items())
    return "".join(rows).encode()


def binary_of(vectors: dict[str, list[float]], end: bytes = b"") -> bytes:
    rows = (
        word.encode() + b" " + struct.pack(f"<{len(numbers)}f", *numbers) + end
        for word, numbers in vectors.items()
    )
    return b"".join(rows)


FORMATS: dict[str, Callable[[], bytes]] = {
    "word2vec text": lambda: b"3 3\n" + text_of(VECTORS, " \n"),
    "fastText": lambda: b"3 3\n" + text_of(VECTORS),
    "GloVe": lambda: text_of(VECTORS),
    "word2vec binary": lambda: b"3 3\n" + binary_of(VECTORS),
    "word2vec binary with line ends": lambda: b"3 3\n" + binary_of(VECTORS, b"\n"),
    "gzipped": lambda: gzip.compress(b"3 3\n" + binary_of(VECTORS)),
}


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("file_format", FORMATS)
def test_every_format_gives_the_same_vectors(file_format: str, tmp_path: Path) -> None:
    found = read_vectors(
        written(tmp_path, FORMATS[file_format]()), ["play", "the", "水", "missing"]
    )
    assert dict(zip(found.words, found.vectors.tolist(), strict=True)) == VECTORS
    assert found.vectors.dtype == np.float32
    assert found.stats.warnings() == []
    assert found.stats.rows == 3


@pytest.mark.parametrize("file_format", FORMATS)
def test_only_wanted_words_are_kept(file_format: str, tmp_path: Path) -> None:
    found = read_vectors(written(tmp_path, FORMATS[file_format]()), ["水"])
    assert found.words == ["水"]
    assert found.vectors.tolist() == [VECTORS["水"]]


def test_the_most_frequent_words_can_be_kept_too(tmp_path: Path) -> None:
    path = written(tmp_path, FORMATS["word2vec binary"]())
    assert read_vectors(path, ["play"], extra_words=1).words == ["the", "play"]


@pytest.mark.parametrize(
    ("content", "warning"),
    [
        (b"9 3\n" + text_of(VECTORS), "says 9 rows, there are 3"),
        (b"9 3\n" + binary_of(VECTORS), "says 9 rows, there are 3"),
        (b"2 3\n" + binary_of(VECTORS), "says 2 rows, there are 3"),
        (b"3 3\n" + binary_of(VECTORS)[:-1], "says 3 rows, there are 2"),
        (b"3 5\n" + text_of(VECTORS), "says 5 dimensions, rows have 3"),
        (b"too few 1 2\n"[4:] + text_of(VECTORS), "1 rows of another dimension"),
        (text_of(VECTORS) + b"the 1 2\n", "1 rows of another dimension"),
        (text_of(VECTORS) + text_of({"the": [9, 9, 9]}), "1 rows of a word that came before"),
        (b"th\xff\xfe 1 2 3\n" + text_of(VECTORS), ""),
        (text_of(VECTORS) + b"the\xff 1 2 3\n", ""),
    ],
)
def test_what_is_wrong_is_told_and_the_rest_is_read(
    content: bytes, warning: str, tmp_path: Path
) -> None:
    found = read_vectors(written(tmp_path, content), ["the"])
    assert found.vectors.tolist() == [VECTORS["the"]]
    assert warning in "; ".join(found.stats.warnings())


def test_broken_words_among_those_looked_at_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xff\xfe 1 2 3\n" + text_of(VECTORS))
    found = read_vectors(path, ["the"], extra_words=10)
    assert found.stats.not_utf8 == 1
    assert "1 rows whose word is not UTF-8" in found.stats.warnings()[0]


@pytest.mark.parametrize("numbers", [b"nan 1 2", b"1 inf 2", b"1 2 x", b"1 2 1e99"])
def test_a_vector_that_is_none_is_passed_over(numbers: bytes, tmp_path: Path) -> None:
    path = written(tmp_path, text_of(VECTORS) + b"bad " + numbers + b"\n")
    found = read_vectors(path, ["the", "bad"])
    assert found.words == ["the"]
    assert found.stats.not_numbers == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a file of vectors"),
        (b"just a text without vectors\n", "no vector for any of the 1 words"),
        (b"x" * (3 << 20), "a line of more than"),
        (text_of({"other": [1, 2, 3]}), "no vector for any of the 1 words"),
        (gzip.compress(FORMATS["GloVe"](), mtime=0)[:-9], "damaged"),
        (b"3 4\n" + binary_of({f"w{n}": [-1.5e-5, 7e8, 3.3] for n in range(300)}), "numbers"),
    ],
)
def test_what_is_no_file_of_vectors_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        read_vectors(written(tmp_path, content), ["the"])


@pytest.mark.parametrize("is_binary", [True, False])
def test_memory_does_not_grow_with_the_file(is_binary: bool, tmp_path: Path) -> None:
    make = binary_of if is_binary else text_of
    rows = make({f"w{n}": [float(n)] * 100 for n in range(20_000)})  # 8 MB and 14 MB
    path = written(tmp_path, b"20000 100\n" + rows)
    tracemalloc.start()
    found = read_vectors(path, ["w7", "w19999"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.vectors[:, 0].tolist() == [7, 19999]
    assert peak < 4 << 20
