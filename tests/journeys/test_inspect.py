"""Looking at a corpus through the command line."""

from pathlib import Path

import pytest
from command_line import polyseme


def shown(*words: str | Path, code: int = 0) -> str:
    result = polyseme(*words, code=code)
    return result.stdout + result.stderr


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspect")
    (folder / "a.txt").write_text("银行 在 河岸 。 bank 银行\n" * 3, encoding="utf-8")
    out = folder / "corpus"
    words = ("--language", "zh", "--segmenter", "whitespace", "--layout", "lines")
    shown("prepare", folder / "a.txt", *words, "--held-out", "0", "--out", out)
    return out


def test_columns_with_chinese_words_line_up(corpus: Path) -> None:
    from rich.cells import cell_len

    text = shown("inspect", corpus)
    table = text.partition("Most frequent words")[2].splitlines()[1:9]
    rows = [line.rstrip() for line in table if line.startswith(("│", "┃"))]
    assert any("银行" in row for row in rows)
    assert any("bank" in row for row in rows)
    assert len({cell_len(row) for row in rows}) == 1


def test_the_counts_are_those_of_the_text(corpus: Path) -> None:
    text = shown("inspect", corpus)
    assert "│ 银行 │     6 │ 33.33% │" in text  # 2 of 6 words in each line
    assert "│ words              │              18 │".replace(" ", "") in text.replace(" ", "")


def test_a_picture_is_drawn(corpus: Path, tmp_path: Path) -> None:
    shown("inspect", corpus, "--plot", tmp_path / "figures" / "c.png")
    assert (tmp_path / "figures" / "c.png").read_bytes().startswith(b"\x89PNG")


def test_a_flipped_byte_is_found(corpus: Path) -> None:
    assert "files are intact" in shown("inspect", corpus, "--verify")
    [shard] = (corpus / "shards").iterdir()
    good = shard.read_bytes()
    shard.write_bytes(good[:-20] + bytes([good[-20] ^ 1]) + good[-19:])
    try:
        assert "shards/part-00000.parquet" in shown("inspect", corpus, "--verify", code=65)
    finally:
        shard.write_bytes(good)
