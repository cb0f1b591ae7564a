"""Holds the lock, and the oldest versions we ask for, against a saved list of advisories.

    python -m supply_chain.audit             what is open; exit code 1 if any is
    python -m supply_chain.audit --ignored   the ids to pass over, as options for pip-audit

`advisories.json` is written as OSV writes them, with the source of each. It is a snapshot: it
needs no network and cannot know what came after it. The weekly workflow asks the live database.
"""

import json
import re
import sys
import tomllib
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from packaging.version import Version

from supply_chain.lock import LOCK, ROOT, read_lock

ADVISORIES = Path(__file__).with_name("advisories.json")
DAYS_TO_ACT = 14
_FLOOR = re.compile(r"^([A-Za-z0-9._-]+)>=([0-9.]+)$")


@dataclass(frozen=True)
class Finding:
    """A version of ours that an advisory names."""

    advisory: str
    package: str
    version: str
    where: str
    is_overdue: bool
    """Whether it has been known for longer than we allow ourselves."""


def audit(
    snapshot: dict[str, Any], versions: list[tuple[str, str, str]], today: date
) -> list[Finding]:
    """What is open: (package, version, where) that an advisory names and no ignore excuses."""
    check_snapshot(snapshot)
    ignored = {entry["id"] for entry in snapshot["ignored"]}
    return [
        Finding(
            advisory["id"],
            name,
            version,
            where,
            is_overdue=today - date.fromisoformat(advisory["known_since"])
            > timedelta(days=DAYS_TO_ACT),
        )
        for advisory in snapshot["advisories"]
        if advisory["id"] not in ignored
        for name, version, where in versions
        if _names(advisory, name, Version(version))
    ]


def check_snapshot(snapshot: dict[str, Any]) -> None:
    """Every advisory has a source and a date; every ignore a reason, a date, and a use."""
    date.fromisoformat(snapshot["taken"])
    known = set()
    for advisory in snapshot["advisories"]:
        date.fromisoformat(advisory["known_since"])
        assert all(source.startswith("https://") for source in advisory["references"]), advisory
        assert advisory["references"], advisory
        known.add(advisory["id"])
    for entry in snapshot["ignored"]:
        date.fromisoformat(entry["date"])
        assert len(entry["reason"].split()) >= 5, f"{entry['id']}: say why it may be passed over"
        assert entry["id"] in known, f"{entry['id']} is ignored, and no advisory has that id"


def versions_of(
    lock: Path = LOCK, project: Path = ROOT / "pyproject.toml"
) -> list[tuple[str, str, str]]:
    """What is locked, and the oldest version that each of our requirements lets in."""
    locked = [(each.name, each.version, lock.name) for each in read_lock(lock)]
    told = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    extras = told["optional-dependencies"].values()
    wanted = [*told["dependencies"], *(line for extra in extras for line in extra)]
    floors = [found.groups() for line in wanted if (found := _FLOOR.match(line))]
    return locked + [(name, version, f"{project.name}, oldest") for name, version in floors]


def _names(advisory: dict[str, Any], name: str, version: Version) -> bool:
    """Whether an advisory names this version, by OSV's events in order."""
    for affected in advisory["affected"]:
        if affected["package"]["name"] != name:
            continue
        for events in affected["ranges"]:
            is_in = False
            for event in events["events"]:
                if "introduced" in event:
                    is_in = is_in or version >= Version(event["introduced"])
                else:
                    is_in = is_in and version < Version(event["fixed"])
            if is_in:
                return True
    return False


def main(*options: str) -> int:
    """Print, and say by the exit code whether something is to be done."""
    snapshot = json.loads(ADVISORIES.read_text(encoding="utf-8"))
    if "--ignored" in options:
        sys.stdout.write(" ".join(f"--ignore-vuln {e['id']}" for e in snapshot["ignored"]) + "\n")
        return 0
    open_ones = audit(snapshot, versions_of(), date.today())  # noqa: DTZ011  the local day will do
    for finding in open_ones:
        late = "overdue" if finding.is_overdue else "new"
        sys.stdout.write(
            f"{finding.advisory} ({late}): {finding.package} {finding.version}, {finding.where}\n"
        )
    number = len(snapshot["advisories"])
    sys.stdout.write(f"{len(open_ones)} open of {number} advisories, as of {snapshot['taken']}.\n")
    return 1 if open_ones else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
