"""How much memory the demo's server holds when a reader has opened one word after another."""

import sys
from pathlib import Path

import pytest
from required import need

from benchmarks.demo import measure_many

MEGABYTES = 600


@pytest.mark.slow
@pytest.mark.timeout(3_600)  # some ten minutes where nothing else runs
def test_after_200_words_the_demo_holds_no_more_than_600_megabytes(tmp_path: Path) -> None:
    need(sys.platform == "linux", "Linux with glibc", only_on="linux")
    rows = list(measure_many("en", 200, str(tmp_path)))
    assert len({row["word"] for row in rows}) == 200
    curve = [row["resident"] for row in rows]
    print(f"at most {max(curve)} MB, at the end {curve[-1]}")
    assert max(curve) <= MEGABYTES, curve
