"""From a model and a corpus to vectors on disk, through the command line."""

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from command_line import Done, polyseme
from embedding.bulk_cases import Case, make_case


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return make_case(Path(tmp_path_factory.mktemp("journey")))


@pytest.fixture(scope="module")
def vectors(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """A corpus embedded in this process; the last word of the command is the folder."""
    out = tmp_path_factory.mktemp("vectors") / "v"
    words = ("--layers", "top", "--workers", "1", "--out", out)
    return polyseme("embed", "--model", case.model, case.corpus.folder, *words)


def test_vectors_of_a_corpus_are_told_and_can_be_read_by_others(case: Case, vectors: Done) -> None:
    out = vectors.args[-1]
    words = case.corpus.read_stats["words"]
    assert f"{words:,}" in vectors.stdout
    assert "vectors info" in vectors.stdout
    shown = polyseme("vectors", "info", out, "--verify")
    assert "files are intact" in " ".join(shown.stdout.split())
    query = f"SELECT count(*), min(len(vector)), max(len(vector)) FROM '{out}/vectors/*.parquet'"
    with duckdb.connect() as database:
        assert database.execute(query).fetchall() == [(words, 32, 32)]


def test_damage_is_found(vectors: Done, tmp_path: Path) -> None:
    out = Path(shutil.copytree(vectors.args[-1], tmp_path / "v"))
    victim = next((out / "vectors").iterdir())
    victim.write_bytes(victim.read_bytes()[:-1])
    shown = polyseme("vectors", "info", out, "--verify", code=65)
    assert victim.name in " ".join(shown.stderr.split())


def test_a_word_that_is_no_choice_of_layers_is_refused(case: Case, tmp_path: Path) -> None:
    command = (
        "embed",
        "--model",
        case.model,
        case.corpus.folder,
        "--layers",
        "best",
        "--out",
        tmp_path / "v",
    )
    shown = polyseme(*command, code=2)
    assert "'best' is not a choice of layers" in " ".join(shown.stderr.split())


def test_the_how_to_page_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case(tmp_path / "made", shard_bytes=1 << 20)  # one shard: done in this process
    page = Path(__file__).parents[2] / "docs/how-to/embed-a-corpus.md"
    text = page.read_text(encoding="utf-8")
    shutil.copytree(case.model, tmp_path / "models/en")
    shutil.copytree(case.corpus.folder, tmp_path / "corpus/en")
    shutil.copy(case.text, tmp_path / "letters.txt")
    monkeypatch.chdir(tmp_path)
    commands = [line for block in fences(text, "sh") for line in block.splitlines()]
    assert [line.split()[1] for line in commands] == ["embed", "vectors", "embed"]
    for line in commands:
        polyseme(*shlex.split(line)[1:])
    [code] = fences(text, "python")
    names: dict[str, Any] = {}
    exec(compile(code, page.name, "exec"), names)
    assert names["uses"].schema.names == [
        "sentence_id",
        "document",
        "position",
        "word_index",
        "word",
        "vector",
    ]


def fences(text: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
