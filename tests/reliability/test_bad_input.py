"""Bad input crashes nothing and loses nothing in silence: every unit is kept, blank or named."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from slack import allowed
from text.making import looked_into, make_config, make_source

from polyseme.text import prepare
from polyseme.text.formats import read_piece
from polyseme.text.plan import plan_shards
from polyseme.text.prepare import prepare_shard
from polyseme.text.segmenters import load_segmenter
from reliability.bad_input import KINDS, Kind

MEMORY = 2 << 30


@dataclass(frozen=True)
class Outcome:
    """How the preparation of one kind went."""

    counts: dict[str, Any]
    quarantine: list[dict[str, Any]]
    seconds: float


def check(kind: Kind, outcome: Outcome) -> None:
    """Nothing may be missing: not from the sums, not from the units put in, not a reason."""
    counts = outcome.counts
    assert counts["read"] == counts["blank"] + counts["quarantined"] + counts["kept"]
    assert kind.units is None or counts["read"] == kind.units
    assert kind.kept is None or counts["kept"] == kind.kept
    assert sum(entry["units"] for entry in outcome.quarantine) == counts["quarantined"]
    assert all(entry["reason"] and entry["source"] == "input" for entry in outcome.quarantine)
    assert outcome.seconds <= allowed(kind.seconds)


def prepare_here(kind: Kind, folder: Path) -> Outcome:
    """One kind, in this process."""
    source = make_source(folder, kind.data, kind.format, kind.compression)
    config = make_config(**{"segmenter": None, **kind.settings})
    (batch,) = plan_shards(looked_into([source], config), config)
    load_segmenter(config.chosen_segmenter, config.language)  # start-up is not the input's fault
    began = time.process_time()
    counts, _ = prepare_shard(config, batch, folder)
    seconds = time.process_time() - began
    aside = folder / "quarantine" / f"{batch.name}.jsonl"
    lines = aside.read_text(encoding="utf-8").split("\n")[:-1] if aside.is_file() else []
    return Outcome(counts, [json.loads(line) for line in lines], seconds)


def main(folder: str) -> None:
    """Every kind in turn, under a limit of memory; an answer a line, so that a crash is dated."""
    import resource  # not there on Windows

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for i, (name, make) in enumerate(KINDS.items()):
        kind = make()
        promised = [kind.units, kind.kept, kind.seconds]
        outcome = prepare_here(kind, Path(folder) / str(i))
        told = [name, promised, outcome.counts, outcome.quarantine, outcome.seconds]
        print(json.dumps(told), flush=True)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Kind, Outcome]]:
    """What a process with little memory made of all kinds, and what was promised of each."""
    folder = tmp_path_factory.mktemp("bad")
    program = "import sys; from reliability.test_bad_input import main; main(sys.argv[1])"
    # Arrow's own allocator reserves a gigabyte of addresses, used or not, and that would count.
    arrow = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **arrow, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=250,
    )
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, f"crashed after {rows[-1][0] if rows else 'nothing'}: {ran.stderr}"
    return {
        name: (Kind(b"", units, kept, seconds=most), Outcome(counts, aside, seconds))
        for name, (units, kept, most), counts, aside, seconds in rows
    }


def test_there_are_at_least_forty_kinds() -> None:
    assert len(KINDS) >= 40


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited through RLIMIT_AS")
@pytest.mark.parametrize("name", KINDS)
def test_bad_input_is_accounted_for(name: str, outcomes: dict[str, tuple[Kind, Outcome]]) -> None:
    check(*outcomes[name])


@pytest.mark.parametrize("name", ["invalid UTF-8", "JSONL with an array", "blank documents"])
def test_a_reader_that_drops_one_record_is_found_out(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lossy(*arguments: Any) -> Any:
        items = list(honest(*arguments))
        return iter(items[:1] + items[2:])

    honest = read_piece
    monkeypatch.setattr(prepare, "read_piece", lossy)
    with pytest.raises(AssertionError):
        check(KINDS[name](), prepare_here(KINDS[name](), tmp_path))


def test_a_quarantine_that_forgets_an_entry_is_found_out(tmp_path: Path) -> None:
    kind = KINDS["100,000 bad lines"]()
    whole = prepare_here(kind, tmp_path)
    check(kind, whole)
    with pytest.raises(AssertionError):
        check(kind, Outcome(whole.counts, whole.quarantine[1:], whole.seconds))
