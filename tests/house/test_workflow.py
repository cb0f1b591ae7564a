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
        if job.get("permissions") not in ({}, {"contents": "read"}):
            found.append(f"{name} may do more than read")
        if "timeout-minutes" not in job:
            found.append(f"{name} has no time limit")
    for action, rest in USES.findall(text):
        is_pinned = re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)
        has_version = re.match(r"\s+# v\d", rest)
        if not (is_pinned and has_version) and EXCUSE not in rest:
            found.append(f"{action} is not pinned")
    if "pull_request_target" in text:
        found.append("runs strangers' code with our rights")
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
    assert commands == ["make setup", "make check"]


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
