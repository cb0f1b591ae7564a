"""Output that changes without its `FORMAT` would be mixed with what was made before."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from formats import FORMATS, recorded

from polyseme.text import prepare


def _differs(made: Any, before: Any) -> bool:
    """Numbers may differ as much as another machine may add them up differently."""
    if isinstance(made, list) and isinstance(before, list):
        return len(made) != len(before) or any(map(_differs, made, before))
    if isinstance(made, float) and isinstance(before, float):
        return not np.isclose(made, before, rtol=1e-2, atol=2e-3)
    return bool(made != before)


@pytest.mark.parametrize("name", FORMATS)
def test_output_is_as_recorded_or_its_format_was_raised(name: str, tmp_path: Path) -> None:
    number, make = FORMATS[name]
    assert recorded(name).exists(), f"Format {number} is new: run `python tests/formats.py`."
    before = json.loads(recorded(name).read_text(encoding="utf-8"))
    made = json.loads(json.dumps(make(tmp_path / "made")))
    changed = [pair for pair in zip(made, before, strict=False) if _differs(*pair)]
    assert (len(made), changed[:1]) == (len(before), []), (
        f"The output changed. If it should, raise FORMAT in {name}; `python tests/formats.py` "
        "records it."
    )


def test_output_that_changed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "is_held_out", lambda *_: True)
    with pytest.raises(AssertionError, match=r"raise FORMAT in text/prepare\.py"):
        test_output_is_as_recorded_or_its_format_was_raised("text/prepare.py", tmp_path)
