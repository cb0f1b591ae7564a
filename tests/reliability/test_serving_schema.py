"""A server beside its own OpenAPI document: what it allows is answered, all else is refused."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from serving.making import save_tiny, serving

KEY = "a-key-of-some-length"


@pytest.mark.parametrize(
    "examples",
    [20, pytest.param(4_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])],
)
def test_the_server_does_what_its_document_says(tmp_path: Path, examples: int) -> None:
    """All of Schemathesis' checks: no status 5xx, no answer that is not described, no request
    without a key or out of the schema that is answered."""
    model = save_tiny(tmp_path / "tiny")
    keys = tmp_path / "keys.txt"
    keys.write_text(f"{KEY}\n", encoding="utf-8")
    with serving(str(model), "--api-key-file", str(keys), "--max-wait", "30") as (address, _):
        found = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json"),
                *("--checks", "all", "--max-examples", str(examples), "--seed", "1"),
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
    assert int(asked[1].replace(",", "")) >= examples
    assert not re.search(r'0x[0-9a-f]{6}|File "|Traceback', found.stdout)
