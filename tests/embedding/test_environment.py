"""What decides last bits is recorded, and with `--same-bits` files of two kinds are never mixed."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from encoders.kernel import Kernels
from executors.jobs import hashes
from pretraining.making import tiny_model, tiny_values
from rich.console import Console

from embedding.bulk_cases import Case, make_case
from polyseme.commands import vectors
from polyseme.config import build
from polyseme.embedding.bulk import EmbedPart
from polyseme.embedding.corpus_parts import parts_of
from polyseme.embedding.folder import VECTORS
from polyseme.embedding.model_work import ModelWork
from polyseme.embedding.settings import VectorsConfig
from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.build import instruction_sets
from polyseme.encoders.kernels.loader import Kernel
from polyseme.errors import ExecutorError
from polyseme.executors import ShardJob

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


def work_of(case: Case) -> tuple[ModelWork, ShardJob]:
    config = build(VectorsConfig, {"layers": "top"})
    work = ModelWork.start(case.model, config, "cpu", same_bits=True)
    return work, work.job(EmbedPart(None), EmbedPart(None).key(work), VECTORS)


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


def test_the_manifest_lists_every_environment(
    case: Case, library: Kernel, use: Use, tmp_path: Path
) -> None:
    parts = [part.name for part in parts_of(case.corpus)]
    use(library)
    case.embed(tmp_path / "v", **ALL_BITS, threads=2)
    before = vectors_of(tmp_path / "v")
    forget(tmp_path / "v", parts[-1])
    use(None)
    result = case.embed(tmp_path / "v", **ALL_BITS, threads=2)
    assert result.files_found == len(parts) - 1
    after = vectors_of(tmp_path / "v")
    assert [name for name in before if before[name] != after[name]] == [
        f"vectors/{parts[-1]}.parquet"
    ]
    first, second = result.vectors.manifest["environments"]
    assert first.keys() == {
        *("polyseme", "torch", "device", "processor", "precision", "threads", "kernel")
    }
    assert (first["precision"], first["threads"]) == ("float32", 2)
    assert library.digest[:16] in first["kernel"]
    assert second == {**first, "kernel": "none"}
    console = Console(width=1_000)
    with console.capture() as shown:
        console.print(vectors.show(vectors.VectorsResult(result.vectors, [])))
    assert f"kernel {first['kernel']} or none" in shown.get()


def test_with_same_bits_all_is_made_again(
    case: Case, library: Kernel, use: Use, tmp_path: Path
) -> None:
    same = {"executor": {"workers": 1, "same_bits": True}}
    parts = [part.name for part in parts_of(case.corpus)]
    for kernel, num_found in ((library, 0), (library, len(parts) - 1), (None, 0)):
        use(kernel)
        assert case.embed(tmp_path / "v", **ALL_BITS, **same).files_found == num_found
        kept = vectors_of(tmp_path / "v")
        forget(tmp_path / "v", parts[-1])
    case.embed(tmp_path / "quiet", **ALL_BITS, **same)
    assert vectors_of(tmp_path / "quiet") == kept


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("torch", "torch.__version__", "0.0"),
        ("processor", "torch.backends.cpu.get_cpu_capability", lambda: "OTHER"),
        ("kernel", "polyseme.encoders.kernels.loader.load", lambda: None),
    ],
)
def test_with_same_bits_a_worker_elsewhere_refuses_and_names_both_values(
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
    work, job = work_of(case)
    sent = pickle.dumps(job.work)
    part = parts_of(case.corpus)[0]
    pickle.loads(sent)(part, tmp_path / "here", lambda _: None)  # the control
    monkeypatch.setattr(place, value)
    with pytest.raises(ExecutorError) as caught:
        pickle.loads(sent)(part, tmp_path / "there", lambda _: None)
    assert work.required is not None
    told = f"{name} {work.required[name]}, now {work.environment[name]}"
    assert told in str(caught.value)
    assert not (tmp_path / "there").exists()


def test_workers_do_not_mix_instruction_sets(
    case: Case, kernels: Kernels, use: Use, tmp_path: Path
) -> None:
    """Of one kernel built twice, for this processor and for a lesser one."""
    best, *_, least = instruction_sets()
    use(kernels(best))
    _, job = work_of(case)
    use(kernels(least))
    with pytest.raises(ExecutorError, match=rf"kernel {best} steps, \w+, now {least} gates, \w+"):
        job.work(parts_of(case.corpus)[0], tmp_path / "there", lambda _: None)
    assert not (tmp_path / "there").exists()


def test_a_worker_with_another_model_refuses(case: Case, tmp_path: Path) -> None:
    work, _ = work_of(case)
    other = replace(work, model_hash="0" * 64)
    with pytest.raises(ExecutorError, match="another model"):
        EmbedPart(None)(other, parts_of(case.corpus)[0], tmp_path, lambda _: None)


@pytest.mark.parametrize(("has_tiles", "precision"), [(True, "bfloat16"), (False, "float32")])
def test_auto_is_what_the_processor_multiplies_and_the_manifest_tells_it(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_tiles: bool, precision: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: has_tiles, raising=False)
    vectors = case.embed(tmp_path / "v", layers="top", precision="auto").vectors
    assert vectors.manifest["environments"][0]["precision"] == precision
    assert f'precision = "{precision}"' in (tmp_path / "v" / "config.toml").read_text()


def test_each_worker_embeds_on_a_card_of_its_own(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    def job_on(device: str) -> ShardJob:
        return replace(work, device=device).job(EmbedPart(None), "key", VECTORS)

    def devices(job: ShardJob) -> list[str]:
        return [each.args[1].device for each in job.per_worker if isinstance(each, partial)]

    work, job = work_of(case)
    assert devices(job) == ["cpu"]
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert devices(job_on("cuda")) == ["cuda:0", "cuda:1"]
    assert job_on("cuda").num_gpus == 1
    assert devices(job_on("cuda:1")) == ["cuda:1"]
