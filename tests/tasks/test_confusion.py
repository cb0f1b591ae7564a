"""What was taken for what."""

from pathlib import Path

import pytest

from polyseme.tasks import confusion as confusion_file
from polyseme.tasks.confusion import confusion, draw_confusion


def test_confusion_counts_pairs_gold_first() -> None:
    assert confusion("aab", "abb") == {("a", "a"): 1, ("a", "b"): 1, ("b", "b"): 1}


def test_rare_labels_are_drawn_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = {}

    def draw(path: Path, counts: dict[tuple[str, str], int]) -> list[str]:
        drawn[path.name] = counts
        return []

    monkeypatch.setattr(confusion_file, "_draw", draw)
    often = [f"label{number}" for number in range(24)] * 2
    draw_confusion(tmp_path, [*often, "rare", "rarer"], [*often, "rare", "label3"])
    counts = drawn["confusion.png"]
    assert counts["others", "others"] == 1
    assert counts["others", "label3"] == 1
    assert counts["label3", "label3"] == 2
