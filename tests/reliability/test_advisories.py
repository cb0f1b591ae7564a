"""P3 and P4: no version with a known hole is shipped, and the bill of materials names all of it."""

import copy
import json
import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from supply_chain.audit import ADVISORIES, DAYS_TO_ACT, audit, check_snapshot, main, versions_of
from supply_chain.lock import LOCK, read_lock
from supply_chain.sbom import make_sbom

SNAPSHOT: dict[str, Any] = json.loads(ADVISORIES.read_text(encoding="utf-8"))
TAKEN = date.fromisoformat(SNAPSHOT["taken"])


def test_no_version_we_ship_has_a_known_hole() -> None:
    assert audit(SNAPSHOT, versions_of(), TAKEN) == []


def test_every_advisory_has_a_source_and_every_ignore_a_reason_and_a_date() -> None:
    check_snapshot(SNAPSHOT)
    assert len({advisory["id"] for advisory in SNAPSHOT["advisories"]}) >= 30
    assert all(entry.keys() == {"id", "date", "reason"} for entry in SNAPSHOT["ignored"])


@pytest.mark.parametrize(
    ("package", "version", "is_named"),
    [
        ("urllib3", "2.6.3", True),
        ("urllib3", "2.7.0", False),
        ("idna", "3.14", True),
        ("pyarrow", "14.0.0", True),
        ("numpy", "2.5.4", False),
    ],
)
def test_a_version_with_a_hole_is_found(package: str, version: str, is_named: bool) -> None:
    found = audit(SNAPSHOT, [(package, version, "a lock")], TAKEN)
    assert bool(found) == is_named
    assert {finding.package for finding in found} <= {package}


def test_a_hole_in_the_lock_is_found(tmp_path: Path) -> None:
    old = LOCK.read_text(encoding="utf-8")
    lock = tmp_path / "requirements.lock"
    lock.write_text(re.sub(r"^jinja2==\S+", "jinja2==3.1.5", old, flags=re.MULTILINE), "utf-8")
    [finding] = audit(SNAPSHOT, versions_of(lock), TAKEN)
    assert (finding.advisory, finding.package) == ("CVE-2025-27516", "jinja2")
    assert finding.is_overdue


def test_what_is_new_is_told_apart_from_what_is_overdue() -> None:
    [advisory] = [each for each in SNAPSHOT["advisories"] if each["id"] == "CVE-2025-43859"]
    known = date.fromisoformat(advisory["known_since"])
    for days, is_overdue in ((DAYS_TO_ACT, False), (DAYS_TO_ACT + 1, True)):
        today = known + timedelta(days=days)
        [finding] = audit(SNAPSHOT, [("h11", "0.14.0", "a lock")], today)
        assert finding.is_overdue == is_overdue


@pytest.mark.parametrize("missing", ["reason", "date"])
def test_an_ignore_without_reason_or_date_is_refused(missing: str) -> None:
    careless = copy.deepcopy(SNAPSHOT)
    careless["ignored"][0][missing] = ""
    with pytest.raises((AssertionError, ValueError)):
        check_snapshot(careless)


def test_an_ignore_is_needed() -> None:
    """The control: without the ignores, what they excuse is found."""
    bare = {**SNAPSHOT, "ignored": []}
    found = {finding.advisory for finding in audit(bare, versions_of(), TAKEN)}
    assert found == {entry["id"] for entry in SNAPSHOT["ignored"]}


def test_the_audit_can_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    assert "0 open of" in capsys.readouterr().out


# --- the bill of materials ---------------------------------------------------------------


def shipped(text: str) -> set[tuple[str, str, str]]:
    """Name, version and hash of each file of a lock, read by another road than ours."""
    found = set()
    for block in re.sub(r"\\\n\s*", " ", text).splitlines():
        if block.strip() and not block.startswith("#"):
            line, *hashes = block.split(" --hash=sha256:")
            wanted = Requirement(line.strip())
            [version] = [each.version for each in wanted.specifier]
            found |= {(wanted.name, version, digest.strip()) for digest in hashes}
    return found


def named(sbom: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (component["name"], component["version"], digest["content"])
        for component in sbom["components"]
        for reference in component["externalReferences"]
        for digest in reference["hashes"]
        if digest["alg"] == "SHA-256"
    }


def test_the_bill_of_materials_names_every_file_of_the_lock() -> None:
    expected = shipped(LOCK.read_text(encoding="utf-8"))
    assert len(expected) > 500
    assert named(make_sbom()) == expected
    assert len(make_sbom()["components"]) == len(read_lock())


def test_a_file_missing_from_the_bill_is_noticed(tmp_path: Path) -> None:
    lines = LOCK.read_text(encoding="utf-8").splitlines(keepends=True)
    place = next(i for i, line in enumerate(lines) if "--hash" in line)
    shorter = tmp_path / "requirements.lock"
    shorter.write_text("".join(lines[:place] + lines[place + 1 :]), encoding="utf-8")
    missing = shipped("".join(lines)) - named(make_sbom(shorter))
    assert len(missing) == 1


def test_the_bill_is_cyclonedx_and_the_same_each_time() -> None:
    sbom = make_sbom()
    assert sbom == make_sbom()
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    references = [component["bom-ref"] for component in sbom["components"]]
    assert len(set(references)) == len(references)
    for component in sbom["components"]:
        assert component["purl"] == f"pkg:pypi/{component['name']}@{component['version']}"


def test_a_line_of_the_lock_that_is_not_understood_is_an_error(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text("git+https://example.org/almond.git\n", encoding="utf-8")
    with pytest.raises(ValueError, match="neither a package nor a hash"):
        read_lock(lock)
