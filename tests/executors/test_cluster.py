"""Runs on Ray, each in a process of its own: Ray keeps its first switches for life."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from corpora import prepared
from executors.addresses import addresses_of_this_machine
from executors.jobs import capitals_job, hashes, make_inputs
from pretraining.making import rule_text, tiny_model
from required import needs

from polyseme.executors import ExecutorConfig, cluster, run_job

pytestmark = pytest.mark.cluster
TESTS = Path(__file__).parents[1]
PRIVATE = "workers=2"
SCRIPT = """
import sys
from functools import partial
from pathlib import Path
from executors import jobs
from polyseme.executors import ExecutorConfig, ShardJob, cluster, run_job
cluster.MAX_RETRIES = 2
folder = Path(sys.argv[1])
inputs = jobs.make_inputs(folder / "in", 4)
try:
    for _ in range({times}):
        executor = ExecutorConfig(backend="ray", {executor})
        result = run_job({job}, inputs, folder / "ray", executor=executor)
    print(list(result.files))
except Exception as error:
    print(type(error).__name__, error)
"""
EMBED = """
import sys
from dataclasses import replace
from pathlib import Path
from polyseme.commands.embed import EmbedConfig, run
from polyseme.config import build
from polyseme.embedding.model_work import ModelWork
folder = Path(sys.argv[1])
values = {"inputs": [str(folder / "corpus")], "model": str(folder / "model")}
local = {"workers": 1, "device": "cpu"}
run(build(EmbedConfig, {**values, "out": folder / "local", "executor": local}))
own = ModelWork.job
ModelWork.job = lambda *given: replace(own(*given), num_gpus=1)
on_ray = {"backend": "ray", "ray_address": sys.argv[2], "device": "cpu"}
run(build(EmbedConfig, {**values, "out": folder / "ray", "executor": on_ray}))
"""
CLUSTER = """
import sys
from functools import partial
import ray
from polyseme.executors import cluster
ray.init = partial(ray.init, num_gpus=1)  # as far as Ray knows
with cluster._connected(None, workers=2) as ray:
    print(ray.get_runtime_context().gcs_address, flush=True)
    sys.stdin.read()
"""


RAYS_OWN = re.compile(
    r"\[[\d-]+ [\d:,]+ E \d+ \d+\] task_manager\.cc:\d+: "
    r"Failed to push error to driver for task [0-9a-f]+"
)


def run_on_ray(
    folder: Path,
    job: str,
    executor: str,
    times: int = 1,
    environment: dict[str, str] | None = None,
) -> str:
    """What a run prints. Warnings are errors there too, and all else it says would show."""
    script = SCRIPT.format(job=job, executor=executor, times=times)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, folder],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
        cwd=TESTS,
        env={**os.environ, **(environment or {})},
    )
    # Ray itself says this when a run ends before the news of a failed task has reached it.
    lines = done.stderr.splitlines()
    assert [line for line in lines if not RAYS_OWN.fullmatch(line)] == []
    return done.stdout


# --- private clusters --------------------------------------------------------------------


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with its own home in which a process has run twice, and what it said."""
    folder = tmp_path_factory.mktemp("private")
    (folder / "home").mkdir()
    home = {"HOME": str(folder / "home")}
    return folder, run_on_ray(folder, "jobs.capitals_job()", PRIVATE, 2, home)


def test_a_private_cluster_is_silent_and_can_be_started_twice(private: tuple[Path, str]) -> None:
    assert private[1] == f"{[f'upper/part-0000{number}.txt' for number in range(4)]}\n"


def test_a_private_cluster_makes_what_one_process_makes(private: tuple[Path, str]) -> None:
    folder = private[0]
    inputs = make_inputs(folder / "in", 4)
    run_job(capitals_job(), inputs, folder / "one", executor=ExecutorConfig(workers=1))
    assert hashes(folder / "ray") == hashes(folder / "one")


def test_several_small_shards_may_be_one_task(tmp_path: Path) -> None:
    numbers = "setattr(cluster, '_FEWEST_TASKS', 1) or setattr(cluster, '_TASKS_PER_CPU', 0)"
    few = f"{numbers} or jobs.capitals_job()"
    run_on_ray(tmp_path, few, PRIVATE)
    inputs = make_inputs(tmp_path / "in", 4)
    run_job(capitals_job(), inputs, tmp_path / "one", executor=ExecutorConfig(workers=1))
    assert hashes(tmp_path / "ray") == hashes(tmp_path / "one")


def test_it_is_said_when_nothing_runs() -> None:
    answers = iter([([], ["task"]), ([], ["task"]), (["task"], [])])
    ray = SimpleNamespace(
        wait=lambda *_, **__: next(answers),
        cluster_resources=lambda: {"CPU": 0.0},
        available_resources=dict,
    )
    told: list[str] = []
    assert cluster._next_done(ray, {"task": None}, capitals_job(), told.append) == ["task"]
    assert told[0].startswith("Nothing runs yet: the Ray cluster has 0 CPUs, and 1 tasks wait")


def test_no_token_is_left_in_the_home_folder(private: tuple[Path, str]) -> None:
    assert list((private[0] / "home").iterdir()) == []


def test_ray_imported_too_early_to_be_closed_is_refused(tmp_path: Path) -> None:
    said = run_on_ray(tmp_path, "__import__('ray') and jobs.capitals_job()", PRIVATE)
    assert said.startswith("ExecutorError Ray was imported in this process before")
    assert hashes(tmp_path / "ray") == {}


