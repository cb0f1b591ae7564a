"""Vectors of one folder were all made alike: never some with the kernel and some without.

The kernel changes last bits, which the first test shows; so files of both kinds must not lie
together. A run that goes on where things have changed makes all again, and says so.
"""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from encoders.kernel import Kernels
from executors.jobs import hashes
from listening import Heard
from pretraining.making import tiny_model, tiny_values

from embedding.bulk_cases import Case, make_case
from polyseme.commands.embed import run
from polyseme.config import build
from polyseme.embedding.bulk import EmbedPart, embed_part, embedding_job
from polyseme.embedding.corpus_parts import parts_of
from polyseme.embedding.settings import VectorsConfig
from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.build import SOURCES
from polyseme.encoders.kernels.instructions import instruction_sets
from polyseme.encoders.kernels.loader import Kernel
from polyseme.errors import ExecutorError
from polyseme.executors import ShardJob
from polyseme.executors.commit import read_receipt

Use = Callable[[Kernel | None], None]
ALL_BITS = {"dtype": "float32", "layers": "top"}


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A model of 64 cells, which is the least that the kernel's float32 way takes."""
    case = make_case(Path(tmp_path_factory.mktemp("environment")))
    encoder = tiny_values()["encoder"]
    wide = {**encoder, "contextualizer": {**encoder["contextualizer"], "hidden_size": 64}}
    torch.manual_seed(3)
    model = tiny_model(case.corpus, encoder=wide)
    model.save(case.model.with_name("wide"), card="A model for tests.")
    return replace(case, model=case.model.with_name("wide"))


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    return lambda kernel: monkeypatch.setattr(loader, "load", lambda: kernel)


def vectors_of(folder: Path) -> dict[str, str]:
    return {name: told for name, told in hashes(folder).items() if name.startswith("vectors/")}


def forget(folder: Path, name: str) -> None:
    """As a run that was killed before this part was done."""
    (folder / "manifest.json").unlink()
    (folder / "receipts" / f"{name}.json").unlink()
    (folder / "vectors" / f"{name}.parquet").unlink()


def test_the_kernel_changes_last_bits(
    case: Case, library: Kernel, use: Use, tmp_path: Path
) -> None:
    found = []
    for name, kernel in (("with", library), ("without", None)):
        use(kernel)
        case.embed(tmp_path / name, **ALL_BITS)
        found.append(vectors_of(tmp_path / name))
    assert found[0].keys() == found[1].keys()
    assert all(found[0][name] != found[1][name] for name in found[0])


def test_a_run_that_goes_on_without_the_kernel_makes_all_again_and_says_so(
    case: Case, library: Kernel, use: Use, tmp_path: Path
) -> None:
    use(None)
    case.embed(tmp_path / "quiet", **ALL_BITS)
    use(library)
    parts = [part.name for part in parts_of(case.corpus)]
    begun = case.embed(tmp_path / "v", **ALL_BITS).vectors
    keys = {name: _key(tmp_path / "v", name) for name in parts}
    forget(tmp_path / "v", parts[-1])
    use(None)
    heard = Heard()
    result = run(case.settings(tmp_path / "v", **ALL_BITS), heard)
    assert result.files_found == 0
    assert vectors_of(tmp_path / "v") == vectors_of(tmp_path / "quiet")
    assert hashes(tmp_path / "v") == hashes(tmp_path / "quiet")
    assert all(_key(tmp_path / "v", name) != keys[name] for name in parts)
    was, now = begun.manifest["environment"]["kernel"], "none"
    assert library.digest[:16] in was
    assert any(f"kernel {was}, now {now}." in message for message in heard.said)
    assert result.vectors.manifest["environment"]["kernel"] == now


def test_a_run_that_goes_on_as_it_began_keeps_what_is_there(
    case: Case, library: Kernel, use: Use, tmp_path: Path
) -> None:
    """The control: nothing has changed, so nothing is made again and nothing is said."""
    use(library)
    parts = [part.name for part in parts_of(case.corpus)]
    case.embed(tmp_path / "v", **ALL_BITS)
    before = hashes(tmp_path / "v")
    forget(tmp_path / "v", parts[-1])
    heard = Heard()
    result = run(case.settings(tmp_path / "v", **ALL_BITS), heard)
    assert result.files_found == len(parts) - 1
    assert hashes(tmp_path / "v") == before
    assert not any("recomputed" in message for message in heard.said)


def _key(folder: Path, name: str) -> str:
    receipt = read_receipt(folder, name)
    assert receipt is not None
    return receipt.key


