"""A server beside its own OpenAPI document: what it allows is answered, all else is refused."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import polyseme
from serving.making import serving
from tasks.cases import make_task

KEY = "a-key-of-some-length"
FULL = pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(7_200)])


@pytest.mark.parametrize("requests", [100, FULL])
def test_the_server_does_what_its_document_says(tmp_path: Path, requests: int) -> None:
    """All of Schemathesis' checks: no status 5xx, no answer that is not described, no request
    without a key or out of the schema that is answered. All routes, with a task and a corpus."""
    made = make_task(tmp_path)
    corpus, names = tmp_path / "made" / "corpus", tmp_path / "names"
    polyseme("train", made.task, "--out", names, "--set", "training.epochs=1")
    keys = tmp_path / "keys.txt"
    keys.write_text(f"{KEY}\n", encoding="utf-8")
    served = ["--task", str(names), "--in", str(corpus), "--api-key-file", str(keys)]
    with serving(str(made.model), *served, "--max-wait", "30") as (address, _):
        found = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json"),
                # For each of five routes that are posted to; of some it finds fewer.
                *("--checks", "all", "--max-examples", str(requests // 4), "--seed", "1"),
                *("--phases", "examples,coverage,fuzzing", "-H", f"Authorization: Bearer {KEY}"),
            ],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
    assert found.returncode == 0, found.stdout
    asked = re.search(r"([\d,]+) generated", found.stdout)
    assert asked
    assert int(asked[1].replace(",", "")) >= requests, found.stdout
    assert not re.search(r'0x[0-9a-f]{6}|File "|Traceback', found.stdout)