@needs(bool(addresses_of_this_machine()), "an address besides loopback")
def test_a_ray_that_does_not_keep_to_loopback_is_ended(tmp_path: Path) -> None:
    unknown = "setattr(cluster, '_LOOPBACK_ONLY', 'NO_SUCH_SWITCH')"
    said = run_on_ray(tmp_path, f"{unknown} or jobs.capitals_job()", PRIVATE)
    assert said.startswith("ExecutorError Ray ")
    assert "not on loopback only" in said
    assert hashes(tmp_path / "ray") == {}


# --- a cluster that is there already -----------------------------------------------------


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where a cluster with a GPU is, as a setting of `ExecutorConfig`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", "0123456789abcdef" * 4)
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        with subprocess.Popen(
            [sys.executable, "-c", CLUSTER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout
            yield f"ray_address='{process.stdout.readline().strip()}'"
            process.communicate("", timeout=60)


def test_a_cluster_makes_what_one_process_makes(tmp_path: Path, address: str) -> None:
    said = run_on_ray(tmp_path, "jobs.capitals_job()", address)
    inputs = make_inputs(tmp_path / "in", 4)
    result = run_job(capitals_job(), inputs, tmp_path / "one", executor=ExecutorConfig(workers=1))
    assert said == f"{list(result.files)}\n"
    assert hashes(tmp_path / "ray") == hashes(tmp_path / "one")


def test_an_error_on_a_cluster_arrives_as_itself(tmp_path: Path, address: str) -> None:
    said = run_on_ray(tmp_path, "ShardJob(jobs.fail, '')", address)
    assert said == "ValueError part-00001 is not to my taste\n"


def test_an_error_that_cannot_travel_arrives_as_its_text(tmp_path: Path, address: str) -> None:
    said = run_on_ray(tmp_path, "ShardJob(jobs.fail_awkwardly, '')", address)
    assert said.startswith("ExecutorError The work on part-0000")
    assert "is awkward" in said


def test_a_full_disk_on_a_cluster_is_told_in_words(tmp_path: Path, address: str) -> None:
    said = run_on_ray(tmp_path, "ShardJob(partial(jobs.fill_disk, 28), '')", address)
    assert said.startswith("StorageError Writing to")
    assert "No space left on device" in said


def test_a_shard_that_always_ends_its_worker_is_named(tmp_path: Path, address: str) -> None:
    said = run_on_ray(tmp_path, "ShardJob(jobs.die, '')", address)
    assert said.startswith("ExecutorError part-00001 has ended its worker 2 times")


# --- work that needs a GPU: Ray believes in one that is not there -------------------------


def test_shards_that_need_a_gpu_share_one_process(tmp_path: Path, address: str) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    work = f"partial(jobs.note_process, Path({str(traces)!r}))"
    job = f"ShardJob({work}, 'settings', ('upper', 'odd'), num_gpus=1)"
    said = run_on_ray(tmp_path, job, address)
    inputs = make_inputs(tmp_path / "in", 4)
    result = run_job(capitals_job(), inputs, tmp_path / "one", executor=ExecutorConfig(workers=1))
    assert said == f"{list(result.files)}\n"
    assert hashes(tmp_path / "ray") == hashes(tmp_path / "one")
    assert len(list(traces.iterdir())) == 1


def test_an_actor_whose_process_dies_goes_on_in_another(tmp_path: Path, address: str) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    for number in (0, 2, 3):
        (traces / f"part-0000{number}").touch()
    work = f"partial(jobs.die_once, Path({str(traces)!r}))"
    said = run_on_ray(tmp_path, f"ShardJob({work}, 'settings', num_gpus=1)", address)
    assert "upper/part-00003.txt" in said
    assert (traces / "part-00001").exists()


def test_a_shard_that_always_ends_its_actor_is_named(tmp_path: Path, address: str) -> None:
    said = run_on_ray(tmp_path, "ShardJob(jobs.die, '', num_gpus=1)", address)
    assert said.startswith("ExecutorError part-00001 has ended its worker 2 times")


def test_an_error_in_an_actor_arrives_as_itself(tmp_path: Path, address: str) -> None:
    said = run_on_ray(tmp_path, "ShardJob(jobs.fail, '', num_gpus=1)", address)
    assert said == "ValueError part-00001 is not to my taste\n"


def test_vectors_from_actors_are_those_of_one_process(tmp_path: Path, address: str) -> None:
    (tmp_path / "text.txt").write_text(rule_text(600))
    corpus = prepared(tmp_path / "text.txt", tmp_path / "corpus", layout="lines", shard_bytes=4096)
    tiny_model(corpus).save(tmp_path / "model", card="A model for tests.")
    script = [sys.executable, "-W", "error", "-c", EMBED, str(tmp_path), address.split("'")[1]]
    subprocess.run(script, check=True, timeout=280, cwd=TESTS)
    assert len(list((tmp_path / "local" / "vectors").iterdir())) > 2
    assert hashes(tmp_path / "ray") == hashes(tmp_path / "local")


def test_an_address_where_nobody_answers_is_told_in_words_and_soon(tmp_path: Path) -> None:
    began = time.monotonic()
    said = run_on_ray(tmp_path, "jobs.capitals_job()", "ray_address='127.0.0.1:1'")
    assert said.startswith("ExecutorError No Ray cluster answered at 127.0.0.1:1")
    assert time.monotonic() - began < 30


def test_a_wrong_token_is_told_in_words(tmp_path: Path, address: str) -> None:
    script = SCRIPT.format(job="jobs.capitals_job()", executor=address, times=1)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, tmp_path],
        capture_output=True,
        text=True,
        check=True,
        cwd=TESTS,
        env={**os.environ, "RAY_AUTH_TOKEN": "f" * 64, "RAY_NUM_REDIS_GET_RETRIES": "2"},
    )
    assert done.stdout.startswith("ExecutorError No Ray cluster answered at")
    assert "RAY_AUTH_TOKEN" in done.stdout