@pytest.mark.parametrize("broken", ["[]", "{", ""])
def test_a_damaged_record_of_the_run_before_stops_nothing(
    broken: str, case: Case, tmp_path: Path
) -> None:
    case.embed(tmp_path / "v", layers="top")
    before = hashes(tmp_path / "v")
    (tmp_path / "v" / "environment.json").write_text(broken)
    case.embed(tmp_path / "v", layers="top")
    assert hashes(tmp_path / "v") == before


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("torch", "torch.__version__", "0.0"),
        ("processor", "torch.backends.cpu.get_cpu_capability", lambda: "OTHER"),
        ("kernel", "polyseme.encoders.kernels.loader.load", lambda: None),
    ],
)
def test_a_worker_where_last_bits_would_differ_refuses_and_names_both_values(
    name: str,
    place: str,
    value: Any,
    *,
    case: Case,
    library: Kernel,
    use: Use,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    use(library)
    work = embed_part(case.model, build(VectorsConfig, {"layers": "top"}), None, "cpu")
    sent = pickle.dumps(work)
    part = parts_of(case.corpus)[0]
    pickle.loads(sent)(part, tmp_path / "here", lambda _: None)  # the control
    monkeypatch.setattr(place, value)
    there = embed_part(case.model, work.config, None, "cpu").environment
    with pytest.raises(ExecutorError) as caught:
        pickle.loads(sent)(part, tmp_path / "there", lambda _: None)
    assert f"{name} {work.environment[name]}, now {there[name]}" in str(caught.value)
    assert not (tmp_path / "there").exists()


def test_workers_do_not_mix_instruction_sets(
    case: Case, kernels: Kernels, use: Use, tmp_path: Path
) -> None:
    """Of one kernel built twice, for this processor and for a lesser one."""
    best, *_, least = instruction_sets()
    use(kernels(best))
    work = embed_part(case.model, build(VectorsConfig, {"layers": "top"}), None, "cpu")
    use(kernels(least))
    with pytest.raises(ExecutorError, match=rf"kernel {best} steps, \w+, now {least} gates, \w+"):
        work(parts_of(case.corpus)[0], tmp_path / "there", lambda _: None)
    assert not (tmp_path / "there").exists()


def test_a_worker_process_without_the_kernel_does_not_join_in(
    case: Case, library: Kernel, use: Use, tmp_path: Path
) -> None:
    """Workers are new processes: they load what lies on the disk, not what this test has loaded."""
    use(library)
    work = embed_part(case.model, build(VectorsConfig, {"layers": "top"}), None, "cpu")
    (tmp_path / "sent").write_bytes(pickle.dumps((work, parts_of(case.corpus)[0])))
    program = (
        "import pickle, sys\n"
        "from pathlib import Path\n"
        "from polyseme.encoders.kernels import build\n"
        "build.SOURCES = tuple(Path(sys.argv[1], each.name) for each in build.SOURCES)\n"
        "work, part = pickle.loads(Path(sys.argv[2]).read_bytes())\n"
        "work(part, Path(sys.argv[3]), lambda _: None)\n"
    )
    elsewhere = tmp_path / "sources"
    elsewhere.mkdir()
    for source in SOURCES:
        (elsewhere / source.name).write_bytes(source.read_bytes())
    told = [str(elsewhere), str(tmp_path / "sent"), str(tmp_path / "out")]
    ended = subprocess.run(
        [sys.executable, "-c", program, *told],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ended.returncode != 0
    assert f"kernel {work.environment['kernel']}, now none" in ended.stderr
    assert not (tmp_path / "out").exists()


def test_the_manifest_tells_everything_that_decides_last_bits(case: Case, tmp_path: Path) -> None:
    vectors = case.embed(tmp_path / "v", layers="top", threads=2).vectors
    told = vectors.manifest["environment"]
    assert told.keys() == {
        *("polyseme", "torch", "device", "processor", "precision", "threads", "kernel")
    }
    assert (told["precision"], told["threads"]) == ("float32", 2)
    assert json.loads((tmp_path / "v" / "environment.json").read_text()) == told


@pytest.mark.parametrize(("has_tiles", "precision"), [(True, "bfloat16"), (False, "float32")])
def test_auto_is_what_the_processor_multiplies_and_the_manifest_tells_it(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_tiles: bool, precision: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: has_tiles, raising=False)
    vectors = case.embed(tmp_path / "v", layers="top", precision="auto").vectors
    assert vectors.manifest["environment"]["precision"] == precision
    assert f'precision = "{precision}"' in (tmp_path / "v" / "config.toml").read_text()


def test_each_worker_embeds_on_a_card_of_its_own(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    def devices(job: ShardJob) -> list[str]:
        return [work.device for work in job.per_worker if isinstance(work, EmbedPart)]

    work = embed_part(case.model, build(VectorsConfig, {"layers": "top"}), None, "cpu")
    assert devices(embedding_job(work)) == ["cpu"]
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    job = embedding_job(replace(work, device="cuda"))
    assert devices(job) == ["cuda:0", "cuda:1"]
    assert job.num_gpus == 1
    assert devices(embedding_job(replace(work, device="cuda:1"))) == ["cuda:1"]
