"""The files in `deploy/`: linted, held against the schemas of Kubernetes, and run as far as one
machine can: what a container is told to do, and a job of two nodes with the scheduler played."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from command_line import polyseme
from packaging.requirements import Requirement
from pretraining.making import rule_corpus
from required import need, need_package
from serving.making import save_tiny, serving

from polyseme.storage.files import sha256_of

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROGRAMS = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def documents(name: str) -> list[Any]:
    return list(need_package("yaml").safe_load_all((DEPLOY / name).read_text("utf-8")))


@pytest.mark.parametrize(
    "line",
    [
        ["hadolint", "Dockerfile"],
        ["shellcheck", "train.sbatch"],
        ["kubernetes-validate", "--strict", "--quiet", "serve.yaml"],
    ],
    ids=lambda line: line[0],
)
def test_linters_find_nothing(line: list[str]) -> None:
    program = shutil.which(line[0], path=PROGRAMS)
    need(program is not None, line[0])
    found = subprocess.run(
        line, cwd=DEPLOY, env={"PATH": PROGRAMS}, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_image_runs_without_rights_and_with_the_versions_of_the_lock(tmp_path: Path) -> None:
    lines = (DEPLOY / "Dockerfile").read_text("utf-8").splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER")]
    assert users == ["10001:10001"]
    (strip,) = [re.match(r"RUN (sed .*) \\$", line) for line in lines if "RUN sed" in line]
    assert strip
    shutil.copy(ROOT / "requirements.lock", tmp_path)
    subprocess.run(["bash", "-c", strip[1]], cwd=tmp_path, check=True)
    versions = (tmp_path / "versions.txt").read_text("utf-8").splitlines()
    pinned = [Requirement(line) for line in versions if line and not line.startswith("#")]
    assert {"torch", "uvicorn", "spacy", "ray"} <= {each.name for each in pinned}
    assert all(re.fullmatch(r"==[^,]+", str(each.specifier)) for each in pinned)


def test_every_pod_is_closed_and_keeps_secrets_out_of_the_manifest() -> None:
    validate = need_package("kubernetes_validate")
    (job,) = documents("rayjob.yaml")
    cluster = job["spec"]["rayClusterSpec"]
    assert cluster["authOptions"] == {"mode": "token"}
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    pods = [each["template"] for each in groups] + [documents("serve.yaml")[0]["spec"]["template"]]
    for pod in pods:
        whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, **pod}
        validate.validate(whole, "1.32", strict=True)
        assert pod["spec"]["securityContext"]["runAsNonRoot"]
        for container in pod["spec"]["containers"]:
            rights = container["securityContext"]
            assert rights["readOnlyRootFilesystem"]
            assert rights["capabilities"] == {"drop": ["ALL"]}
            assert {"requests", "limits"} <= set(container["resources"])
    for group in groups:
        (container,) = group["template"]["spec"]["containers"]
        assert container["envFrom"] == [{"secretRef": {"name": "polyseme-s3"}}]
        assert not [each for each in container["env"] if each["name"].startswith("AWS")]


def test_the_job_on_ray_is_a_command_of_ours(tmp_path: Path) -> None:
    need_package("ray")
    (job,) = documents("rayjob.yaml")
    (tmp_path / "a.txt").write_text("She sat on the bank .\n", encoding="utf-8")
    entry = job["spec"]["entrypoint"].replace("$RAY_ADDRESS", "127.0.0.1:1")
    entry = entry.replace("s3://my-texts/novels/", str(tmp_path / "a.txt"))
    program, *words = entry.replace("s3://my-corpora/novels", str(tmp_path / "c")).split()
    assert program == "polyseme"
    assert "No Ray cluster answered at 127.0.0.1:1" in polyseme(*words, code=75).stderr


def test_a_pod_serves_as_it_is_told_to_and_is_found_alive_and_ready(tmp_path: Path) -> None:
    deployment, service, *_ = documents("serve.yaml")
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    (port,) = container["ports"]
    assert service["spec"]["ports"][0]["targetPort"] == port["name"]
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    (tmp_path / "keys.txt").write_text("a-key-of-some-length\n", encoding="utf-8")
    here = {
        "/models/en-base": str(save_tiny(tmp_path / "model")),
        "/keys/keys.txt": str(tmp_path / "keys.txt"),
    }
    verb, *arguments = [here.get(each, each) for each in container["args"]]
    assert verb == "serve"
    with serving(*arguments) as (address, _):
        local = address.replace("0.0.0.0", "127.0.0.1")
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert httpx.get(local + container[probe]["httpGet"]["path"]).status_code == 200
        assert httpx.get(f"{local}/info").status_code == 401


SCHEDULER = {
    "scontrol": "echo node1; echo node2",
    # Each node's agent, at once; it fails if one of them does.
    "srun": 'while [[ $1 == --* ]]; do shift; done; "$@" & first=$!; "$@"; wait "$first"',
}


def test_two_nodes_of_a_slurm_cluster_train_as_one_process_does(tmp_path: Path) -> None:
    """To the last bit: two processes with half of each batch, one that accumulates both halves."""
    corpus = rule_corpus(tmp_path / "made").folder
    small = [
        *("--preset", "elmo-teaching", "--set", "model.encoder.contextualizer.proj_size=16"),
        *("--set", "model.vocabulary.min_count=1", "--set", "batches.words=300"),
        *("--precision", "float32", "--steps", "8"),
    ]
    for name, code in SCHEDULER.items():
        (tmp_path / name).write_text(f"#!/usr/bin/env bash\n{code}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    port = {"MASTER_PORT": "29571"}
    told = {"NODELIST": "node[1-2]", "NUM_NODES": "2", "ID": "7"}
    environment = {
        **os.environ,
        **port,
        **{f"SLURM_JOB_{name}": value for name, value in told.items()},
        "SLURM_CPUS_PER_TASK": "1",
        "PATH": f"{tmp_path}{os.pathsep}{PROGRAMS}",
    }
    script = (DEPLOY / "train.sbatch").read_text("utf-8").replace("$first:", "127.0.0.1:")
    done = subprocess.run(
        ["bash", "-c", script, "train", str(corpus), *small, "--out", str(tmp_path / "two")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    accumulated = ["--set", "training.gradient_accumulation_steps=2"]
    polyseme("pretrain", corpus, *small, *accumulated, "--out", tmp_path / "one")
    two, one = (tmp_path / each / "model.safetensors" for each in ("two", "one"))
    assert sha256_of(two) == sha256_of(one)
    assert json.loads((tmp_path / "two/manifest.json").read_text("utf-8"))["metadata"]["steps"] == 8
