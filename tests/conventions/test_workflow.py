"""The workflow has no rights it does not need, and runs no code that can be swapped.

P5 of the supply chain: an action named by a tag can be moved to other code; one named by its
commit cannot.
"""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

yaml: Any = importlib.import_module("yaml")  # comes with Ray; has no types of its own
FOLDER = Path(__file__).parents[2] / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.y*ml"))
USES = re.compile(r"^\s*-?\s*uses:\s*(\S+)(.*)$", re.MULTILINE)
EXCUSE = "the hash could not be looked up"


def faults(text: str) -> list[str]:
    """What is wrong with a workflow."""
    found = []
    workflow = yaml.safe_load(text)
    if workflow.get("permissions") != {}:
        found.append("permissions at the top are not closed")
    for name, job in workflow["jobs"].items():
        if job.get("permissions") == {"id-token": "write"}:
            found += faults_of_a_signer(name, job)
        elif job.get("permissions") not in ({}, {"contents": "read"}):
            found.append(f"{name} may do more than read")
        if "timeout-minutes" not in job:
            found.append(f"{name} has no time limit")
    for action, rest in USES.findall(text):
        is_pinned = re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)
        has_version = re.match(r"\s+# v\d", rest)
        if not (is_pinned and has_version) and EXCUSE not in rest:
            found.append(f"{action} is not pinned")
    if "pull_request_target" in text:
        found.append("runs untrusted code with our rights")
    return found


def faults_of_a_signer(name: str, job: dict[str, Any]) -> list[str]:
    """A job that may sign in our name fetches what others built, publishes it, and runs nothing."""
    found = []
    if "environment" not in job:
        found.append(f"{name} may sign, and nobody is asked before")
    if any("run" in step for step in job["steps"]):
        found.append(f"{name} may sign, and runs commands")
    actions = {step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step}
    if actions != {"actions/download-artifact", "pypa/gh-action-pypi-publish"}:
        found.append(f"{name} may sign, and uses {', '.join(sorted(actions))}")
    return found


def test_there_is_a_workflow() -> None:
    assert WORKFLOWS


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_closed_and_pinned(path: Path) -> None:
    assert faults(path.read_text(encoding="utf-8")) == []


def test_ci_runs_what_contributors_run() -> None:
    text = (FOLDER / "check.yml").read_text(encoding="utf-8")
    steps = yaml.safe_load(text)["jobs"]["check"]["steps"]
    commands = [step["run"] for step in steps if "run" in step and "if" not in step]
    assert commands == ["make setup", "make check", "make test-long", "make test-faults"]


def test_every_test_is_run_by_what_a_fresh_clone_runs() -> None:
    root = FOLDER.parents[1]
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    run = (root / ".ci" / "run").read_text(encoding="utf-8")
    targets = dict(re.findall(r"^(test[\w-]*):.*\n\t\$\(PYTEST\) (.*)$", makefile, re.MULTILINE))
    assert "test" in re.findall(r"^check: (.*)$", makefile, re.MULTILINE)[0].split()
    assert {"check", *targets} - {"test"} <= set(re.findall(r"^make (\S+)$", run, re.MULTILINE))
    assert targets["test"] == '-m "not slow and not long" --ignore tests/reliability'
    assert targets["test-long"] == '-m "long and not slow" --ignore tests/reliability'
    assert targets["test-faults"] == '-m "not slow" tests/reliability'


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("permissions: {}", "permissions: write-all", "not closed"),
        ("contents: read", "contents: write", "more than read"),
        (r"@[0-9a-f]{40} # v", "@v", "not pinned"),
        (r"timeout-minutes: \d+", "", "no time limit"),
    ],
)
def test_a_workflow_that_is_opened_is_noticed(old: str, new: str, fault: str) -> None:
    text = (FOLDER / "check.yml").read_text(encoding="utf-8")
    opened = re.sub(old, new, text)
    assert opened != text
    assert any(fault in found for found in faults(opened))


# --- a release ---------------------------------------------------------------------------

RELEASE = (FOLDER / "release.yml").read_text(encoding="utf-8")


def release_faults(text: str) -> list[str]:
    """What a release would lack: signed files, a bill of materials, a look at both afterwards."""
    jobs = yaml.safe_load(text)["jobs"]
    found = []
    [publish] = [job for job in jobs.values() if job["permissions"] == {"id-token": "write"}]
    [step] = [step for step in publish["steps"] if "pypi-publish" in step.get("uses", "")]
    if step.get("with", {}).get("attestations") is not True:
        found.append("files are not attested (PEP 740)")
    if "password" in step.get("with", {}) or "secrets." in text:
        found.append("a stored password is used, not a trusted publisher")
    commands = {name: _commands(job) for name, job in jobs.items()}
    if "python -m supply_chain.sbom" not in commands["build"]:
        found.append("no bill of materials")
    if "python -m supply_chain.audit" not in commands["build"]:
        found.append("known holes are not looked for")
    if "SOURCE_DATE_EPOCH" not in commands["build"]:
        found.append("the build cannot be repeated")
    is_after = jobs["verify"]["needs"] == "publish"
    if not is_after or "pypi-attestations verify pypi" not in commands["verify"]:
        found.append("attestations are not verified afterwards")
    return found


def _commands(job: dict[str, Any]) -> str:
    return "\n".join(step["run"] for step in job["steps"] if "run" in step)


def test_a_release_is_attested_and_verified() -> None:
    assert release_faults(RELEASE) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("attestations: true", "attestations: false", "not attested"),
        ("attestations: true", "password: ${{ secrets.PYPI }}", "trusted publisher"),
        ("pypi-attestations verify pypi", "true", "not verified"),
        ("needs: publish", "needs: build", "not verified"),
        ("python -m supply_chain.sbom", "true", "bill of materials"),
        ("python -m supply_chain.audit", "true", "known holes"),
        ("SOURCE_DATE_EPOCH", "NOTHING", "repeated"),
    ],
)
def test_a_release_that_is_weakened_is_noticed(old: str, new: str, fault: str) -> None:
    assert old in RELEASE
    assert any(fault in found for found in release_faults(RELEASE.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("    environment: pypi\n", "", "nobody is asked"),
        ("pypa/gh-action-pypi-publish@", "someone/else@", "may sign, and uses"),
        ("id-token: write", "contents: write", "more than read"),
    ],
)
def test_a_job_that_signs_and_does_more_is_noticed(old: str, new: str, fault: str) -> None:
    assert old in RELEASE
    assert any(fault in found for found in faults(RELEASE.replace(old, new)))


def test_the_advisories_are_asked_for_every_week() -> None:
    text = (FOLDER / "audit.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    [when] = workflow[True]["schedule"]  # YAML reads the key `on` as a truth
    assert re.fullmatch(r"\d+ \d+ \* \* \d", when["cron"])
    commands = _commands(workflow["jobs"]["audit"])
    assert "pip-audit" in commands
    assert "--require-hashes" in commands
    assert "requirements.lock" in commands
